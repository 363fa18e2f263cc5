"""Messages of Gemini Live as typed records, both directions: one object with one key, or several, and no type field.

Every field may be missing or null, and new ones are passed over. Keys in snake_case are understood, base64 in the
alphabet of URLs too (Google's own client writes both). Source: protocol sheet, section 6.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

SNAKE_KEY = re.compile(rb'"[a-z0-9]+(?:_[a-z0-9]+)+"\s*:')
VERBATIM = frozenset({"args", "response"})
"""Keys whose objects are the user's own: what is below them is left as it is."""

T = TypeVar("T")


class _Message(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all records."""


class Blob(_Message, frozen=True, kw_only=True):
    data: bytes = b""
    mime_type: str | None = None


class Part(_Message, frozen=True, kw_only=True):
    text: str | None = None
    thought: bool | None = None
    inline_data: Blob | None = None


class Content(_Message, frozen=True, kw_only=True):
    role: str | None = None
    parts: list[Part] | None = None


class Transcription(_Message, frozen=True, kw_only=True):
    text: str | None = None
    finished: bool | None = None


# --- server to client -------------------------------------------------------------------------------------------


class SetupComplete(_Message, frozen=True, kw_only=True):
    session_id: str | None = None


class ServerContent(_Message, frozen=True, kw_only=True):
    model_turn: Content | None = None
    input_transcription: Transcription | None = None
    interim_input_transcription: Transcription | None = None
    output_transcription: Transcription | None = None
    generation_complete: bool | None = None
    interrupted: bool | None = None
    turn_complete: bool | None = None
    turn_complete_reason: str | None = None


class FunctionCall(_Message, frozen=True, kw_only=True):
    id: str | None = None
    name: str | None = None
    args: dict[str, Any] | None = None


class ToolCall(_Message, frozen=True, kw_only=True):
    function_calls: list[FunctionCall] | None = None


class GoAway(_Message, frozen=True, kw_only=True):
    """time_left: a duration of protobuf's JSON, such as `9.5s`."""

    time_left: str | None = None


class ResumptionUpdate(_Message, frozen=True, kw_only=True):
    """new_handle: whoever has it can go on with the session: a credential."""

    new_handle: str | None = None
    resumable: bool | None = None


class VoiceActivity(_Message, frozen=True, kw_only=True):
    """audio_offset: position in the user's audio, a duration."""

    voice_activity_type: str | None = None
    audio_offset: str | None = None


class ServerMessage(_Message, frozen=True, kw_only=True):
    setup_complete: SetupComplete | None = None
    server_content: ServerContent | None = None
    tool_call: ToolCall | None = None
    usage_metadata: dict[str, Any] | None = None
    go_away: GoAway | None = None
    session_resumption_update: ResumptionUpdate | None = None
    voice_activity: VoiceActivity | None = None


# --- client to server -------------------------------------------------------------------------------------------


class RealtimeInput(_Message, frozen=True, kw_only=True):
    audio: Blob | None = None
    media_chunks: list[Blob] | None = None
    activity_start: dict[str, Any] | None = None
    activity_end: dict[str, Any] | None = None
    audio_stream_end: bool | None = None
    text: str | None = None
    video: Blob | None = None


class ClientContent(_Message, frozen=True, kw_only=True):
    turns: list[Content] | None = None
    turn_complete: bool | None = None


class ClientMessage(_Message, frozen=True, kw_only=True):
    setup: dict[str, Any] | None = None
    realtime_input: RealtimeInput | None = None
    client_content: ClientContent | None = None
    tool_response: dict[str, Any] | None = None
    context_update: dict[str, Any] | None = None


class Unreadable(msgspec.Struct, frozen=True):
    """Why a message could not be read, in one line."""

    reason: str


server_messages = msgspec.json.Decoder(ServerMessage)
client_messages = msgspec.json.Decoder(ClientMessage)


def read(data: str | bytes, decoder: msgspec.json.Decoder[T]) -> T | Unreadable:
    """One message as a record; never raises. Camel case in the standard alphabet takes one pass."""
    raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
    try:
        if b"_" not in raw or not SNAKE_KEY.search(raw):
            return decoder.decode(raw)
    except msgspec.ValidationError:
        pass  # perhaps only base64 in the other alphabet
    except (msgspec.DecodeError, UnicodeError, RecursionError) as exc:
        return Unreadable(f"broken JSON: {_one_line(exc)}")
    try:
        return decoder.decode(msgspec.json.encode(plain(msgspec.json.decode(raw))))
    except msgspec.ValidationError as exc:
        return Unreadable(_one_line(exc))
    except (msgspec.DecodeError, UnicodeError, RecursionError, OverflowError) as exc:
        return Unreadable(f"broken JSON: {_one_line(exc)}")


def keys(data: str | bytes) -> list[str]:
    """Top-level keys of a message, with those of `serverContent` below it; empty where there are none."""
    try:
        found = plain(msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return []
    if not isinstance(found, dict):
        return []
    named: list[str] = []
    for key, value in found.items():
        inner = list(value) if key == "serverContent" and isinstance(value, dict) else []
        named += [f"{key}.{each}" for each in inner] or [key]
    return named


def duration_ms(text: str | None) -> int | None:
    """`9.5s` as 9500; None for what is no duration."""
    found = re.fullmatch(r"(\d{1,9})(\.\d{1,9})?s", text or "")
    return None if found is None else round(float(found[0][:-1]) * 1000)


def rate_hz(mime_type: str | None) -> int:
    """The rate that `audio/pcm;rate=24000` names; 0 where none is named."""
    found = re.search(r";\s*rate=(\d{1,6})(?!\d)", mime_type or "")
    return int(found[1]) if found else 0


def plain(value: Any, key: str = "") -> Any:
    """Keys in camel case, `data` in the standard alphabet."""
    if isinstance(value, dict):
        if key in VERBATIM:
            return value
        return {camel: plain(inner, camel) for name, inner in value.items() for camel in (_camel(name),)}
    if isinstance(value, list):
        return [plain(inner, key) for inner in value]
    if key == "data" and isinstance(value, str):
        return value.replace("-", "+").replace("_", "/")
    return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def _one_line(text: object) -> str:
    return " ".join(str(text).split())
