"""How far work on many recordings has got: one line on a terminal, nothing anywhere else."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self, TextIO

from harness.core.audio import NS_PER_S
from harness.core.clock import SystemClock
from harness.run.progress import duration

QUIET_S = 2.0
"""Work that takes less than this says nothing."""


class ReplayProgress:
    """Call it with how many are done, of how many; leaving it clears the line. what: is done with them."""

    def __init__(self, stream: TextIO | None = None, *, shown: bool = True, what: str = "recordings looked at") -> None:
        self._what = what
        self._stream = stream or sys.stderr
        self._shown = shown and self._stream.isatty()
        self._clock = SystemClock()
        self._begin_ns = self._clock.now_ns()
        self._said = False

    def __enter__(self) -> Self:
        return self

    def __call__(self, done: int, total: int) -> None:
        spent_s = (self._clock.now_ns() - self._begin_ns) / NS_PER_S
        if not self._shown or spent_s < QUIET_S:
            return
        self._said = True
        left = duration(spent_s / done * (total - done))
        self._stream.write(f"\r\x1b[K{done}/{total} {self._what}, {left} left")
        self._stream.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._said:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
