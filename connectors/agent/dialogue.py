"""One session of the agent: hears the user, decides, and lets ready-made answers out at their instants.

Everything runs in callbacks of one loop: a message's arrival, or the timer of the next frame. No socket and no
protocol names here; those are the wire's and the codec's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from connectors.agent.answering import Answering
from connectors.agent.brain import BrainSession
from connectors.agent.conversation import Conversation
from connectors.agent.endpointer import PAUSE_MS, Endpointer, ScriptedEndpointer, SileroEndpointer
from connectors.agent.manners import Manners
from connectors.agent.shared import Shared
from connectors.agent.speaker import Speaker
from connectors.agent.wire import Wire
from connectors.codecs import openai_requests as requests
from connectors.codecs.openai_session import dig
from connectors.codecs.pcm_stream import PcmStream
from connectors.codecs.server import ServerSession
from harness.core.audio import PCM16_BYTES, ms_to_samples
from harness.core.commands import Configure

DEFAULT_SILENCE_MS = 500
LEAST_COMMIT_MS = 100
"""A commit of less is refused (protocol sheet, section 1.4)."""


class Dialogue:
    """One session, number `number` of the agent (from 1)."""

    def __init__(self, number: int, server: ServerSession, wire: Wire, shared: Shared) -> None:
        self._number = number
        self._server = server
        self._wire = wire
        self._knobs = shared.knobs
        self._shared = shared
        self._truth = shared.truth.add
        self._conversation = Conversation(server.events)
        self._answering = Answering(number, server.events, self._conversation, wire, shared)
        self._brain = self._new_brain()
        self._speaker = Speaker(number, server, self._answering, shared, fail=self._server_error, brain=self._brain)
        self._manners = Manners(number, self._answering, shared, tell_start=self._tell_start, tell_stop=self._tell_stop)
        self._loop = asyncio.get_running_loop()
        self._timers: list[asyncio.TimerHandle] = []
        self._stands = False
        self._held: list[tuple[bytes, int, bool]] | None = []
        self._input = PcmStream()
        self._received = 0
        self._turn_began = 0
        self._turns = 0
        self._endpointer: Endpointer | None = None
        self._early_at: int | None = None
        self._early_given = False
        self._nod_at: int | None = None
        self._read_stall_due = self._knobs.stall_read_ms > 0
        self._rate_hz = self._server.input_rate_hz
        self._handlers: dict[type[requests.Request], Callable[[Any, int], None]] = {
            requests.AppendInput: self._append,
            requests.SessionUpdate: self._update,
            requests.CommitInput: self._commit,
            requests.ClearInputBuffer: self._clear,
            requests.ResponseCreate: self._create,
            requests.ResponseCancel: self._cancel,
            requests.ClearOutput: self._clear_output,
            requests.ItemCreate: self._item,
            requests.ItemTruncate: self._item,
            requests.ItemDelete: self._item,
            requests.ItemRetrieve: self._item,
            requests.BargeIn: self._barge_in,
            requests.SessionClose: self._end_session,
        }

    # --- life -----------------------------------------------------------------------------------------------

    def open(self) -> None:
        """The connection stands: greet now, or later if told to be slow."""
        if self._knobs.slow_ready_ms:
            self._later(self._knobs.slow_ready_ms, self._greet)
        else:
            self._greet()
        if self._knobs.goaway_ms is not None:
            self._later(self._knobs.goaway_ms, self._go_away)

    def receive(self, data: bytes, t_ns: int, is_text: bool = True) -> None:
        """One message of the client, read at `t_ns`. What comes before our greeting waits for it."""
        if self._held is not None:
            self._held.append((data, t_ns, is_text))
            return
        for request in self._server.decode(data, is_text):
            if isinstance(request, requests.Invalid):
                self._refuse(request)
            else:
                self._handlers[type(request)](request, t_ns)

    def hear(self, pcm: bytes, t_ns: int) -> None:
        """User audio that did not come as a message: PCM16 at the session's input rate, received at `t_ns`."""
        if self._held is None:
            self._append(requests.AppendInput(audio=pcm), t_ns)

    def closed(self) -> None:
        """The connection is gone: nothing may fire any more."""
        self._answering.drop("close")
        self._manners.close()
        self._speaker.give_way()
        if self._brain is not None:
            self._brain.close()
        for timer in self._timers:
            timer.cancel()
        self._held = []

    def _greet(self) -> None:
        before_ns, after_ns = self._send(self._server.events.session("created", self._server.session))
        self._truth(("ready", self._number, before_ns, after_ns))
        held, self._held = self._held or [], None
        if self._wire.mouth is not None:
            self._wire.mouth.start()
        for data, t_ns, is_text in held:
            self.receive(data, t_ns, is_text)

    def _stand(self) -> None:
        """The settings are taken, or the first sound has come: speak first, if told to."""
        before, self._stands = self._stands, True
        if not (before or self._knobs.greet_ms is None or self._server.one_turn):
            self._speaker.greet(self._manners.decide("greet", self._received, self._received))

    def _go_away(self) -> None:
        self._send(self._server.events.go_away(0))
        self._truth(("error", self._number, self._shared.now_ns(), "session_expired"))
        self._answering.drop("close")
        self._wire.end(1001, "session expired")

    # --- what the user says ---------------------------------------------------------------------------------

    def _append(self, request: requests.AppendInput, t_ns: int) -> None:
        pcm = self._input.push(request.audio)
        first, began = self._received, self._turn_began
        end = self._received = first + len(pcm) // PCM16_BYTES
        self._truth(("append", self._number, t_ns, first, end, first - began, end - began))
        self._stand()
        if pcm and self._brain is not None:
            self._brain.hear(pcm, self._rate_hz, self._configure_brain)
        if pcm and self._server.detector is not None:
            self._listen(pcm, first)
        if self._wire.mouth is not None:
            self._wire.mouth.heard(end - first, self._rate_hz)
        if self._read_stall_due and end >= ms_to_samples(self._knobs.stall_read_at_ms, self._rate_hz):
            self._read_stall_due = False
            self._wire.stop_reading(self._knobs.stall_read_ms / 1000)

    def _listen(self, pcm: bytes, first: int) -> None:
        if self._endpointer is None:
            self._endpointer = self._new_endpointer(first)
        for heard in self._endpointer.push(pcm):
            if heard.kind == "start":
                self._speech_began(heard.sample)
            else:
                self._speech_ended(heard.sample)
        if self._early_at is not None and self._received >= self._early_at:
            self._answer_early(self._endpointer)
        voiced_to = self._endpointer.voiced_to
        if voiced_to is not None:
            self._manners.speech_goes_on(voiced_to, self._received, self._rate_hz)
            if self._nod_at is not None and voiced_to >= self._nod_at:
                self._nod(self._nod_at)

    def _new_endpointer(self, first: int) -> Endpointer:
        if self._knobs.endpoint_sample is not None:
            return ScriptedEndpointer(self._knobs.endpoint_sample, self._knobs.scripted_turns)
        asked = dig(self._server.detector, "silence_duration_ms")
        silence_ms = asked if isinstance(asked, int) and asked >= 0 else DEFAULT_SILENCE_MS
        if self._knobs.endpoint_ms is not None:
            silence_ms = self._knobs.endpoint_ms
        return SileroEndpointer(self._rate_hz, PAUSE_MS if self._knobs.pause_answer else silence_ms, first)

    def _speech_began(self, sample: int) -> None:
        self._truth(("speech_start", self._number, self._shared.now_ns(), sample))
        self._speaker.give_way()
        wanted = dig(self._server.detector, "interrupt_response") is not False
        self._manners.speech_began(sample, self._received, may_interrupt=wanted)
        if self._knobs.early_answer_ms is not None and not self._early_given:
            self._early_at = sample + ms_to_samples(self._knobs.early_answer_ms, self._rate_hz)
        if self._knobs.backchannel_after_ms is not None:
            self._nod_at = sample + ms_to_samples(self._knobs.backchannel_after_ms, self._rate_hz)

    def _tell_start(self, sample: int) -> None:
        padding = dig(self._server.detector, "prefix_padding_ms")
        began_ms = sample * 1000 // self._rate_hz - (padding if isinstance(padding, int) else 0)
        self._send(self._server.events.speech_started(self._next_user_item(), max(0, began_ms)))

    def _tell_stop(self, sample: int) -> None:
        """The end that the protocol reports is that of the audio in the turn, the silence that ended it included."""
        self._send(self._server.events.speech_stopped(self._next_user_item(), sample * 1000 // self._rate_hz))

    def _speech_ended(self, sample: int) -> None:
        self._nod_at = None
        self._end_turn(sample, self._knobs.endpointer)

    def _answer_early(self, endpointer: Endpointer) -> None:
        self._early_at = None
        self._early_given = True
        endpointer.forget()
        self._end_turn(self._received, "early", at_once=True)

    def _end_turn(self, sample: int, source: str, *, at_once: bool = False) -> None:
        decided_ns = self._shared.now_ns()
        self._truth(("endpoint", self._number, decided_ns, source, sample, self._received))
        if source != "early":
            self._early_at = None
            self._early_given = False
        verdict = self._manners.speech_ended(sample, self._received, self._rate_hz)
        if verdict == "ignored":
            self._turn_began = self._received
            return
        self._take_turn(sample if source == "scripted" else self._received)
        if verdict == "false_interruption":
            self._speaker.resume(decided_ns)
        elif dig(self._server.detector, "create_response") is not False:
            self._speaker.answer_next(decided_ns, at_once=at_once)

    def _commit(self, request: requests.CommitInput, t_ns: int) -> None:
        buffered = self._received - self._turn_began
        if buffered < ms_to_samples(LEAST_COMMIT_MS, self._rate_hz):
            message = f"buffer too small: {buffered * 1000 / self._rate_hz:.2f} ms of audio, at least 100 ms expected"
            self._refuse(_invalid("input_audio_buffer_commit_empty", message, request))
            return
        self._truth(("endpoint", self._number, t_ns, "commit", self._received, self._received))
        if self._endpointer is not None:
            self._endpointer.forget()
        self._take_turn(self._received)

    def _take_turn(self, end: int) -> None:
        item = self._speaker.after = self._next_user_item()
        self._turns += 1
        self._turn_began = end
        events = self._server.events
        self._send(events.committed(item, self._conversation.last))
        self._send(self._conversation.add(events.user_item(item)))
        if self._knobs.user_transcript:
            self._send(events.user_transcript(item, self._knobs.user_transcript))
        if self._brain is not None:
            self._brain.commit()

    # --- the brain ------------------------------------------------------------------------------------------

    def _new_brain(self) -> BrainSession | None:
        if self._shared.brain is None:
            return None
        return BrainSession(self._shared.brain, on_transcript=self._understood, on_stage=self._stage)

    def _configure_brain(self) -> Configure:
        """The client's settings, as far as a model takes them; the agent finds the ends of turns."""
        instructions = self._server.session.get("instructions")
        return Configure(
            turn="manual",
            language=self._server.language,
            instructions=instructions if isinstance(instructions, str) and instructions else None,
        )

    def _understood(self, text: str) -> None:
        self._send(self._server.events.user_transcript(self._speaker.after or self._next_user_item(), text))

    def _stage(self, name: str, t_ns: int) -> None:
        self._truth(("stage", self._number, t_ns, self._answering.active, name))

    def _clear(self, request: requests.ClearInputBuffer, t_ns: int) -> None:
        self._turn_began = self._received
        if self._endpointer is not None:
            self._endpointer.forget()
        self._send(self._server.events.cleared())

    # --- answers --------------------------------------------------------------------------------------------

    def _create(self, request: requests.ResponseCreate, t_ns: int) -> None:
        if self._answering.active is not None:
            message = f"Conversation already has an active response in progress: {self._answering.active}."
            self._refuse(_invalid("conversation_already_has_active_response", message, request))
        else:
            self._speaker.answer(t_ns)

    def _nod(self, due: int) -> None:
        """Say "mm-hm" while the user speaks; `due` at this sample."""
        every_ms = self._knobs.backchannel_every_ms
        self._nod_at = None if every_ms is None else due + ms_to_samples(every_ms, self._rate_hz)
        if not self._answering.busy:
            self._speaker.backchannel(self._manners.decide("backchannel", due, self._received))

    def _server_error(self) -> None:
        self._truth(("error", self._number, self._shared.now_ns(), "server_error"))
        self._error("server_error", "server_error", "The server had an error.")

    def _barge_in(self, request: requests.BargeIn, t_ns: int) -> None:
        self._truth(("speech_start", self._number, t_ns, self._received))
        self._answering.interrupt()

    def _end_session(self, request: requests.SessionClose, t_ns: int) -> None:
        self._send(self._server.events.session_closed())
        self._end(1000, "")

    def _cancel(self, request: requests.ResponseCancel, t_ns: int) -> None:
        active = self._answering.active
        if active is None or request.response_id not in (None, active):
            message = "Cancellation failed: no active response found"
            self._refuse(_invalid("response_cancel_not_active", message, request))
        else:
            self._answering.cancel("client_cancelled", "cancel")

    def _clear_output(self, request: requests.ClearOutput, t_ns: int) -> None:
        if self._wire.mouth is None:
            message = "output_audio_buffer.clear is for WebRTC: over a WebSocket the client keeps the buffer"
            self._refuse(_invalid("invalid_value", message, request))
        else:
            self._answering.silence()

    # --- settings and items ---------------------------------------------------------------------------------

    def _update(self, request: requests.SessionUpdate, t_ns: int) -> None:
        before = self._server.detector
        refused = self._server.update(request)
        if refused is not None:
            self._refuse(refused)
            return
        if self._server.detector != before or self._server.input_rate_hz != self._rate_hz:
            self._rate_hz = self._server.input_rate_hz
            self._endpointer = None
        self._send(self._server.events.session("updated", self._server.session))
        turn = "manual" if self._server.detector is None else "vad"
        language = self._server.language or ""
        declared = self._knobs.declared_rate_hz
        self._truth(("configured", self._number, t_ns, turn, language, self._rate_hz, declared))
        self._stand()

    def _item(self, request: requests.Request, t_ns: int) -> None:
        match request:
            case requests.ItemCreate():
                outcome = self._conversation.create(request)
            case requests.ItemTruncate():
                outcome = self._conversation.truncate(request)
            case requests.ItemDelete():
                outcome = self._conversation.delete(request)
            case requests.ItemRetrieve():
                outcome = self._conversation.retrieve(request)
            case _:
                raise TypeError(f"{type(request).__name__} is not about an item")
        if isinstance(outcome, requests.Invalid):
            self._refuse(outcome)
        else:
            self._send(outcome)

    # --- small ----------------------------------------------------------------------------------------------

    def _next_user_item(self) -> str:
        return f"item_u{self._turns + 1}"

    def _refuse(self, why: requests.Invalid) -> None:
        self._truth(("error", self._number, self._shared.now_ns(), why.code))
        self._error("invalid_request_error", why.code, why.message, echo=why.event_id)

    def _error(self, kind: str, code: str, message: str, *, echo: str | None = None) -> None:
        events = self._server.events
        self._send(events.error(kind, code, message, echo=echo))
        closing = events.error_close(code, message)
        if closing is not None:
            self._end(*closing)

    def _end(self, code: int, reason: str) -> None:
        """End the connection; what still comes is not heard."""
        self._answering.drop("close")
        self._held = []
        self._wire.end(code, reason)

    def _send(self, payloads: list[bytes]) -> tuple[int, int]:
        """Write them in one go; instants just before the first and after the last."""
        before_ns = self._shared.now_ns()
        written = [self._wire.write_frame(self._server.events.frame(payload)) for payload in payloads]
        return (written[0][0], written[-1][1]) if written else (before_ns, before_ns)

    def _later(self, ms: int, call: Callable[[], None]) -> None:
        self._timers.append(self._loop.call_later(ms / 1000, call))


def _invalid(code: str, message: str, request: requests.Request) -> requests.Invalid:
    return requests.Invalid(code=code, message=message, event_id=request.event_id)
