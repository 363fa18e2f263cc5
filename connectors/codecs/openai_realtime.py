"""OpenAI Realtime as a client sees it: server frames in, events out; commands in, client frames out.

Sans-IO: the arrival instants are arguments. Frames with GA and with beta names are understood whatever the session's
own dialect is, since compatible servers mix them; what is sent keeps to the dialect. Nothing that a peer sends raises.
Source: protocol sheet, sections 1, 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from connectors.codecs import openai_frames as frames
from connectors.codecs.bounds import carried, make_room, name, whole
from connectors.codecs.client import Message, Opening
from connectors.codecs.openai_audio import AnswerAudio
from connectors.codecs.openai_commands import OpenAICommands
from connectors.codecs.openai_dialects import Dialect, dialect_of
from connectors.codecs.openai_errors import error_code, note_of, peer_error
from connectors.codecs.openai_session import PCM_NAMES, READABLE_NAMES, declared
from connectors.codecs.pcm_stream import usable_rate
from harness.core.audio import PCM16_BYTES
from harness.core.commands import Command
from harness.core.events import (
    AudioDone,
    AudioReceived,
    Event,
    GoAway,
    InputCommitted,
    Interrupted,
    Note,
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

UNREADABLE = "unreadable"


class _Arrival(NamedTuple):
    """Instants (ns) and length (bytes) of the message at hand, copied into each of its events."""

    t_ns: int
    first_byte_ns: int
    wire_bytes: int


class OpenAIRealtimeClient:
    """One session's codec; keeps the odd bytes, the declared output rate and the names of tool calls.

    dialect: a row of `openai_dialects`, or its name. input_rate_hz, output_rate_hz: what is asked for (0: the
    dialect's default); the output rate counts until the peer declares one. binary: audio as binary messages.
    """

    def __init__(
        self,
        dialect: str | Dialect = "ga",
        *,
        input_rate_hz: int = 0,
        output_rate_hz: int = 0,
        transcription_model: str | None = None,
        binary: bool = False,
    ) -> None:
        row = self._dialect = dialect_of(dialect)
        self.opening: Opening = row.opening
        self._output_rate_hz = output_rate_hz or row.output_rates_hz[0]
        self._commands = OpenAICommands(
            row,
            input_rate_hz=input_rate_hz or row.input_rates_hz[0],
            output_rate_hz=self._output_rate_hz,
            transcription_model=transcription_model,
            binary=binary,
        )
        self._binary = binary
        self._answers = AnswerAudio(row.coding_out, self._output_rate_hz)
        self._tools: dict[str, str] = {}
        self._response = ""
        self._cut = False
        self._created = False

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
        if self._binary and not is_text and isinstance(data, bytes):
            return [self._audio(data, self._response, "", 0, arrival)]
        frame = frames.read(data)
        if isinstance(frame, frames.AudioDelta):
            return [self._delta(frame, arrival)]
        if isinstance(frame, frames.Unreadable):
            return [PeerError(code=UNREADABLE, message=frame.reason, **arrival._asdict())]
        if isinstance(frame, frames.Other):
            return [RawReceived(name=name(frame.name), **arrival._asdict())]
        return _HANDLERS[type(frame)](self, frame, arrival._asdict())

    def _delta(self, frame: frames.AudioDelta, arrival: _Arrival) -> Event:
        field = self._dialect.audio_field
        data = frame.audio if field == "audio" else frame.delta
        if data is None:
            why = f"{frames.name_of(frame)}: no audio in its field `{field}`"
            return PeerError(code=UNREADABLE, message=why, **arrival._asdict())
        return self._audio(
            data, name(frame.response_id), name(frame.item_id), usable_rate(frame.sample_rate_hz), arrival
        )

    def _audio(self, data: bytes, response: str, item: str, rate_hz: int, arrival: _Arrival) -> Event:
        piece = self._answers.push(data, response, item)
        if piece is None:
            return PeerError(code=UNREADABLE, message="the stream of Opus pages is broken", **arrival._asdict())
        return AudioReceived(
            t_ns=arrival.t_ns,
            first_byte_ns=arrival.first_byte_ns,
            wire_bytes=arrival.wire_bytes,
            samples=len(piece.pcm) // PCM16_BYTES,
            rate_hz=piece.rate_hz or rate_hz or self._output_rate_hz,
            skipped=piece.skipped,
            response=response,
            item=item,
            pcm=piece.pcm,
        )

    def _text(self, frame: frames.TextDelta | frames.TranscriptDelta, at: dict[str, Any]) -> list[Event]:
        kind: Literal["text", "transcript"] = "transcript"
        if isinstance(frame, frames.TextDelta):
            kind = self._dialect.text_kind
        return [
            TextReceived(text=frame.delta, kind=kind, response=name(frame.response_id), item=name(frame.item_id), **at)
        ]

    def _transcription(self, frame: frames.TranscriptionDelta, at: dict[str, Any]) -> list[Event]:
        if self._dialect.shape != "none":
            return [RawReceived(name=frames.name_of(frame), **at)]
        return [TextReceived(text=frame.delta, **at)]

    def _session(self, frame: frames.SessionCreated | frames.SessionUpdated, at: dict[str, Any]) -> list[Event]:
        said = declared(frame.session or {})
        updated = isinstance(frame, frames.SessionUpdated)
        own = None if updated else getattr(frame, "id", None)
        self._created = True
        if said.output_rate_hz:
            self._output_rate_hz = said.output_rate_hz
        ready: Event = SessionReady(
            phase="updated" if updated else "created",
            peer_session=name(said.session or own),
            model=name(said.model),
            input_rate_hz=said.input_rate_hz,
            # A beta session names a format without a rate: PCM16 there is what the client was told to expect.
            output_rate_hz=said.output_rate_hz or (self._output_rate_hz if said.output_format in PCM_NAMES else 0),
            **at,
        )
        if self._dialect.shape == "none" and frame.session is not None:
            message = "the server has the newer handshake with a session object: take dialect=vllm-omni"
            return [ready, Note(t_ns=at["t_ns"], code="dialect", message=message)]
        readable = not said.output_format or said.output_format in READABLE_NAMES
        if not updated or readable or self._dialect.coding_out == "ogg_opus":
            return [ready]
        message = f"the peer will send {name(said.output_format)}, only PCM16 can be read"
        return [ready, PeerError(code="unsupported_audio_format", message=message, fatal=True, **at)]

    def _conversation_created(self, frame: frames.ConversationCreated, at: dict[str, Any]) -> list[Event]:
        if self._created or not self._dialect.conversation_opens:
            return [RawReceived(name=frames.name_of(frame), **at)]
        self._created = True
        return [SessionReady(phase="created", **at)]

    def _finished(self, frame: frames.SessionFinished, at: dict[str, Any]) -> list[Event]:
        return [GoAway(time_left_ms=0, **at)]

    def _speech_started(self, frame: frames.SpeechStarted, at: dict[str, Any]) -> list[Event]:
        return [UserSpeechStarted(audio_ms=whole(frame.audio_start_ms), item=name(frame.item_id), **at)]

    def _speech_stopped(self, frame: frames.SpeechStopped, at: dict[str, Any]) -> list[Event]:
        return [UserSpeechStopped(audio_ms=whole(frame.audio_end_ms), item=name(frame.item_id), **at)]

    def _committed(self, frame: frames.Committed, at: dict[str, Any]) -> list[Event]:
        return [InputCommitted(item=name(frame.item_id), **at)]

    def _user_delta(self, frame: frames.UserDelta, at: dict[str, Any]) -> list[Event]:
        return [UserTranscript(text=frame.delta, final=False, item=name(frame.item_id), **at)]

    def _user_completed(self, frame: frames.UserCompleted, at: dict[str, Any]) -> list[Event]:
        return [UserTranscript(text=frame.transcript, final=True, item=name(frame.item_id), **at)]

    def _user_updated(self, frame: frames.UserUpdated, at: dict[str, Any]) -> list[Event]:
        text = frame.transcript if frame.transcript is not None else frame.delta or ""
        return [UserTranscript(text=text, final=False, item=name(frame.item_id), **at)]

    def _user_segment(self, frame: frames.UserSegment, at: dict[str, Any]) -> list[Event]:
        return [UserTranscript(text=frame.text, final=False, item=name(frame.item_id), **at)]

    def _user_failed(self, frame: frames.UserFailed, at: dict[str, Any]) -> list[Event]:
        # Not a PeerError: the answer is not concerned.
        note = note_of("transcription_failed", "the peer could not transcribe the user", frame.error, at)
        return [note, RawReceived(name=frames.name_of(frame), **at)]

    def _warned(self, frame: frames.Warned, at: dict[str, Any]) -> list[Event]:
        note = note_of("peer_warning", "the peer warns", frame.warning, at)
        return [note, RawReceived(name=frames.name_of(frame), **at)]

    def _response_created(self, frame: frames.ResponseCreated, at: dict[str, Any]) -> list[Event]:
        self._response, self._cut = name(frame.response.id), False
        return [ResponseStarted(response=self._response, **at)]

    def _audio_done(self, frame: frames.AudioDone, at: dict[str, Any]) -> list[Event]:
        response = name(frame.response_id)
        done = AudioDone(response=response, **at)
        if self._dialect.ends_on != "audio_done":
            return [done]
        cut, self._cut = self._cut, False
        self._answers.forget(response)
        return [done] if cut else [done, ResponseDone(response=response, **at)]

    def _interrupted(self, frame: frames.InterruptedByVad, at: dict[str, Any]) -> list[Event]:
        self._cut = True
        reason, response = "turn_detected", self._response
        return [
            Interrupted(reason=reason, response=response, **at),
            ResponseDone(response=response, status="cancelled", reason=reason, **at),
        ]

    def _response_cancelled(self, frame: frames.ResponseCancelled, at: dict[str, Any]) -> list[Event]:
        inner = frame.response.id if frame.response else None
        response = name(inner or frame.response_id or self._response)
        self._answers.forget(response)
        return [ResponseDone(response=response, status="cancelled", reason="client_cancelled", **at)]

    def _response_done(self, frame: frames.ResponseDone, at: dict[str, Any]) -> list[Event]:
        response = frame.response
        ident, status = name(response.id), name(response.status)
        status = "cancelled" if status == "canceled" else status
        details = response.status_details or frames.StatusDetails()
        error = details.error
        reason = name(details.reason) or (error_code(error) if error else "")
        events: list[Event] = []
        if status == "cancelled" and reason == "turn_detected":
            events.append(Interrupted(reason=reason, response=ident, **at))
        if error is not None:
            events.append(peer_error(error, at))
        usage = frame.usage if response.usage is None else response.usage
        usage = None if usage is None else carried(usage)
        events.append(ResponseDone(response=ident, status=status, reason=reason, usage=usage, **at))
        self._answers.forget(ident)
        return events

    def _item_added(self, frame: frames.OutputItemAdded, at: dict[str, Any]) -> list[Event]:
        # Some servers name the function here only, not with the arguments.
        if frame.item.call_id and frame.item.name:
            make_room(self._tools)
            self._tools[name(frame.item.call_id)] = name(frame.item.name)
        return [RawReceived(name=frames.name_of(frame), **at)]

    def _arguments_done(self, frame: frames.ArgumentsDone, at: dict[str, Any]) -> list[Event]:
        call = name(frame.call_id)
        return [
            ToolCall(call=call, name=name(frame.name) or self._tools.pop(call, ""), arguments=frame.arguments, **at)
        ]

    def _buffer(self, frame: frames.BufferEvent, at: dict[str, Any]) -> list[Event]:
        state = frames.name_of(frame).rpartition(".")[2]
        return [PlaybackState(state=state, response=name(frame.response_id), **at)]

    def _error(self, frame: frames.ErrorFrame, at: dict[str, Any]) -> list[Event]:
        if isinstance(frame.error, str):
            return [peer_error(frames.ErrorBody(code=frame.code, message=frame.error), at)]
        return [peer_error(frame.error, at)]

    # --- client to server -----------------------------------------------------------------------------------

    def replies(self) -> list[Message]:
        return []

    def encode(self, command: Command) -> list[Message]:
        """Frames that carry out `command`, in order. Raises ConfigError for a command that the dialect lacks."""
        return self._commands.encode(command)


_Handler = Callable[[OpenAIRealtimeClient, Any, dict[str, Any]], list[Event]]
_BY_KIND: dict[type[frames.Frame], _Handler] = {
    frames.TextDelta: OpenAIRealtimeClient._text,
    frames.TranscriptDelta: OpenAIRealtimeClient._text,
    frames.AudioDone: OpenAIRealtimeClient._audio_done,
    frames.TranscriptionDelta: OpenAIRealtimeClient._transcription,
    frames.ConversationCreated: OpenAIRealtimeClient._conversation_created,
    frames.SessionFinished: OpenAIRealtimeClient._finished,
    frames.UserUpdated: OpenAIRealtimeClient._user_updated,
    frames.UserSegment: OpenAIRealtimeClient._user_segment,
    frames.UserFailed: OpenAIRealtimeClient._user_failed,
    frames.ResponseCancelled: OpenAIRealtimeClient._response_cancelled,
    frames.InterruptedByVad: OpenAIRealtimeClient._interrupted,
    frames.Warned: OpenAIRealtimeClient._warned,
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
