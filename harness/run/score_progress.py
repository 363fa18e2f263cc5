"""How far the stages of scoring have got, each with its time left: a line on a terminal, now and then one elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self, TextIO

from harness.core.audio import NS_PER_S
from harness.core.clock import SystemClock
from harness.run.progress import duration

DRAW_EVERY_S = 0.2
PLAIN_EVERY_S = 30.0


class ScoreProgress:
    """Call it with (stage, done, total); leaving it clears the line."""

    def __init__(self, stream: TextIO | None = None, *, shown: bool = True) -> None:
        self._stream = stream or sys.stderr
        self._shown = shown
        self._terminal = self._stream.isatty()
        self._begun_s: dict[str, float] = {}
        self._counts: dict[str, tuple[int, int]] = {}
        self._clock = SystemClock()
        self._drawn_s = self._clock.now_ns() / NS_PER_S
        self._said = False

    def __call__(self, stage: str, done: int, total: int) -> None:
        now_s = self._clock.now_ns() / NS_PER_S
        self._begun_s.setdefault(stage, now_s)
        self._counts[stage] = (done, total)
        every_s = DRAW_EVERY_S if self._terminal else PLAIN_EVERY_S
        if not self._shown or now_s - self._drawn_s < every_s:
            return
        self._drawn_s = now_s
        self._said = True
        line = ", ".join(self._stage(name, now_s) for name in self._counts)
        self._stream.write(f"\r\x1b[K{line}" if self._terminal else line + "\n")
        self._stream.flush()

    def _stage(self, stage: str, now_s: float) -> str:
        done, total = self._counts[stage]
        spent_s = now_s - self._begun_s[stage]
        left = f", {duration(spent_s / done * (total - done))} left" if 0 < done < total else ""
        return f"{stage} {done}/{total}{left}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._said and self._terminal:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
