"""OpenAI Live as a server speaks it: `session.*` messages in, requests in the agent's vocabulary out; audio for ever.

Sans-IO. The audio leaves through a mouth, a packet at a time (`audio_packet`); nothing on the wire tells a response
from silence. Source: protocol sheet, section 2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from connectors.codecs import openai_requests as requests
from connectors.codecs.openai_frames import Other, Unreadable, read_tagged
from connectors.codecs.openai_requests import Invalid, Request, SessionUpdate
from connectors.codecs.openai_session import dig, merge
from connectors.codecs.server import ServerEvents, ServerSession, Status
from harness.core.audio import PCM16_BYTES

RATES_HZ = (16_000, 24_000)
"""What `audio/pcm` may be at, both directions the same."""
ASIDES = ("instructions", "thinking", "commentary")
"""Context that a client may append while the session runs; each is confirmed."""
SESSION_KEYS = frozenset({"model", "instructions", "audio", "input", "store", "delegation", "tools"})
"""Other settings are refused."""

_encode = msgspec.json.Encoder().encode


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    event_id: str | None = None


class _Start(_Message, frozen=True, kw_only=True, tag="session.start"):
    session: dict[str, Any]


class _Update(_Message, frozen=True, kw_only=True, tag="session.update"):
    session: dict[str, Any]


class _Append(_Message, frozen=True, kw_only=True, tag="session.input_audio.append"):
    audio: bytes


class _Mute(_Message, frozen=True, kw_only=True, tag="session.input_audio.mute"):
    pass


class _Unmute(_Message, frozen=True, kw_only=True, tag="session.input_audio.unmute"):
    pass


class _Aside(_Message, frozen=True, kw_only=True, tag="session.instructions.append"):
    content: str


class _Thinking(_Aside, frozen=True, kw_only=True, tag="session.thinking.append"):
    pass


class _Commentary(_Aside, frozen=True, kw_only=True, tag="session.commentary.append"):
    pass


class _Close(_Message, frozen=True, kw_only=True, tag="session.close"):
    pass


_AnyMessage = _Start | _Update | _Append | _Mute | _Unmute | _Aside | _Thinking | _Commentary | _Close
_TAGS = frozenset(str(kind.__struct_config__.tag) for kind in _AnyMessage.__args__)
_messages: msgspec.json.Decoder[_Message] = msgspec.json.Decoder(_AnyMessage)


class LiveServerSession(ServerSession):
    """One session at the server's side: silent until the client's `session.start`.

    declare_rate_hz: what `session.started` says, whatever the audio is (None: the truth). on_start: told the rate that
    the client chose.
    """

    def __init__(self, *, session_id: str = "live-1", declare_rate_hz: int | None = None) -> None:
        self.events: LiveEvents = LiveEvents()
        self.session: dict[str, Any] = {"id": session_id, "object": "live.session", "status": "active"}
        self._declare_rate_hz = declare_rate_hz
        self.on_start: Callable[[int], None] = lambda rate_hz: None
        self._muted = False
        self._began = False

    @property
    def started(self) -> bool:
        """Whether the client has opened the session: before, nothing may be sent."""
        return self._began

    @property
    def input_rate_hz(self) -> int:  # type: ignore[override]
        return self.events.mouth_rate_hz

    def decode(self, data: str | bytes, is_text: bool = True) -> list[Request | Invalid]:
        message = read_tagged(data, _messages, _TAGS)
        if isinstance(message, Unreadable):
            return [Invalid(code="invalid_json", message=message.reason)]
        if isinstance(message, Other):
            return [Invalid(code="invalid_value", message=f"unknown event type {message.name!r}")]
        if isinstance(message, _Start) is self._began:
            text = "the session has started already" if self._began else "session.start must be the first message"
            return [Invalid(code="invalid_value", message=text, event_id=message.event_id)]
        match message:
            case _Start() | _Update():
                return [SessionUpdate(session=message.session, event_id=message.event_id)]
            case _Append():
                self.events.heard_bytes += len(message.audio)
                return [] if self._muted else [requests.AppendInput(audio=message.audio)]
            case _Mute() | _Unmute():
                self._muted = self.events.muted = isinstance(message, _Mute)
                return [requests.ClearInputBuffer()]  # what was heard of a turn is forgotten, and that is confirmed
            case _Aside():
                kind = str(message.__struct_config__.tag).split(".")[1]
                return [requests.ItemCreate(item={"type": kind, "content": message.content})]
            case _:
                return [requests.SessionClose()]

    def update(self, request: SessionUpdate) -> Invalid | None:
        refusal = self._refusal(request.session)
        if refusal is not None:
            return Invalid(code="invalid_value", message=refusal, event_id=request.event_id)
        form = dig(request.session, "audio", "format") or {}
        if not self._began:
            self.events.mouth_rate_hz = form.get("rate", self.events.mouth_rate_hz)
            self.events.name = f"openai-live/{self.events.mouth_rate_hz}"
            self.on_start(self.events.mouth_rate_hz)
        self._began = True
        declared = {"type": "audio/pcm", "rate": self._declare_rate_hz or self.events.mouth_rate_hz}
        self.session = merge(merge(self.session, request.session), {"audio": {"format": declared}})
        self.events.echo = request.event_id
        return None

    def _refusal(self, session: dict[str, Any]) -> str | None:
        unknown = set(session) - SESSION_KEYS
        if unknown:
            return f"unknown parameter: session.{min(unknown)}"
        form = dig(session, "audio", "format")
        if self._began and (form is not None or "instructions" in session):
            return "audio.format and instructions cannot be changed once the session has started"
        if form is not None and (dig(form, "type") != "audio/pcm" or dig(form, "rate") not in RATES_HZ):
            return "this server speaks audio/pcm at 16000 or 24000 only"
        return None


class LiveEvents(ServerEvents):
    """Messages as JSON bytes. mouth_rate_hz: of both directions. muted, echo, heard_bytes: the session's, for answers.

    No payload of a plan depends on the session, so that plans can be shared.
    """

    continuous = True

    def __init__(self) -> None:
        self.name = "openai-live/24000"
        self.mouth_rate_hz = 24_000
        self.muted = False
        self.echo: str | None = None
        self.heard_bytes = 0
        self._started = False

    def audio_packet(self, pcm: bytes) -> bytes:
        """A packet of the stream that never stops as bytes for the wire."""
        return self.frame(_encode({"type": "session.output_audio.delta", "delta": pcm}))

    def session(self, phase: Literal["created", "updated"], session: dict[str, Any]) -> list[bytes]:
        if phase == "created":
            return []
        kind = "session.updated" if self._started else "session.started"
        self._started = True
        return [_encode({"type": kind, "session": session, "client_event_id": self.echo})]

    def cleared(self) -> list[bytes]:
        return [_encode({"type": f"session.input_audio.{'muted' if self.muted else 'unmuted'}"})]

    def user_transcript(self, item: str, text: str) -> list[bytes]:
        return [_encode({"type": "session.input_transcript.delta", "delta": text})]

    def item(self, item: dict[str, Any], previous: str | None) -> list[bytes]:
        if item.get("type") not in ASIDES:
            return []
        return [_encode({"type": f"session.{item['type']}.appended", "start_ms": 0, "end_ms": 0})]

    def transcript_delta(self, response: str, item: str, text: str) -> list[bytes]:
        return [_encode({"type": "session.output_transcript.delta", "delta": text})]

    def response_done(
        self,
        response: str,
        status: Status,
        *,
        reason: str | None = None,
        error: dict[str, Any] | None = None,
        usage: dict[str, Any] | None = None,
        output: list[dict[str, Any]] | None = None,
    ) -> list[bytes]:
        """No such event here; a failure is told as an error."""
        return [] if error is None else self.error(error["type"], error["code"], error["message"])

    def go_away(self, time_left_ms: int) -> list[bytes]:
        return self._closed("expired")

    def session_closed(self) -> list[bytes]:
        return self._closed("close_requested")

    def error(self, kind: str, code: str, message: str, *, echo: str | None = None) -> list[bytes]:
        body = {"type": kind, "code": code, "message": message, "param": None, "client_event_id": echo}
        return [_encode({"type": "error", "error": body})]

    def other(self, name: str, body: dict[str, Any]) -> list[bytes]:
        return [_encode({"type": name} | body)]

    def broken(self) -> list[bytes]:
        return [b'{"type":"session.output_audio.delta","delta":"AAAA']

    def _closed(self, reason: str) -> list[bytes]:
        seconds = self.heard_bytes / PCM16_BYTES / self.mouth_rate_hz
        return [_encode({"type": "session.closed", "reason": reason, "usage": {"seconds": round(seconds, 3)}})]
