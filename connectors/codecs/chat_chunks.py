"""What a chat-completions peer sends, as typed records: chunks, whole answers and errors. Tolerant, never raising.

Only what the measurement needs has a type; other fields may be missing, new or odd.
"""

from __future__ import annotations

from typing import Any

import msgspec

from connectors.codecs.bounds import name


class Audio(msgspec.Struct, frozen=True):
    """data: base64. expires_at stands alone in the last piece."""

    id: str | None = None
    data: str | None = None
    transcript: str | None = None


class Delta(msgspec.Struct, frozen=True):
    content: str | None = None
    audio: Audio | None = None


class AudioMetadata(msgspec.Struct, frozen=True):
    """vllm-omni's word on the audio of one chunk."""

    format: str | None = None
    sample_rate_hz: float | None = None
    channels: float | None = None


class Choice(msgspec.Struct, frozen=True):
    """message: in a whole answer, instead of `delta`."""

    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = None
    audio_metadata: AudioMetadata | None = None


class Chunk(msgspec.Struct, frozen=True):
    """modality: vllm-omni's word on what `content` is."""

    choices: list[Choice] | None = None
    id: str | None = None
    object: str | None = None
    modality: str | None = None
    usage: dict[str, Any] | None = None


class Failure(msgspec.Struct, frozen=True):
    """An error in the peer's own words, in one line. code: empty if it gave none."""

    code: str
    message: str


class Unreadable(msgspec.Struct, frozen=True):
    reason: str


_chunks = msgspec.json.Decoder(Chunk)
_LONGEST_MESSAGE = 1_000


def read_chunk(data: bytes, event: str = "") -> Chunk | Failure | Unreadable:
    """One event's data. event: its SSE name; `error` marks its whole data as one."""
    if event == "error":
        return read_failure(data)
    try:
        chunk = _chunks.decode(data)
    except msgspec.ValidationError as exc:
        failure = _failure(_any(data))
        return failure or Unreadable(f"chunk: {_line(exc)}")
    except (msgspec.DecodeError, UnicodeError, RecursionError) as exc:
        return Unreadable(f"broken JSON: {_line(exc)}")
    if chunk.choices is None:
        failure = _failure(_any(data))
        if failure is not None:
            return failure
    return chunk


def read_failure(body: bytes) -> Failure:
    """The error in a refusal's body, whatever its shape; its text where it is no JSON."""
    failure = _failure(_any(body), whole=True)
    return failure or Failure("", _line(body.decode("utf-8", "replace")))


def _failure(value: Any, *, whole: bool = False) -> Failure | None:
    """`{"error": {…}}`, `{"error": "…"}`, `{"object": "error", …}`; with `whole` also `{"code": …, "message": …}` and
    `{"detail": …}` without more."""
    if not isinstance(value, dict):
        return None
    error = value.get("error")
    if isinstance(error, dict):
        return _described(error)
    if isinstance(error, str) and error:
        return Failure("", _line(error))
    if value.get("object") == "error" or (whole and "message" in value):
        return _described(value)
    if whole and "detail" in value:
        detail = value["detail"]
        return Failure("", _line(detail if isinstance(detail, str) else msgspec.json.encode(detail).decode()))
    return None


def _described(error: dict[str, Any]) -> Failure:
    code = next((error[key] for key in ("code", "type") if error.get(key) not in (None, "")), "")
    return Failure(name(str(code)), _line(error.get("message") or ""))


def _any(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _line(text: object) -> str:
    return " ".join(str(text).split())[:_LONGEST_MESSAGE]
