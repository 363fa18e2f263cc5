"""OpenAI Realtime as a client sees it: server frames in, events out; commands in, client frames out.

Sans-IO: the arrival instants are arguments. Frames of both dialects are understood whatever the session's own is,
since compatible servers mix them; what is sent keeps to one dialect. Nothing that a peer sends raises.
Source: protocol sheet, sections 1 and 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import msgspec

from connectors.codecs import openai_frames as frames
from connectors.codecs.bounds import carried, name, whole
from connectors.codecs.client import Message, Opening
from connectors.codecs.openai_names import FATAL_CODES, NAMES, Dialect
from connectors.codecs.openai_session import PCM_NAMES, TRANSCRIPTION_MODELS, configure_session, declared
from connectors.codecs.pcm_stream import PcmStream
from harness.core import commands
from harness.core.audio import PCM16_BYTES
from harness.core.commands import Command
from harness.core.events import (
    AudioDone,
    AudioReceived,
    Event,
    InputCommitted,
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

DEFAULT_RATE_HZ = 24_000
UNREADABLE = "unreadable"
REMEMBERED = 1_000
"""Unfinished streams of audio, and names of tool calls, that are kept at most: the oldest go first."""

_encode = msgspec.json.Encoder().encode


class _Arrival(NamedTuple):
    """Instants (ns) and length (bytes) of the message at hand, copied into each of its events."""

    t_ns: int
    first_byte_ns: int
    wire_bytes: int


class OpenAIRealtimeClient:
    """One session's codec; keeps the odd bytes, the declared output rate and the names of tool calls.

    input_rate_hz, output_rate_hz: what is asked for in GA, and what counts until the peer declares a rate.
    """

    opening: Opening = "created_first"

    def __init__(
        self,
        dialect: Dialect = "ga",
        *,
        input_rate_hz: int = DEFAULT_RATE_HZ,
        output_rate_hz: int = DEFAULT_RATE_HZ,
        transcription_model: str | None = None,
    ) -> None:
        self._dialect = dialect
        self._input_rate_hz = input_rate_hz
        self._asked_output_rate_hz = output_rate_hz
        self._transcription_model = transcription_model or TRANSCRIPTION_MODELS[dialect]
        self._output_rate_hz = output_rate_hz
        self._streams: dict[tuple[str, str], PcmStream] = {}
        self._tools: dict[str, str] = {}
        self._sent = 0

    @property
    def output_rate_hz(self) -> int:
        """Rate of the answers' audio as last declared (or asked for, before any declaration)."""
        return self._output_rate_hz

    # --- server to client -----------------------------------------------------------------------------------

    def decode(self, data: str | bytes, t_ns: int, first_byte_ns: int, is_text: bool = True) -> list[Event]:
        """Events of one message, in order: often one, never none.

        t_ns, first_byte_ns: the reads that completed and began it. Unknown types come out as `RawReceived`, what
        cannot be read as a `PeerError` with code `unreadable`.
        """
        length = len(data) if isinstance(data, bytes) or data.isascii() else len(data.encode("utf-8", "replace"))
        arrival = _Arrival(t_ns, first_byte_ns, length)
        frame = frames.read(data)
        if isinstance(frame, frames.AudioDelta):
            return [self._audio(frame, arrival)]
        if isinstance(frame, frames.Unreadable):
            return [PeerError(code=UNREADABLE, message=frame.reason, **arrival._asdict())]
        if isinstance(frame, frames.Other):
            return [RawReceived(name=name(frame.name), **arrival._asdict())]
        return _HANDLERS[type(frame)](self, frame, arrival._asdict())

    def _audio(self, frame: frames.AudioDelta, arrival: _Arrival) -> AudioReceived:
        response, item = name(frame.response_id), name(frame.item_id)
        stream = self._streams.get((response, item))
        if stream is None:
            _make_room(self._streams)
            stream = self._streams[(response, item)] = PcmStream()
        pcm = stream.push(frame.delta)
        return AudioReceived(
            t_ns=arrival.t_ns,
            first_byte_ns=arrival.first_byte_ns,
            wire_bytes=arrival.wire_bytes,
            samples=len(pcm) // PCM16_BYTES,
            rate_hz=stream.rate_hz or self._output_rate_hz,
            response=response,
            item=item,
            pcm=pcm,
        )

    def _text(self, frame: frames.TextDelta | frames.TranscriptDelta, at: dict[str, int]) -> list[Event]:
        kind: Literal["text", "transcript"] = "text" if isinstance(frame, frames.TextDelta) else "transcript"
        return [
            TextReceived(text=frame.delta, kind=kind, response=name(frame.response_id), item=name(frame.item_id), **at)
        ]

    def _session(self, frame: frames.SessionCreated | frames.SessionUpdated, at: dict[str, int]) -> list[Event]:
        said = declared(frame.session)
        updated = isinstance(frame, frames.SessionUpdated)
        if said.output_rate_hz:
            self._output_rate_hz = said.output_rate_hz
        ready: Event = SessionReady(
            phase="updated" if updated else "created",
            peer_session=name(said.session),
            model=name(said.model),
            input_rate_hz=said.input_rate_hz,
            # A beta session names a format without a rate: PCM16 there is what the client was told to expect.
            output_rate_hz=said.output_rate_hz or (self._output_rate_hz if said.output_format in PCM_NAMES else 0),
            **at,
        )
        if not updated or not said.output_format or said.output_format in PCM_NAMES:
            return [ready]
        message = f"the peer will send {name(said.output_format)}, only PCM16 can be read"
        return [ready, PeerError(code="unsupported_audio_format", message=message, fatal=True, **at)]

    def _speech_started(self, frame: frames.SpeechStarted, at: dict[str, int]) -> list[Event]:
        return [UserSpeechStarted(audio_ms=whole(frame.audio_start_ms), item=name(frame.item_id), **at)]

    def _speech_stopped(self, frame: frames.SpeechStopped, at: dict[str, int]) -> list[Event]:
        return [UserSpeechStopped(audio_ms=whole(frame.audio_end_ms), item=name(frame.item_id), **at)]

    def _committed(self, frame: frames.Committed, at: dict[str, int]) -> list[Event]:
        return [InputCommitted(item=name(frame.item_id), **at)]

    def _user_delta(self, frame: frames.UserDelta, at: dict[str, int]) -> list[Event]:
        return [UserTranscript(text=frame.delta, final=False, item=name(frame.item_id), **at)]

    def _user_completed(self, frame: frames.UserCompleted, at: dict[str, int]) -> list[Event]:
        return [UserTranscript(text=frame.transcript, final=True, item=name(frame.item_id), **at)]

    def _response_created(self, frame: frames.ResponseCreated, at: dict[str, int]) -> list[Event]:
        return [ResponseStarted(response=name(frame.response.id), **at)]

    def _audio_done(self, frame: frames.AudioDone, at: dict[str, int]) -> list[Event]:
        return [AudioDone(response=name(frame.response_id), **at)]

    def _response_done(self, frame: frames.ResponseDone, at: dict[str, int]) -> list[Event]:
        response = frame.response
        ident, status = name(response.id), name(response.status)
        details = response.status_details or frames.StatusDetails()
        error = details.error
        reason = name(details.reason) or (_code(error) if error else "")
        events: list[Event] = []
        if status == "cancelled" and reason == "turn_detected":
            events.append(Interrupted(reason=reason, response=ident, **at))
        if error is not None:
            events.append(_peer_error(error, at))
        usage = None if response.usage is None else carried(response.usage)
        events.append(ResponseDone(response=ident, status=status, reason=reason, usage=usage, **at))
        self._streams = {key: stream for key, stream in self._streams.items() if key[0] != ident}
        return events

    def _item_added(self, frame: frames.OutputItemAdded, at: dict[str, int]) -> list[Event]:
        # Some servers name the function here only, not with the arguments.
        if frame.item.call_id and frame.item.name:
            _make_room(self._tools)
            self._tools[name(frame.item.call_id)] = name(frame.item.name)
        return [RawReceived(name=frames.name_of(frame), **at)]

    def _arguments_done(self, frame: frames.ArgumentsDone, at: dict[str, int]) -> list[Event]:
        call = name(frame.call_id)
        return [
            ToolCall(call=call, name=name(frame.name) or self._tools.pop(call, ""), arguments=frame.arguments, **at)
        ]

    def _buffer(self, frame: frames.BufferEvent, at: dict[str, int]) -> list[Event]:
        state = frames.name_of(frame).rpartition(".")[2]
        return [PlaybackState(state=state, response=name(frame.response_id), **at)]

    def _error(self, frame: frames.ErrorFrame, at: dict[str, int]) -> list[Event]:
        return [_peer_error(frame.error, at)]

    # --- client to server -----------------------------------------------------------------------------------

    def replies(self) -> list[Message]:
        return []

    def encode(self, command: Command) -> list[Message]:
        """Frames that carry out `command`, in order; each has an `event_id` that the peer's errors echo."""
        match command:
            case commands.AppendAudio():
                body: dict[str, Any] = {"type": "input_audio_buffer.append", "audio": command.pcm}
            case commands.Configure():
                session = configure_session(
                    command,
                    self._dialect,
                    input_rate_hz=self._input_rate_hz,
                    output_rate_hz=self._asked_output_rate_hz,
                    transcription_model=self._transcription_model,
                )
                body = {"type": "session.update", "session": session}
            case commands.Commit():
                body = {"type": "input_audio_buffer.commit"}
            case commands.ClearInput():
                body = {"type": "input_audio_buffer.clear"}
            case commands.CreateResponse():
                body = {"type": "response.create"}
            case commands.Cancel():
                body = {"type": "response.cancel"}
                if command.response is not None:
                    body["response_id"] = command.response
            case commands.Truncate():
                body = {"type": "conversation.item.truncate", "item_id": command.item}
                body |= {"content_index": command.content_index, "audio_end_ms": command.audio_end_ms}
            case commands.AddHistory():
                part = NAMES[self._dialect].assistant_text if command.role == "assistant" else "input_text"
                content = [{"type": part, "text": command.text}]
                item = {"type": "message", "role": command.role, "content": content}
                body = {"type": "conversation.item.create", "item": item}
            case _:
                raise TypeError(f"OpenAI Realtime has no {type(command).__name__}")
        self._sent += 1
        return [_encode({"event_id": f"fp_{self._sent}"} | body).decode()]


def _make_room(kept: dict[Any, Any]) -> None:
    if len(kept) >= REMEMBERED:
        del kept[next(iter(kept))]


def _code(error: frames.ErrorBody) -> str:
    return name(str(error.code) if error.code not in (None, "") else error.type)


def _peer_error(error: frames.ErrorBody, at: dict[str, int]) -> PeerError:
    code = _code(error)
    return PeerError(code=code, message=" ".join((error.message or "").split()), fatal=code in FATAL_CODES, **at)


_Handler = Callable[[OpenAIRealtimeClient, Any, dict[str, int]], list[Event]]
_BY_KIND: dict[type[frames.Frame], _Handler] = {
    frames.TextDelta: OpenAIRealtimeClient._text,
    frames.TranscriptDelta: OpenAIRealtimeClient._text,
    frames.AudioDone: OpenAIRealtimeClient._audio_done,
    frames.SessionCreated: OpenAIRealtimeClient._session,
    frames.SessionUpdated: OpenAIRealtimeClient._session,
    frames.SpeechStarted: OpenAIRealtimeClient._speech_started,
    frames.SpeechStopped: OpenAIRealtimeClient._speech_stopped,
    frames.Committed: OpenAIRealtimeClient._committed,
    frames.UserDelta: OpenAIRealtimeClient._user_delta,
    frames.UserCompleted: OpenAIRealtimeClient._user_completed,
    frames.ResponseCreated: OpenAIRealtimeClient._response_created,
    frames.ResponseDone: OpenAIRealtimeClient._response_done,
    frames.OutputItemAdded: OpenAIRealtimeClient._item_added,
    frames.ArgumentsDone: OpenAIRealtimeClient._arguments_done,
    frames.BufferEvent: OpenAIRealtimeClient._buffer,
    frames.ErrorFrame: OpenAIRealtimeClient._error,
}
_HANDLERS: dict[type[frames.Frame], _Handler] = {
    kind: handler for base, handler in _BY_KIND.items() for kind in (base, *base.__subclasses__())
}
"""By exact type, the beta spellings (subclasses) included."""
