"""One session with the model: carries out orders, steps the answer, stamps what comes. Knows nothing of processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import numpy as np

from connectors.local.inbox import Inbox
from connectors.local.model import (
    Audio,
    Done,
    LocalModel,
    Mark,
    Output,
    Pause,
    Session,
    Text,
    UserSpeechStarted,
    UserSpeechStopped,
    UserTranscript,
)
from connectors.local.outputs import as_int16, checked, declared, facts_of
from connectors.local.wire import Emitted, Ended, FromWorker
from harness.core import events
from harness.core.audio import Int16, int16_to_pcm16, pcm16_to_int16
from harness.core.clock import Clock
from harness.core.commands import AnyCommand, AppendAudio, Cancel, Commit, Configure, CreateResponse
from harness.core.events import AnyEvent


class Seat:
    """Holds one session after another with `model`, on the model's thread. whole: what has the weights, where that is
    another. send: hands a record to the harness."""

    def __init__(
        self,
        model: LocalModel,
        whole: LocalModel,
        name: str,
        inbox: Inbox,
        send: Callable[[FromWorker], None],
        clock: Clock,
    ) -> None:
        self._model = model
        self._whole = whole
        self._declaration = declared(whole)
        self._name = name
        self._inbox = inbox
        self._send = send
        self._clock = clock
        self.session = 0
        """The session that is on; 0: none."""
        self._vad = False
        self._pending = np.zeros(0, dtype=np.int16)
        self._answer: Iterator[Output] | None = None
        self._response = ""
        self._responses = 0
        self._spoke = False
        self._resume_ns = 0

    @property
    def due_ns(self) -> int | None:
        """When the next step of its answer is to be made; None without one."""
        return self._resume_ns if self._answer is not None else None

    def step(self) -> None:
        """The next step of the answer, if it is due."""
        if self._answer is None or self._resume_ns > self._clock.now_ns():
            return
        output = next(self._answer, None)
        produced_ns = self._clock.now_ns()
        if self._inbox.stop_waits(self.session):
            return
        if output is None:
            self._finish("completed", "")
        else:
            self._put_out(checked(output), produced_ns)

    def take(self, output: Output, produced_ns: int) -> None:
        """One output of a batch; too late once the session, or the answer, is about to end."""
        if self.session and not self._inbox.stop_waits(self.session):
            self._put_out(checked(output), produced_ns)

    # --- orders ---------------------------------------------------------------------------------------------------

    def end(self) -> None:
        self._stop("session_ended")
        self._send(Ended(self.session, facts_of(self._whole)))
        self.session = 0

    def begin(self, session: int, configure: Configure) -> None:
        self.session, self._vad = session, configure.turn == "vad"
        self._pending = np.zeros(0, dtype=np.int16)
        self._responses = 0
        self._emit(events.SessionReady(t_ns=0, phase="created", model=self._name))
        self._model.start(
            Session(
                turn=configure.turn,
                instructions=configure.instructions,
                voice=configure.voice,
                language=configure.language,
                silence_ms=configure.silence_ms,
                extra=configure.extra,
            )
        )
        rates = (self._declaration.input_rate_hz, self._declaration.output_rate_hz)
        ready = events.SessionReady(
            t_ns=0, phase="updated", model=self._name, input_rate_hz=rates[0], output_rate_hz=rates[1]
        )
        self._emit(ready)

    def command(self, command: AnyCommand) -> None:
        if isinstance(command, AppendAudio):
            self._pending = np.concatenate((self._pending, pcm16_to_int16(command.pcm)))
            unit = self._declaration.unit_samples or len(self._pending)
            while len(self._pending) >= unit > 0:
                block, self._pending = self._pending[:unit], self._pending[unit:]
                self._push(block)
        elif isinstance(command, Commit):
            # The tail of the turn may be shorter than the unit: the model gets it as it is.
            block, self._pending = self._pending, self._pending[:0]
            if len(block):
                self._push(block)
            self._emit(events.InputCommitted(t_ns=0))
        elif isinstance(command, CreateResponse):
            if not self._response:
                self._begin_answer()
            else:
                self._refuse("response_active", "an answer is under way already")
        elif isinstance(command, Cancel):
            if self._response:
                self._stop("client_cancelled")
            else:
                self._refuse("nothing_to_cancel", "no answer is under way")

    def _push(self, block: Int16) -> None:
        for output in self._model.push_audio(block) or ():
            produced_ns = self._clock.now_ns()
            checked(output)
            if isinstance(output, UserSpeechStarted):
                self._emit(events.UserSpeechStarted(t_ns=0, audio_ms=output.audio_ms), produced_ns)
                if self._vad and self._response:
                    self._emit(events.Interrupted(t_ns=0, reason="user_speech", response=self._response))
                    self._stop("turn_detected")
            elif isinstance(output, UserSpeechStopped):
                self._emit(events.UserSpeechStopped(t_ns=0, audio_ms=output.audio_ms), produced_ns)
                if self._vad:
                    self._emit(events.InputCommitted(t_ns=0))
                    self._stop("turn_detected")
                    self._begin_answer()
            else:
                self._put_out(output, produced_ns)

    # --- answers --------------------------------------------------------------------------------------------------

    def _begin_answer(self) -> None:
        self._open_response()
        steps = self._model.end_turn()
        if steps is None and self._declaration.sessions == 1:
            raise TypeError("end_turn of the model gave None: write it as a generator, with a yield for each output")
        self._answer = iter(steps) if steps is not None else None
        self._resume_ns = 0

    def _stop(self, reason: str) -> None:
        """Cut the answer off, if there is one."""
        if not self._response:
            return
        answer, self._answer = self._answer, None
        if answer is not None and hasattr(answer, "close"):
            answer.close()
        self._model.interrupt()
        self._finish("cancelled", reason)

    def _open_response(self) -> None:
        self._responses += 1
        self._response, self._spoke = f"{self.session}.{self._responses}", False
        self._emit(events.ResponseStarted(t_ns=0, response=self._response))

    def _finish(self, status: str, reason: str, usage: dict[str, int] | None = None) -> None:
        self._answer = None
        response, self._response = self._response, ""
        if not response:
            return
        if self._spoke:
            self._emit(events.AudioDone(t_ns=0, response=response))
        self._emit(events.ResponseDone(t_ns=0, response=response, status=status, reason=reason, usage=usage))

    def _put_out(self, output: Output, produced_ns: int) -> None:
        """Send one output; text and audio of a model with turns always belong to a response."""
        if isinstance(output, Pause):
            self._resume_ns = output.until_ns
            return
        if isinstance(output, Done):
            self._finish("completed", "", output.usage)
            return
        if isinstance(output, Text | Audio):
            produced_ns = output.produced_ns or produced_ns
            if not self._response and not self._declaration.continuous:
                self._open_response()
        if isinstance(output, Text):
            self._emit(
                events.TextReceived(t_ns=0, text=output.text, kind="token", response=self._response), produced_ns
            )
        elif isinstance(output, Audio):
            self._spoke = True
            samples = as_int16(output)
            packet = events.AudioReceived(
                t_ns=0,
                samples=len(samples),
                rate_hz=self._declaration.output_rate_hz,
                response=self._response,
                pcm=int16_to_pcm16(samples),
            )
            self._emit(packet, produced_ns)
        elif isinstance(output, UserTranscript):
            self._emit(events.UserTranscript(t_ns=0, text=output.text, final=output.final), produced_ns)
        elif isinstance(output, Mark):
            self._emit(events.RawReceived(t_ns=0, name=f"stage.{output.name}"), produced_ns)
        else:
            raise TypeError(f"the model yielded a {type(output).__name__} where none belongs")

    def _refuse(self, code: str, message: str) -> None:
        self._emit(events.PeerError(t_ns=0, code=code, message=message))

    def _emit(self, event: AnyEvent, produced_ns: int = 0) -> None:
        stamped = msgspec.structs.replace(event, produced_ns=produced_ns or self._clock.now_ns())
        self._send(Emitted(self.session, stamped))
