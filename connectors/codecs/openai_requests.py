"""Client frames of OpenAI Realtime as the server reads them: typed, tolerant, never raising.

The names are the same in GA and beta; what differs is inside `session`, `response` and `item`, kept as objects here.
"""

from __future__ import annotations

from typing import Any

import msgspec

from connectors.codecs.openai_frames import Other, Unreadable, read_tagged


class Request(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of all requests. event_id: the client's own, echoed in errors."""

    event_id: str | None = None


class SessionUpdate(Request, frozen=True, kw_only=True, tag="session.update"):
    session: dict[str, Any]


class AppendInput(Request, frozen=True, kw_only=True, tag="input_audio_buffer.append"):
    """audio: the bytes as they came, decoded from base64."""

    audio: bytes


class CommitInput(Request, frozen=True, kw_only=True, tag="input_audio_buffer.commit"):
    pass


class ClearInputBuffer(Request, frozen=True, kw_only=True, tag="input_audio_buffer.clear"):
    pass


class ResponseCreate(Request, frozen=True, kw_only=True, tag="response.create"):
    response: dict[str, Any] | None = None


class ResponseCancel(Request, frozen=True, kw_only=True, tag="response.cancel"):
    response_id: str | None = None


class ClearOutput(Request, frozen=True, kw_only=True, tag="output_audio_buffer.clear"):
    """Stop the agent's playout (WebRTC and SIP)."""


class ItemCreate(Request, frozen=True, kw_only=True, tag="conversation.item.create"):
    item: dict[str, Any]
    previous_item_id: str | None = None


class ItemTruncate(Request, frozen=True, kw_only=True, tag="conversation.item.truncate"):
    item_id: str
    audio_end_ms: int
    content_index: int = 0


class ItemDelete(Request, frozen=True, kw_only=True, tag="conversation.item.delete"):
    item_id: str


class ItemRetrieve(Request, frozen=True, kw_only=True, tag="conversation.item.retrieve"):
    item_id: str


class BargeIn(Request, frozen=True, kw_only=True):
    """The client says that the user speaks now: an answer under way stops. No message of OpenAI's."""


class SessionClose(Request, frozen=True, kw_only=True):
    """The client asks the server to end the session. No message of OpenAI Realtime's."""


AnyRequest = (
    SessionUpdate
    | AppendInput
    | CommitInput
    | ClearInputBuffer
    | ResponseCreate
    | ResponseCancel
    | ClearOutput
    | ItemCreate
    | ItemTruncate
    | ItemDelete
    | ItemRetrieve
)


class Invalid(msgspec.Struct, frozen=True, kw_only=True):
    """A message that must be answered with an error. event_id: the client's own, if it can be read."""

    code: str
    message: str
    event_id: str | None = None


class _Id(msgspec.Struct):
    event_id: str | None = None


_TAGS = frozenset(str(kind.__struct_config__.tag) for kind in AnyRequest.__args__)
_requests: msgspec.json.Decoder[Request] = msgspec.json.Decoder(AnyRequest)
_ids = msgspec.json.Decoder(_Id)


def read_request(data: str | bytes) -> Request | Invalid:
    """One message of a client: a request, or the error that it deserves."""
    found = read_tagged(data, _requests, _TAGS)
    if isinstance(found, Other):
        return Invalid(code="invalid_value", message=f"unknown event type {found.name!r}", event_id=_event_id(data))
    if isinstance(found, Unreadable):
        code = "invalid_json" if found.reason.startswith("broken JSON") else "invalid_value"
        return Invalid(code=code, message=found.reason, event_id=_event_id(data))
    return found


def _event_id(data: str | bytes) -> str | None:
    try:
        return _ids.decode(data).event_id
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
