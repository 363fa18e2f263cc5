"""RTVI on a SmallWebRTC data channel (pipecat), as a client sees it. Sans-IO. Source: protocol sheet, section 11.1.

RTVI names no responses: one begins with `bot-llm-started` (or the bot's first word) and is over when the bot has
stopped speaking after `bot-llm-stopped`, or when it was interrupted. Its audio is on the track.
"""

from __future__ import annotations

from typing import Any

import msgspec

from connectors.codecs.bounds import carried, name
from connectors.codecs.client import Message, Opening
from harness.core import commands
from harness.core.commands import Command
from harness.core.errors import ConfigError
from harness.core.events import (
    Event,
    GoAway,
    Interrupted,
    PeerError,
    PlaybackState,
    RawReceived,
    ResponseDone,
    ResponseStarted,
    SessionReady,
    TextReceived,
    ToolCall,
    UserSpeechStarted,
    UserSpeechStopped,
    UserTranscript,
)

LABEL = "rtvi-ai"
VERSION = "2.2.0"
PING = "ping"
UNREADABLE = "unreadable"


_At = dict[str, Any]
"""Instants (ns) and length (bytes) of the message at hand, copied into each of its events."""


class RtviClient:
    """One session's codec. `client-ready` goes out first; the bot's `bot-ready` opens the session."""

    opening: Opening = "configure_first"

    def __init__(self) -> None:
        self._sent = 0
        self._responses = 0
        self._thinking = False
        self._speaking = False
        self._spoken = ""
        self._open = ""
        """Id of the response under way, of our own making."""

    # --- bot to client --------------------------------------------------------------------------------------

    def decode(self, data: bytes, t_ns: int, first_byte_ns: int, is_text: bool = True) -> list[Event]:
        at: _At = {"t_ns": t_ns, "first_byte_ns": first_byte_ns, "wire_bytes": len(data)}
        try:
            frame = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as exc:
            if data in (b"ping", b"pong"):
                return [RawReceived(name=data.decode(), **at)]
            return [PeerError(code=UNREADABLE, message=" ".join(f"broken JSON: {exc}".split()), **at)]
        kind = frame.get("type") if isinstance(frame, dict) else None
        if not isinstance(kind, str):
            return [PeerError(code=UNREADABLE, message="not an object with a type", **at)]
        if kind == "signalling":
            return self._signalling(frame.get("message"), at)
        if frame.get("label") != LABEL:
            return [RawReceived(name=name(kind), **at)]
        body = frame.get("data")
        handler = getattr(self, "_on_" + kind.replace("-", "_"), None) if kind in HANDLED else None
        if handler is None:
            return [RawReceived(name=name(kind), **at)]
        events: list[Event] | str = handler(body if isinstance(body, dict) else {}, at)
        return [PeerError(code=UNREADABLE, message=f"{kind}: {events}", **at)] if isinstance(events, str) else events

    def _signalling(self, message: Any, at: _At) -> list[Event]:
        kind = message.get("type") if isinstance(message, dict) else None
        if kind == "peerLeft":
            return [GoAway(time_left_ms=0, **at)]
        return [RawReceived(name=name(f"signalling.{kind}" if isinstance(kind, str) else "signalling"), **at)]

    def _on_bot_ready(self, body: dict[str, Any], at: _At) -> list[Event]:
        about = body.get("about")
        library = about.get("library") if isinstance(about, dict) else None
        return [SessionReady(phase="created", model=_text(library), **at)]

    def _on_user_started_speaking(self, body: dict[str, Any], at: _At) -> list[Event]:
        return [UserSpeechStarted(**at)]

    def _on_user_stopped_speaking(self, body: dict[str, Any], at: _At) -> list[Event]:
        return [UserSpeechStopped(**at)]

    def _on_user_transcription(self, body: dict[str, Any], at: _At) -> list[Event] | str:
        text = body.get("text")
        if not isinstance(text, str):
            return "no text"
        return [UserTranscript(text=text, final=body.get("final") is True, **at)]

    def _on_bot_llm_started(self, body: dict[str, Any], at: _At) -> list[Event]:
        self._thinking = True
        return self._begin(at) or [RawReceived(name="bot-llm-started", **at)]

    def _on_bot_llm_text(self, body: dict[str, Any], at: _At) -> list[Event] | str:
        return self._said(body, "text", at)

    def _on_bot_transcription(self, body: dict[str, Any], at: _At) -> list[Event] | str:
        return self._said(body, "transcript", at)

    def _on_bot_llm_stopped(self, body: dict[str, Any], at: _At) -> list[Event]:
        self._thinking = False
        stopped = RawReceived(name="bot-llm-stopped", **at)
        over = self._spoken == self._open and not self._speaking  # its last words had been said before
        return [stopped, *self._end("completed", "", at)] if over else [stopped]

    def _on_bot_started_speaking(self, body: dict[str, Any], at: _At) -> list[Event]:
        began = self._begin(at)
        self._speaking, self._spoken = True, self._open
        return [*began, PlaybackState(state="started", response=self._open, **at)]

    def _on_bot_stopped_speaking(self, body: dict[str, Any], at: _At) -> list[Event]:
        self._speaking = False
        stopped = PlaybackState(state="stopped", response=self._open, **at)
        return [stopped] if self._thinking else [stopped, *self._end("completed", "", at)]

    def _on_bot_interrupted(self, body: dict[str, Any], at: _At) -> list[Event]:
        self._thinking = self._speaking = False
        interrupted = Interrupted(reason="bot-interrupted", response=self._open, **at)
        return [interrupted, *self._end("cancelled", "bot-interrupted", at)]

    def _on_llm_function_call(self, body: dict[str, Any], at: _At) -> list[Event]:
        arguments = carried(body.get("args"))
        return [
            ToolCall(
                call=name(_text(body.get("tool_call_id"))),
                name=name(_text(body.get("function_name"))),
                arguments="" if arguments is None else msgspec.json.encode(arguments).decode(),
                **at,
            )
        ]

    def _on_error(self, body: dict[str, Any], at: _At) -> list[Event]:
        message = " ".join(_text(body.get("error") or body.get("message")).split())
        return [PeerError(code="error", message=message, fatal=body.get("fatal") is True, **at)]

    _on_error_response = _on_error

    def _begin(self, at: _At) -> list[Event]:
        if self._open:
            return []
        self._responses += 1
        self._open = f"bot_{self._responses}"
        return [ResponseStarted(response=self._open, **at)]

    def _end(self, status: str, reason: str, at: _At) -> list[Event]:
        ended, self._open = self._open, ""
        return [ResponseDone(response=ended, status=status, reason=reason, **at)] if ended else []

    def _said(self, body: dict[str, Any], kind: Any, at: _At) -> list[Event] | str:
        text = body.get("text")
        if not isinstance(text, str):
            return "no text"
        late = not self._open and kind == "transcript"  # the transcription of an answer that is over
        return [*([] if late else self._begin(at)), TextReceived(text=text, kind=kind, response=self._named(), **at)]

    def _named(self) -> str:
        return self._open or (f"bot_{self._responses}" if self._responses else "")

    # --- client to bot --------------------------------------------------------------------------------------

    def replies(self) -> list[Message]:
        return []

    def encode(self, command: Command) -> list[Message]:
        """Binary messages are audio for the track. Raises ConfigError for what RTVI has no message for."""
        match command:
            case commands.AppendAudio():
                return [command.pcm]
            case commands.Configure():
                about = {"library": "firstpacket", "library_version": "1", "platform": "python"}
                return [self._message("client-ready", {"version": VERSION, "about": about})]
            case _:
                raise ConfigError(f"RTVI has no message for {command.__struct_config__.tag}; turns are the bot's own")

    def _message(self, kind: str, data: dict[str, Any]) -> str:
        self._sent += 1
        return msgspec.json.encode({"label": LABEL, "type": kind, "id": f"fp_{self._sent}", "data": data}).decode()


HANDLED = frozenset(
    attribute.removeprefix("_on_").replace("_", "-") for attribute in vars(RtviClient) if attribute.startswith("_on_")
)
"""Message types that mean something for the measurement; all others come out as `RawReceived`."""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
