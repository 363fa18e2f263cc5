"""Secrets stay out of reports."""

from __future__ import annotations

import pytest

from harness.report.redaction import MASK, redact, redact_text

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "key",
    [
        "Authorization",
        "api_key",
        "apiKey",
        "OPENAI_API_KEY",
        "x-api-key",
        "access_token",
        "client_secret",
        "password",
        "token",
    ],
)
def test_secret_keys_are_masked_at_any_depth(key: str) -> None:
    assert redact({"a": [{key: "hunter2"}]}) == {"a": [{key: MASK}]}


@pytest.mark.parametrize("key", ["key_env", "max_tokens", "voice", "keyboard", "tokens"])
def test_harmless_keys_are_kept(key: str) -> None:
    assert redact({key: "OPENAI_API_KEY"}) == {key: "OPENAI_API_KEY"}


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Incorrect API key provided: sk-proj-abcdef123456", "abcdef"),
        ("Authorization: Bearer abc.def-ghi123", "abc.def"),
        ("wss://user:hunter2@host/v1", "hunter2"),
        ("wss://host/v1?model=x&api_key=hunter2&b=1", "hunter2"),
        ("got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc", "eyJzdWIi"),
    ],
)
def test_secret_texts_are_masked(text: str, secret: str) -> None:
    assert secret not in redact_text(text)
    assert MASK in redact_text(text)


def test_ordinary_text_is_kept() -> None:
    text = "Rate limit reached for gpt-realtime in organization: retry in 20 ms (see https://host/docs?page=2)"
    assert redact_text(text) == text
