"""The error tree."""

from __future__ import annotations

import pytest

from harness.core import errors

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("kind", ["ConfigError", "PrerequisiteError", "SessionFormatError", "ScoringError"])
def test_all_are_harness_errors(kind: str):
    assert issubclass(getattr(errors, kind), errors.HarnessError)


def test_connector_error_says_how():
    error = errors.ConnectorError("no", kind="peer", retryable=True, code="429")
    assert (str(error), error.kind, error.retryable, error.code) == ("no", "peer", True, "429")


def test_nearest():
    assert errors.nearest("chunk_m", ["think_ms", "chunk_ms"]) == "did you mean chunk_ms?"
    assert errors.nearest("zebra", ["b", "a"]) == "known: a, b"
    assert errors.nearest("a", ["ca", "ice"]) == "known: ca, ice"
    assert errors.nearest("cas", ["ca", "ice"]) == "did you mean ca?"
