"""What the agent makes of speech while it speaks itself: an interruption, no interruption, or nothing to it.

Decides from Silero's word on the user and from what is being heard of the agent; each decision is in the truth log.
A protocol's word that the user speaks empties a client's playout, so it is kept back until the agent yields.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

from connectors.agent.answering import Answering
from connectors.agent.shared import Shared
from harness.core.audio import NS_PER_MS, NS_PER_S, ms_to_samples

Verdict = Literal["turn", "ignored", "false_interruption"]
Decision = Literal["yield", "hold", "ignore", "resume", "backchannel", "greet"]
Stance = Literal["open", "waiting", "holding", "yielding"]
"""open: nothing to decide. waiting: the speech may become an interruption. holding: the agent speaks on. yielding: it
will stop, or has."""


class Manners:
    """The policy of session number `session`. tell_start, tell_stop: say that the user began, or stopped, at a sample.

    received: samples so far; rate_hz: of them, as now in force."""

    def __init__(
        self,
        session: int,
        answering: Answering,
        shared: Shared,
        *,
        tell_start: Callable[[int], None],
        tell_stop: Callable[[int], None],
    ) -> None:
        self._session = session
        self._answering = answering
        self._knobs = shared.knobs
        self._truth = shared.truth.add
        self._now_ns = shared.now_ns
        self._loop = asyncio.get_running_loop()
        self._tell_start = tell_start
        self._tell_stop = tell_stop
        self._stance: Stance = "open"
        self._began = 0
        self._ended: int | None = None
        self._told = False
        self._timer: asyncio.TimerHandle | None = None
        self._stop_ns = 0

    def speech_began(self, sample: int, received: int, *, may_interrupt: bool) -> None:
        """The user is heard to speak since `sample`. may_interrupt: the client lets speech stop an answer."""
        stops = self._timer is not None
        self._began, self._ended, self._told, self._stance = sample, None, False, "open"
        if stops:  # decided before a pause of the user
            self._stance = "yielding"
        elif not may_interrupt:
            self._tell()
        elif not self._answering.sounding:
            self._stop()
        elif not self._knobs.yields:
            self._stance = "holding"
            self.decide("hold", sample, received)
        elif self._knobs.min_interruption_ms and self._knobs.resume_ms is None:
            self._stance = "waiting"
        else:
            self._yield(received)

    def speech_goes_on(self, voiced_to: int, received: int, rate_hz: int) -> None:
        """Voice has been heard up to `voiced_to`."""
        if self._stance in ("waiting", "holding") and not self._answering.sounding:
            self._stance = "open"
            self._tell()
        elif self._stance == "waiting" and not self._short(voiced_to, rate_hz):
            self._yield(received)

    def speech_ended(self, sample: int, received: int, rate_hz: int) -> Verdict:
        """The user has been silent since `sample`: what his speech was."""
        stance, self._stance, self._ended = self._stance, "open", received
        sounding = self._answering.sounding
        if sounding and self._short(sample, rate_hz) and stance in ("waiting", "yielding"):
            self.close()
            self.decide("ignore", self._began, received)
            return "ignored"
        if stance == "yielding" and self._short(sample, rate_hz) and self._answering.cut is not None:
            self._tell_stop(received)
            self.decide("resume", self._began, received)
            return "false_interruption"
        if not (sounding or self._told):
            self._tell()
        if self._told:
            self._tell_stop(received)
        return "turn"

    def decide(self, decision: Decision, sample: int, received: int) -> int:
        """Log a decision; its instant."""
        now_ns = self._now_ns()
        self._truth(("policy", self._session, now_ns, decision, sample, received))
        return now_ns

    def close(self) -> None:
        """A stop that is still due never comes."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _short(self, end: int, rate_hz: int) -> bool:
        return end - self._began < ms_to_samples(self._knobs.min_interruption_ms, rate_hz)

    def _yield(self, received: int) -> None:
        self._stance = "yielding"
        self._stop_ns = self.decide("yield", self._began, received) + self._knobs.stop_delay_ms * NS_PER_MS
        self._stop_when_due()

    def _stop_when_due(self) -> None:
        self._timer = None
        wait_ns = self._stop_ns - self._now_ns() if self._knobs.stop_delay_ms else 0
        if wait_ns > 0:
            # uvloop rounds to whole milliseconds and may wake early: then this waits again.
            self._timer = self._loop.call_later(wait_ns / NS_PER_S, self._stop_when_due)
        else:
            self._stop()

    def _stop(self) -> None:
        self._tell()
        if self._ended is not None:
            self._tell_stop(self._ended)
        self._answering.interrupt()

    def _tell(self) -> None:
        if not self._told:
            self._told = True
            self._tell_start(self._began)
