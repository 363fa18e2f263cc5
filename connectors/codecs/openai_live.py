"""OpenAI Live and its near copy Qwen-Audio-Live as a client speaks them: `session.*` messages, audio that never stops.

Sans-IO. No turns, responses or interruptions on the wire: audio and transcripts carry no response. Nothing that a
peer sends raises. Source: protocol sheet, section 2.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from connectors.codecs.bounds import carried, name
from connectors.codecs.client import Message, Opening
from connectors.codecs.openai_errors import peer_error
from connectors.codecs.openai_frames import ErrorBody, Other, Unreadable, read_tagged
from connectors.codecs.openai_session import PCM_NAMES, dig, merge
from connectors.codecs.pcm_stream import PcmStream, usable_rate
from harness.core import commands
from harness.core.audio import PCM16_BYTES
from harness.core.commands import Command, Configure
from harness.core.errors import ConfigError
from harness.core.events import (
    AudioReceived,
    Event,
    GoAway,
    PeerError,
    RawReceived,
    SessionReady,
    TextReceived,
    ToolCall,
    UserTranscript,
)

UNREADABLE = "unreadable"
CLOSE_REQUESTED = "close_requested"
LiveName = Literal["openai", "qwen"]

_encode = msgspec.json.Encoder().encode


class LiveDialect(msgspec.Struct, frozen=True, kw_only=True):
    """What differs. input_rate_hz, output_rate_hz: what is asked for or fixed. states_format: the settings name the
    format of both directions. history: text of the past can be put into a session that runs."""

    opening: Opening
    configure: str
    input_rate_hz: int
    output_rate_hz: int
    states_format: bool
    history: bool


LIVE_DIALECTS: dict[LiveName, LiveDialect] = {
    "openai": LiveDialect(
        opening="configure_first",
        configure="session.start",
        input_rate_hz=24_000,
        output_rate_hz=24_000,
        states_format=True,
        history=False,
    ),
    "qwen": LiveDialect(
        opening="created_first",
        configure="session.update",
        input_rate_hz=16_000,
        output_rate_hz=24_000,
        states_format=False,
        history=True,
    ),
}


class _Frame(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of all frames."""


class _AudioDelta(_Frame, frozen=True, kw_only=True, tag="session.output_audio.delta"):
    delta: bytes


class _OutputText(_Frame, frozen=True, kw_only=True, tag="session.output_transcript.delta"):
    delta: str


class _InputText(_Frame, frozen=True, kw_only=True, tag="session.input_transcript.delta"):
    delta: str


class _Created(_Frame, frozen=True, kw_only=True, tag="session.created"):
    session: dict[str, Any]


class _Started(_Frame, frozen=True, kw_only=True, tag="session.started"):
    session: dict[str, Any]


class _Updated(_Frame, frozen=True, kw_only=True, tag="session.updated"):
    session: dict[str, Any]


class _Usage(_Frame, frozen=True, kw_only=True, tag="session.usage.updated"):
    usage: dict[str, Any] | None = None
    context_window: dict[str, Any] | None = None


class _Delegation(msgspec.Struct, frozen=True, kw_only=True):
    id: str | None = None
    target: Any = None


class _DelegationCreated(_Frame, frozen=True, kw_only=True, tag="session.delegation.created"):
    delegation: _Delegation


class _Closed(_Frame, frozen=True, kw_only=True, tag="session.closed"):
    reason: str | None = None
    usage: dict[str, Any] | None = None


class _Error(_Frame, frozen=True, kw_only=True, tag="error"):
    error: ErrorBody


_AnyFrame = (
    _AudioDelta
    | _OutputText
    | _InputText
    | _Created
    | _Started
    | _Updated
    | _Usage
    | _DelegationCreated
    | _Closed
    | _Error
)
_TAGS = frozenset(str(kind.__struct_config__.tag) for kind in _AnyFrame.__args__)
_frames: msgspec.json.Decoder[_Frame] = msgspec.json.Decoder(_AnyFrame)


class OpenAILiveClient:
    """One session's codec. ended: the peer's last word, `session.closed`, has come.

    input_rate_hz: what is asked for (one rate for both directions where the dialect states it).
    """

    def __init__(self, dialect: LiveName = "openai", *, model: str = "", input_rate_hz: int | None = None) -> None:
        self._dialect = LIVE_DIALECTS[dialect]
        self.opening: Opening = self._dialect.opening
        self._name = "OpenAI Live" if dialect == "openai" else "Qwen-Audio-Live"
        self._model = model
        self._input_rate_hz = input_rate_hz or self._dialect.input_rate_hz
        same = self._dialect.states_format
        self._output_rate_hz = self._input_rate_hz if same else self._dialect.output_rate_hz
        self._stream = PcmStream()
        self._sent = 0
        self.ended = False

    # --- server to client -----------------------------------------------------------------------------------

    def decode(self, data: str | bytes, t_ns: int, first_byte_ns: int, is_text: bool = True) -> list[Event]:
        """Events of one message, in order: often one, never none."""
        length = len(data) if isinstance(data, bytes) or data.isascii() else len(data.encode("utf-8", "replace"))
        at: dict[str, Any] = {"t_ns": t_ns, "first_byte_ns": first_byte_ns, "wire_bytes": length}
        frame = read_tagged(data, _frames, _TAGS)
        match frame:
            case _AudioDelta():
                pcm = self._stream.push(frame.delta)
                rate_hz = self._stream.rate_hz or self._output_rate_hz
                return [AudioReceived(samples=len(pcm) // PCM16_BYTES, rate_hz=rate_hz, pcm=pcm, **at)]
            case _OutputText():
                return [TextReceived(text=frame.delta, kind="transcript", **at)]
            case _InputText():
                return [UserTranscript(text=frame.delta, **at)]
            case _Created() | _Started() | _Updated():
                return self._session(frame, at)
            case _Usage():
                usage = (frame.usage or {}) | ({"context_window": frame.context_window} if frame.context_window else {})
                return [RawReceived(name="session.usage.updated", usage=carried(usage), **at)]
            case _DelegationCreated():
                target = frame.delegation.target
                called = target if isinstance(target, str) else _encode(carried(target)).decode()
                return [ToolCall(call=name(frame.delegation.id), name=name(called), **at)]
            case _Closed():
                return self._closed(frame, at)
            case _Error():
                return [peer_error(frame.error, at)]
            case Unreadable():
                return [PeerError(code=UNREADABLE, message=frame.reason, **at)]
            case Other():
                return [RawReceived(name=name(frame.name), **at)]
            case _:
                raise TypeError(f"no case for {type(frame).__name__}")

    def _session(self, frame: _Created | _Started | _Updated, at: dict[str, Any]) -> list[Event]:
        form = dig(frame.session, "audio", "format")
        rate_hz = usable_rate(dig(form, "rate"))
        self._output_rate_hz = rate_hz or self._output_rate_hz
        ready: Event = SessionReady(
            phase="updated" if isinstance(frame, _Updated) else "created",
            peer_session=_text(frame.session, "id"),
            model=_text(frame.session, "model"),
            input_rate_hz=rate_hz,
            output_rate_hz=rate_hz,
            **at,
        )
        kind = _text(form, "type")
        if not kind or kind in PCM_NAMES:
            return [ready]
        message = f"the peer will send {kind}, only PCM16 can be read"
        return [ready, PeerError(code="unsupported_audio_format", message=message, fatal=True, **at)]

    def _closed(self, frame: _Closed, at: dict[str, Any]) -> list[Event]:
        self.ended = True
        reason = name(frame.reason)
        usage = None if frame.usage is None else carried(frame.usage)
        events: list[Event] = [RawReceived(name="session.closed", usage=usage, **at)]
        if reason == "expired":
            events.append(GoAway(time_left_ms=0, **at))
        if reason != CLOSE_REQUESTED:
            message = f"the peer closed the session: {reason or 'no reason given'}"
            events.append(PeerError(code=reason or "closed", message=message, fatal=True, **at))
        return events

    # --- client to server -----------------------------------------------------------------------------------

    def replies(self) -> list[Message]:
        return []

    def farewell(self) -> list[Message]:
        """Ask the peer to end the session; it answers `session.closed`."""
        return [self._message("session.close")]

    def encode(self, command: Command) -> list[Message]:
        """Messages that carry out `command`. Raises ConfigError for what the protocol has not: everything of turns."""
        match command:
            case commands.AppendAudio():
                return [_encode({"type": "session.input_audio.append", "audio": command.pcm}).decode()]
            case commands.Configure():
                if command.turn == "manual":
                    raise ConfigError(f"{self._name} has no manual turns: it listens and speaks all the time")
                return [self._message(self._dialect.configure, session=self._settings(command))]
            case commands.AddHistory() if self._dialect.history:
                part = "output_text" if command.role == "assistant" else "input_text"
                content = [{"type": part, "text": command.text}]
                item = {"type": "message", "role": command.role, "content": content}
                return [self._message("session.item.create", item=item)]
            case commands.AddHistory():
                raise ConfigError(f"{self._name} takes history in its first message only: --set session=…")
            case (
                commands.Commit()
                | commands.ClearInput()
                | commands.CreateResponse()
                | commands.Cancel()
                | commands.Truncate()
            ):
                raise ConfigError(f"{self._name} has no turns, so no {command.__struct_config__.tag}")
            case _:
                raise TypeError(f"{self._name} has no {type(command).__name__}")

    def _settings(self, configure: Configure) -> dict[str, Any]:
        session: dict[str, Any] = {}
        if configure.model or self._model:
            session["model"] = configure.model or self._model
        if configure.instructions is not None:
            session["instructions"] = configure.instructions
        audio: dict[str, Any] = {}
        if self._dialect.states_format:
            audio["format"] = {"type": "audio/pcm", "rate": self._input_rate_hz}
        if configure.voice is not None:
            audio["output"] = {"voice": configure.voice}
        if audio:
            session["audio"] = audio
        return merge(session, configure.extra)

    def _message(self, kind: str, **body: Any) -> str:
        self._sent += 1
        return _encode({"type": kind, "event_id": f"fp_{self._sent}"} | body).decode()


def _text(value: Any, key: str) -> str:
    found = dig(value, key)
    return name(found) if isinstance(found, str) else ""
