"""How much a model may put out: a bucket that fills with its output and drains with time."""

from __future__ import annotations

from harness.core.audio import NS_PER_S
from harness.core.clock import Clock

AHEAD_BYTES = 64 << 20
"""So far may output run ahead of the drain: twenty minutes of 24 kHz audio in one burst."""
DRAIN_BYTES_PER_S = 1 << 20
"""Above what any declared rate needs in real time, so that a session without turns may last for ever."""
RECORD_BYTES = 256
"""What a record costs beside its bytes."""


class FloodError(RuntimeError):
    """The model puts out more than anybody could hear, or any recorder should keep."""


class Allowance:
    """Counts what one worker puts out."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._level = 0
        self._counted_ns = clock.now_ns()

    def take(self, size: int) -> None:
        """Count one record of `size` bytes that is about to leave. Raises FloodError when it is too much."""
        now_ns = self._clock.now_ns()
        drained = (now_ns - self._counted_ns) * DRAIN_BYTES_PER_S // NS_PER_S
        self._level = max(0, self._level - drained) + size + RECORD_BYTES
        self._counted_ns = now_ns
        if self._level > AHEAD_BYTES:
            raise FloodError(f"the model put out {AHEAD_BYTES >> 20} MB more than could be heard or read meanwhile")
