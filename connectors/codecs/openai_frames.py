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
    """Its bytes stand in one of two fields, by dialect (section 5.2). sample_rate_hz: of this packet, if it says."""

    delta: bytes | None = None
    audio: bytes | None = None
    sample_rate_hz: Any = None
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


class TranscriptionDelta(Frame, frozen=True, kw_only=True, tag="transcription.delta"):
    """The answer's text in the handshake without a session object (section 5.2)."""

    delta: str


class SessionCreated(Frame, frozen=True, kw_only=True, tag="session.created"):
    """id: of servers that send no session object (section 5.1)."""

    session: dict[str, Any] | None = None
    id: str | None = None


class SessionUpdated(Frame, frozen=True, kw_only=True, tag="session.updated"):
    session: dict[str, Any]


class ConversationCreated(Frame, frozen=True, kw_only=True, tag="conversation.created"):
    pass


class SessionFinished(Frame, frozen=True, kw_only=True, tag="session.finished"):
    """The peer has ended the session (section 4.5); others say closed or expired (section 5.3)."""


class SessionClosed(SessionFinished, frozen=True, kw_only=True, tag="session.closed"):
    pass


class SessionExpired(SessionFinished, frozen=True, kw_only=True, tag="session.expired"):
    pass


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


class UserUpdated(Frame, frozen=True, kw_only=True, tag="conversation.item.input_audio_transcription.updated"):
    """All that was understood so far, not an addition (section 4.3)."""

    transcript: str | None = None
    delta: str | None = None
    item_id: str | None = None


class UserSegment(Frame, frozen=True, kw_only=True, tag="conversation.item.input_audio_transcription.segment"):
    text: str
    item_id: str | None = None


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    type: str | None = None
    code: str | int | None = None
    message: str | None = None


class UserFailed(Frame, frozen=True, kw_only=True, tag="conversation.item.input_audio_transcription.failed"):
    error: ErrorBody | str | None = None


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
    """usage: where some put it (section 4.3)."""

    response: Response
    usage: dict[str, Any] | None = None


class ResponseCancelled(Frame, frozen=True, kw_only=True, tag="response.cancelled"):
    response: Response | None = None
    response_id: str | None = None


class ResponseCanceled(ResponseCancelled, frozen=True, kw_only=True, tag="response.canceled"):
    pass


class InterruptedByVad(Frame, frozen=True, kw_only=True, tag="unmute.interrupted_by_vad"):
    pass


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
    """Some write the text as a plain string, with the code beside it (section 5.1)."""

    error: ErrorBody | str
    code: str | int | None = None


class Warned(Frame, frozen=True, kw_only=True, tag="warning"):
    warning: ErrorBody | str | None = None


AnyFrame = (
    AudioDelta
    | AudioDeltaBeta
    | TextDelta
    | TextDeltaBeta
    | TranscriptDelta
    | TranscriptDeltaBeta
    | AudioDone
    | AudioDoneBeta
    | TranscriptionDelta
    | SessionCreated
    | SessionUpdated
    | ConversationCreated
    | SessionFinished
    | SessionClosed
    | SessionExpired
    | SpeechStarted
    | SpeechStopped
    | Committed
    | UserDelta
    | UserCompleted
    | UserUpdated
    | UserSegment
    | UserFailed
    | ResponseCreated
    | ResponseDone
    | ResponseCancelled
    | ResponseCanceled
    | InterruptedByVad
    | OutputItemAdded
    | ArgumentsDone
    | BufferEvent
    | BufferStopped
    | BufferCleared
    | ErrorFrame
    | Warned
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
