"""Watches the measuring loop itself: how late its ticks run, and how long the process waited for a core.

Every tick is a deadline on the pacer, like a send. Each window of 50 ms becomes one `LoopLag` event in every open
session, so the harness's own error stands in the recording beside what it may have disturbed.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.core.events import LoopLag
from harness.run.pacer import Deadline, Pacer
from harness.run.quiet import RunDelay

TICK_NS = 1_000_000
"""A stall is seen up to one tick too short, so a tick is well below the 2 ms from which a row counts as tainted."""
WINDOW_NS = 50_000_000
HALF_SLOT_NS = 500_000
"""Ticks fall between the senders' millisecond slots, so that they do not delay a send."""


class LoopWatch:
    """Ticks from `start` to `stop`; hands each window's `LoopLag` to `record`."""

    def __init__(self, pacer: Pacer, record: Callable[[LoopLag], None]) -> None:
        self._pacer = pacer
        self._record = record
        self._tick: Deadline | None = None
        self._window_ns = 0
        self._max_lag_ns = 0
        self._delay = RunDelay()
        self._run_delay_ns = 0

    def start(self) -> None:
        """Begin a fresh window at the next tick; what happened before (a collection between sessions) is forgotten."""
        if self._tick is not None:
            self._tick.cancel()
        self._max_lag_ns = 0
        now_ns = self._pacer.clock.now_ns()
        first_ns = now_ns + TICK_NS - now_ns % TICK_NS + HALF_SLOT_NS
        self._window_ns = first_ns
        self._run_delay_ns = self._delay.read_ns() or 0
        self._tick = self._pacer.call_at(first_ns, self._ticked)

    def stop(self) -> None:
        """No more ticks, for good."""
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None
        self._delay.close()

    def _ticked(self) -> None:
        if self._tick is None:
            return
        planned_ns = self._tick.t_ns
        now_ns = self._pacer.clock.now_ns()
        self._max_lag_ns = max(self._max_lag_ns, now_ns - planned_ns)
        if now_ns - self._window_ns >= WINDOW_NS:
            self._close_window(now_ns)
        missed = (now_ns - planned_ns) // TICK_NS
        self._tick = self._pacer.call_at(planned_ns + (missed + 1) * TICK_NS, self._ticked)

    def _close_window(self, now_ns: int) -> None:
        run_delay = self._delay.read_ns() or 0
        self._record(
            LoopLag(
                t_ns=now_ns,
                window_ns=now_ns - self._window_ns,
                max_lag_ns=self._max_lag_ns,
                run_delay_ns=run_delay - self._run_delay_ns,
            )
        )
        self._window_ns, self._max_lag_ns, self._run_delay_ns = now_ns, 0, run_delay
