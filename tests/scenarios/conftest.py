"""Shared by the tests of what is said: a private cache, and real speech to work on."""

from __future__ import annotations

from pathlib import Path

import pytest
import soundfile

from harness.core.audio import Int16
from harness.engines.cache import CACHE_VARIABLE

QUERIES = Path(__file__).parents[2] / "scenarios" / "packs" / "queries"


@pytest.fixture(autouse=True)
def private_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv(CACHE_VARIABLE, str(folder))
    return folder


@pytest.fixture(scope="session")
def speech() -> Int16:
    """A bundled query: int16, mono, 24 kHz."""
    samples, _ = soundfile.read(QUERIES / "en-01.flac", dtype="int16")
    return samples
