"""An answer that is still being made: a `Plan` whose steps grow while `Answering` lets them out."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import Any

import numpy as np
import soxr

from connectors.agent.knobs import Knobs
from connectors.agent.plan import Plan, Step, closing_steps, payload_steps, sound_edges
from connectors.codecs.server import ServerEvents
from harness.core.audio import NS_PER_S, Int16, int16_to_pcm16, ms_to_samples

FAILED = "server_error"


class BrainAnswer:
    """Lays text and sound of a brain out as the wire's frames. plan: to be started at `from_ns`.

    number: of the answer in its session. grown: called when steps have come. Sound is cut into packets of `chunk_ms`;
    `delivery` holds it back to real time or to `burst_x` of it, from when the packet could leave.
    """

    def __init__(
        self,
        knobs: Knobs,
        events: ServerEvents,
        number: int,
        *,
        brain: str,
        from_ns: int,
        previous: str | None,
        now_ns: Callable[[], int],
        grown: Callable[[Plan], None],
    ) -> None:
        self._knobs = knobs
        self._events = events.of_turn(number)
        self._from_ns = from_ns
        self._now_ns = now_ns
        self._grown = grown
        self._steps: list[Step] = []
        self._rate_hz = self._events.mouth_rate_hz if events.continuous else knobs.audio_rate_hz
        self._resampler: Any = None
        self._pieces: list[str] = []
        self._pending = np.zeros(0, dtype=np.int16)
        self._last_ns = 0
        self._heard_ns = 0
        """When a listener without a buffer has heard all that was laid out, ns after `from_ns`."""
        self.plan = Plan(
            response=f"resp_{number}",
            item=f"item_a{number}",
            answer=brain,
            language="",
            transcript="",
            rate_hz=self._rate_hz,
            samples=0,
            status="completed",
            steps=self._steps,
            sound=self._pending,
            edges=None,
        )
        opened = self._events.response_opened(self.plan.response, self.plan.item, previous)
        self._steps += payload_steps(self._events, 0, "event", opened)

    def text(self, piece: str) -> None:
        """A piece of the answer's text."""
        if self._knobs.text == "none":
            return
        self.plan.transcript += piece
        if self._knobs.text == "after":
            self._pieces.append(piece)
            return
        self._write_text(piece, self._since())
        self._grown(self.plan)

    def sound(self, samples: Int16, rate_hz: int) -> None:
        """More of the answer's sound: int16, shape (n,)."""
        if rate_hz != self._rate_hz:
            if self._resampler is None:
                self._resampler = soxr.ResampleStream(rate_hz, self._rate_hz, 1, dtype="int16")
            samples = np.asarray(self._resampler.resample_chunk(samples), dtype=np.int16)
        self._keep(samples)
        chunk = ms_to_samples(self._knobs.chunk_ms, self._rate_hz)
        while len(self._pending) >= chunk:
            packet, self._pending = self._pending[:chunk], self._pending[chunk:]
            self._packet(packet)
        self._grown(self.plan)

    def finish(self) -> None:
        """The answer is whole."""
        if self._resampler is not None:
            rest = self._resampler.resample_chunk(np.zeros(0, dtype=np.int16), last=True)
            self._keep(np.asarray(rest, dtype=np.int16))
        if len(self._pending):
            self._packet(self._pending)
        end_ns = max(self._last_ns, self._since())
        for piece in self._pieces:
            self._write_text(piece, end_ns)
        done_ns = max(end_ns, self._heard_ns) if self._events.done_after_playout else end_ns
        plan = self.plan
        self._steps += closing_steps(self._events, plan.response, plan.item, plan.transcript, end_ns, done_ns)
        self.plan.edges = sound_edges(self.plan.sound, self._rate_hz)
        self._grown(self.plan)

    def fail(self, why: str) -> None:
        """There will be no more of it."""
        self.plan.status = "failed"
        error = {"type": FAILED, "code": FAILED, "message": why}
        at_ns = max(self._last_ns, self._since())
        closing = self._events.error_close(FAILED, why)
        if closing is not None:
            self._steps.append(Step(at_ns, "close", closing[1].encode()))
        else:
            done = self._events.response_done(self.plan.response, "failed", error=error)
            self._steps.append(Step(at_ns, "done", b"".join(self._events.frame(each) for each in done)))
        self._grown(self.plan)

    def _since(self) -> int:
        return max(0, self._now_ns() - self._from_ns)

    def _write_text(self, piece: str, at_ns: int) -> None:
        payloads = self._events.transcript_delta(self.plan.response, self.plan.item, piece)
        # Before sound that is held back; what has been written stands before it, as its instant is past.
        place = bisect.bisect_right(self._steps, at_ns, key=lambda step: step.at_ns)
        self._steps[place:place] = payload_steps(self._events, at_ns, "text", payloads)

    def _keep(self, samples: Int16) -> None:
        self._pending = np.concatenate((self._pending, samples))
        self.plan.sound = np.concatenate((self.plan.sound, samples))

    def _packet(self, samples: Int16) -> None:
        speed = 1.0 if self._knobs.delivery == "paced" else self._knobs.burst_x
        at_ns = max(self._since(), self._last_ns)
        length_ns = len(samples) * NS_PER_S // self._rate_hz
        pcm = int16_to_pcm16(samples)
        if self._events.continuous:
            self._steps.append(Step(at_ns, "audio", pcm, len(samples)))
        else:
            payloads = self._events.audio_delta(self.plan.response, self.plan.item, pcm, self._rate_hz)
            self._steps += payload_steps(self._events, at_ns, "audio", payloads, len(samples))
        self.plan.samples += len(samples)
        self._last_ns = at_ns + (round(length_ns / speed) if speed else 0)
        self._heard_ns = max(self._heard_ns, at_ns) + length_ns
