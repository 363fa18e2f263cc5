"""RTVI as the agent speaks it over a SmallWebRTC data channel. Source: protocol sheet, section 11.1."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from connectors.codecs.openai_requests import Invalid, Request, SessionUpdate
from connectors.codecs.server import ServerEvents, ServerSession, Status

LABEL = "rtvi-ai"
VERSION = "2.2.0"
RATE_HZ = 48_000
_encode = msgspec.json.Encoder().encode


class RtviEvents(ServerEvents):
    """Messages of the data channel; the audio is on the track."""

    name = "rtvi"
    continuous = True
    mouth_rate_hz = RATE_HZ

    def frame(self, payload: bytes) -> bytes:
        return payload

    def session(self, phase: Literal["created", "updated"], session: dict[str, Any]) -> list[bytes]:
        """The bot is ready once the client has said that it is."""
        if phase == "created":
            return []
        return [_message("bot-ready", {"version": VERSION, "about": {"library": "firstpacket-agent"}}, id="1")]

    def speech_started(self, item: str, audio_ms: int) -> list[bytes]:
        return [_message("user-started-speaking")]

    def speech_stopped(self, item: str, audio_ms: int) -> list[bytes]:
        return [_message("user-stopped-speaking")]

    def user_transcript(self, item: str, text: str) -> list[bytes]:
        data = {"text": text, "user_id": "user", "timestamp": "1970-01-01T00:00:00Z", "final": True}
        return [_message("user-transcription", data)]

    def response_opened(self, response: str, item: str, previous: str | None) -> list[bytes]:
        return [_message("bot-llm-started")]

    def transcript_delta(self, response: str, item: str, text: str) -> list[bytes]:
        return [_message("bot-llm-text", {"text": text})]

    def answer_closed(
        self, response: str, item: str, transcript: str, status: Literal["completed", "incomplete"]
    ) -> list[bytes]:
        transcription = [_message("bot-transcription", {"text": transcript})] if transcript else []
        return [*transcription, _message("bot-llm-stopped")]

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
        """Nothing for an answer that ended well: `bot-stopped-speaking` follows when it has been heard."""
        if error is not None:
            return [_message("error", {"error": error.get("message", ""), "fatal": False})]
        return [_message("bot-interrupted")] if status == "cancelled" else []

    def playback(self, state: Literal["started", "stopped", "cleared"], response: str) -> list[bytes]:
        return [_message("bot-started-speaking" if state == "started" else "bot-stopped-speaking")]

    def error(self, kind: str, code: str, message: str, *, echo: str | None = None) -> list[bytes]:
        return [_message("error", {"error": f"{code}: {message}", "fatal": code == "session_limit_reached"})]

    def other(self, name: str, body: dict[str, Any]) -> list[bytes]:
        return [_message("server-message", {"name": name, **body})]

    def broken(self) -> list[bytes]:
        return [b'{"label":"rtvi-ai","type":"bot-llm-te']


class RtviServer(ServerSession):
    """One call. The client says `ping` once a second and `client-ready` at the start; turns are the server's."""

    input_rate_hz = RATE_HZ

    def __init__(self) -> None:
        self.events = RtviEvents()
        self.session: dict[str, Any] = {}

    def decode(self, data: bytes, is_text: bool = True) -> list[Request | Invalid]:
        if data == b"ping":
            return []
        try:
            message = msgspec.json.decode(data, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return [Invalid(code="invalid_json", message="no JSON object")]
        if message.get("type") == "client-ready":
            return [SessionUpdate(session={})]
        if message.get("label") == LABEL or message.get("type") == "signalling":
            return []
        return [Invalid(code="invalid_value", message="no RTVI message")]


def _message(kind: str, data: dict[str, Any] | None = None, id: str | None = None) -> bytes:
    body: dict[str, Any] = {"label": LABEL, "type": kind}
    if id is not None:
        body["id"] = id
    return _encode(body | ({} if data is None else {"data": data}))
