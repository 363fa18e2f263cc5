"""One progress line on a terminal: how far, how many failed, how long still. Costs microseconds, not milliseconds.

A drawing library would repaint in the measuring process; a single short write does not disturb it.
"""

from __future__ import annotations

import select
import sys
from typing import TextIO

from harness.core.clock import Clock
from harness.run.session_plan import SessionResult

PLAIN_EVERY_S = 15.0
"""Without a terminal a line is printed this often."""


class Progress:
    """Call it with each finished session; `end` leaves the terminal clean."""

    def __init__(self, clock: Clock, stream: TextIO = sys.stderr, *, shown: bool = True) -> None:
        self._clock = clock
        self._stream = stream
        self._shown = shown
        self._terminal = stream.isatty()
        self._begin_ns = clock.now_ns()
        self._said_ns = self._begin_ns
        self._failed = 0
        self._first: int | None = None

    def __call__(self, result: SessionResult, done: int, total: int) -> None:
        if self._first is None:
            self._first = done - 1
        self._failed += not result.answered
        now_ns = self._clock.now_ns()
        if not self._shown:
            return
        line = self._line(done, total, now_ns)
        if not self._takes_a_line():
            return
        if self._terminal:
            self._stream.write(f"\r\x1b[K{line}")
            self._stream.flush()
        elif now_ns - self._said_ns >= PLAIN_EVERY_S * 1e9 or done == total:
            self._said_ns = now_ns
            self._stream.write(line + "\n")
            self._stream.flush()

    def _takes_a_line(self) -> bool:
        """Whether a write would not wait: nobody may be reading, and the loop must not be held up by that."""
        try:
            return bool(select.select([], [self._stream.fileno()], [], 0)[1])
        except (OSError, ValueError):
            return True

    def say(self, line: str) -> None:
        """A line that stands for itself: why nothing happens for a while."""
        if self._shown and self._takes_a_line():
            self._stream.write(f"\r\x1b[K{line}\n" if self._terminal else line + "\n")
            self._stream.flush()

    def end(self) -> None:
        if self._shown and self._terminal and self._first is not None:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _line(self, done: int, total: int, now_ns: int) -> str:
        held = done - (self._first or 0)
        left_s = (now_ns - self._begin_ns) / 1e9 / max(1, held) * (total - done)
        failed = f", {self._failed} without an answer" if self._failed else ""
        return f"{done}/{total} sessions{failed}, {duration(left_s)} left"


def duration(seconds: float) -> str:
    """Seconds as a person reads them: 42 s, 3 min 05 s, 2 h 10 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
