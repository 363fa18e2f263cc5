"""Server frames of OpenAI Realtime as typed records, read in one pass: base64 straight to bytes.

Only what the measurement needs is required, only that; other fields may be missing, new or odd. A record's tag is
its GA name; a subclass with the beta name stands beside it.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


class Frame(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of all frames."""


class AudioDelta(Frame, frozen=True, kw_only=True, tag="response.output_audio.delta"):
    delta: bytes
    response_id: str | None = None
    item_id: str | None = None


class AudioDeltaBeta(AudioDelta, frozen=True, kw_only=True, tag="response.audio.delta"):
    pass


class TextDelta(Frame, frozen=True, kw_only=True, tag="response.output_text.delta"):
    delta: str
    response_id: str | None = None
    item_id: str | None = None


class TextDeltaBeta(TextDelta, frozen=True, kw_only=True, tag="response.text.delta"):
    pass


class TranscriptDelta(Frame, frozen=True, kw_only=True, tag="response.output_audio_transcript.delta"):
    delta: str
    response_id: str | None = None
    item_id: str | None = None


class TranscriptDeltaBeta(TranscriptDelta, frozen=True, kw_only=True, tag="response.audio_transcript.delta"):
    pass


class AudioDone(Frame, frozen=True, kw_only=True, tag="response.output_audio.done"):
    response_id: str | None = None


class AudioDoneBeta(AudioDone, frozen=True, kw_only=True, tag="response.audio.done"):
    pass


class SessionCreated(Frame, frozen=True, kw_only=True, tag="session.created"):
    session: dict[str, Any]


class SessionUpdated(Frame, frozen=True, kw_only=True, tag="session.updated"):
    session: dict[str, Any]


class SpeechStarted(Frame, frozen=True, kw_only=True, tag="input_audio_buffer.speech_started"):
    audio_start_ms: float | None = None
    item_id: str | None = None


class SpeechStopped(Frame, frozen=True, kw_only=True, tag="input_audio_buffer.speech_stopped"):
    audio_end_ms: float | None = None
    item_id: str | None = None


class Committed(Frame, frozen=True, kw_only=True, tag="input_audio_buffer.committed"):
    item_id: str | None = None


class UserDelta(Frame, frozen=True, kw_only=True, tag="conversation.item.input_audio_transcription.delta"):
    delta: str
    item_id: str | None = None


class UserCompleted(Frame, frozen=True, kw_only=True, tag="conversation.item.input_audio_transcription.completed"):
    transcript: str
    item_id: str | None = None


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    type: str | None = None
    code: str | int | None = None
    message: str | None = None


class StatusDetails(msgspec.Struct, frozen=True, kw_only=True):
    reason: str | None = None
    error: ErrorBody | None = None


class Response(msgspec.Struct, frozen=True, kw_only=True):
    id: str | None = None
    status: str = "completed"
    status_details: StatusDetails | None = None
    usage: dict[str, Any] | None = None


class ResponseCreated(Frame, frozen=True, kw_only=True, tag="response.created"):
    response: Response


class ResponseDone(Frame, frozen=True, kw_only=True, tag="response.done"):
    response: Response


class OutputItem(msgspec.Struct, frozen=True, kw_only=True):
    call_id: str | None = None
    name: str | None = None


class OutputItemAdded(Frame, frozen=True, kw_only=True, tag="response.output_item.added"):
    item: OutputItem


class ArgumentsDone(Frame, frozen=True, kw_only=True, tag="response.function_call_arguments.done"):
    arguments: str
    call_id: str | None = None
    name: str | None = None


class BufferEvent(Frame, frozen=True, kw_only=True, tag="output_audio_buffer.started"):
    """The peer's own playout (WebRTC and SIP)."""

    response_id: str | None = None


class BufferStopped(BufferEvent, frozen=True, kw_only=True, tag="output_audio_buffer.stopped"):
    pass


class BufferCleared(BufferEvent, frozen=True, kw_only=True, tag="output_audio_buffer.cleared"):
    pass


class ErrorFrame(Frame, frozen=True, kw_only=True, tag="error"):
    error: ErrorBody


AnyFrame = (
    AudioDelta
    | AudioDeltaBeta
    | TextDelta
    | TextDeltaBeta
    | TranscriptDelta
    | TranscriptDeltaBeta
    | AudioDone
    | AudioDoneBeta
    | SessionCreated
    | SessionUpdated
    | SpeechStarted
    | SpeechStopped
    | Committed
    | UserDelta
    | UserCompleted
    | ResponseCreated
    | ResponseDone
    | OutputItemAdded
    | ArgumentsDone
    | BufferEvent
    | BufferStopped
    | BufferCleared
    | ErrorFrame
)


class Other(msgspec.Struct, frozen=True):
    """A frame of a type without meaning for the measurement."""

    name: str


class Unreadable(msgspec.Struct, frozen=True):
    """Why a message could not be read, in one line."""

    reason: str


class _Named(msgspec.Struct, frozen=True):
    type: str


_TAGS = frozenset(str(kind.__struct_config__.tag) for kind in AnyFrame.__args__)
_frames: msgspec.json.Decoder[Frame] = msgspec.json.Decoder(AnyFrame)
_names = msgspec.json.Decoder(_Named)


def name_of(frame: Frame) -> str:
    """The wire type of a frame."""
    return str(frame.__struct_config__.tag)


def read(data: str | bytes) -> Frame | Other | Unreadable:
    """One message as a record; never raises."""
    return read_tagged(data, _frames, _TAGS)


def read_tagged(data: str | bytes, decoder: msgspec.json.Decoder[T], tags: frozenset[str]) -> T | Other | Unreadable:
    """Decode a union that is tagged by `type`: a record, an `Other` for a type not in `tags`, or an `Unreadable`."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as exc:
        return _unmatched(data, tags, str(exc))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as exc:
        return Unreadable(f"broken JSON: {_one_line(exc)}")


def _unmatched(data: str | bytes, tags: frozenset[str], why: str) -> Other | Unreadable:
    try:
        name = _names.decode(data).type
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return Unreadable(f"not an object with a type: {_one_line(why)}")
    return Unreadable(f"{name}: {_one_line(why)}") if name in tags else Other(name)


def _one_line(text: object) -> str:
    return " ".join(str(text).split())
