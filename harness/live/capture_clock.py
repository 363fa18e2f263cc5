"""When live samples were captured: anchors of sample and instant about once a second, against a drifting device. Pure.

A block is handed on some time after its last sample: never earlier than the device's latency, often later. Of each
second the block that came soonest after its sample is the anchor. In a second in which all came late (the machine was
busy) there is none, unless that lasts: then samples were lost. Timing definitions, section 1, speech_end of live audio.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.core.audio import NS_PER_MS, NS_PER_S, samples_to_ns

WINDOW_NS = NS_PER_S
LATE_NS = 3 * NS_PER_MS
"""An anchor so far behind the line of the one before is doubted: sound cards are within 1,000 ppm."""
DOUBTED = 2
"""So many seconds in a row may be doubted; in the next one the line is believed to have moved."""


class Anchor(NamedTuple):
    """Sample `sample` (counted from the source's first) was captured at `t_ns`."""

    sample: int
    t_ns: int


class CaptureClock:
    """One source of `rate_hz`. `take` every block; anchors that it returns stand for good, by ascending sample."""

    def __init__(self, rate_hz: int, latency_ns: int = 0) -> None:
        self._rate_hz = rate_hz
        self._latency_ns = latency_ns
        self.position = 0
        """Samples taken so far."""
        self._line: Anchor | None = None
        self._best: Anchor | None = None
        self._until_ns = 0
        self._doubted = 0
        self._broken_at: int | None = None

    def take(self, samples: int, handed_ns: int, *, lost: bool = False) -> list[Anchor]:
        """A block was handed on at `handed_ns`. lost: samples between it and the one before were lost."""
        found: list[Anchor] = []
        if lost and self.position:
            found = self.finish()
            self._broken_at = self.position
        self.position += samples
        seen = Anchor(self.position, handed_ns - self._latency_ns)
        if self._best is None:
            self._best, self._until_ns = seen, handed_ns + WINDOW_NS
        elif self._offset(seen) < self._offset(self._best):
            self._best = seen
        if handed_ns >= self._until_ns:
            found += self._close()
        return found

    def instant_of(self, sample: int) -> int | None:
        """When `sample` was (or will be) captured, as far as is known now; None before the first block."""
        known = self._best if self._line is None or self._broken_at is not None else self._line
        return None if known is None else self._along(known, sample)

    def finish(self) -> list[Anchor]:
        """The anchor of the second under way: no more blocks come, or what comes next lies elsewhere."""
        return [] if self._best is None else self._close()

    def _close(self) -> list[Anchor]:
        best, line, broken_at = self._best, self._line, self._broken_at
        assert best is not None
        self._best = None
        if broken_at is not None:
            self._line, self._broken_at, self._doubted = best, None, 0
            before = [] if line is None else [Anchor(broken_at, self._along(line, broken_at))]
            return [*before, Anchor(broken_at, self._along(best, broken_at)), best]
        if line is not None and best.t_ns - self._along(line, best.sample) > LATE_NS and self._doubted < DOUBTED:
            self._doubted += 1
            return []
        self._line, self._doubted = best, 0
        return [best]

    def _offset(self, anchor: Anchor) -> int:
        return anchor.t_ns - samples_to_ns(anchor.sample, self._rate_hz)

    def _along(self, anchor: Anchor, sample: int) -> int:
        return anchor.t_ns + (sample - anchor.sample) * NS_PER_S // self._rate_hz
