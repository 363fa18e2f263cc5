"""The user's side as samples: clips on one timeline, silence between them. No clock, no sending."""

from __future__ import annotations

import numpy as np

from harness.core.audio import Int16


class UserStream:
    """A sample-addressed source of user audio (mono int16) that is taken in order, once.

    Clips that overlap are added up and clipped at full scale.
    """

    def __init__(self) -> None:
        self.position = 0
        """Index of the next sample that will be taken."""
        self._clips: list[tuple[int, Int16]] = []

    def put(self, samples: Int16, at: int | None = None) -> int:
        """Place a clip at sample `at` (default: next); return where it starts. The past cannot be changed."""
        start = self.position if at is None else max(at, self.position)
        self._clips.append((start, samples))
        return start

    def forget(self) -> None:
        """Drop what has been put and not been taken: a turn that was committed before its clip was over."""
        self._clips.clear()

    def take(self, n: int) -> Int16:
        """The next `n` samples, shape (n,)."""
        begin, end = self.position, self.position + n
        self.position = end
        if not self._clips:
            return np.zeros(n, dtype=np.int16)
        mixed = np.zeros(n, dtype=np.int32)
        for start, samples in self._clips:
            lo, hi = max(begin, start), min(end, start + len(samples))
            if lo < hi:
                mixed[lo - begin : hi - begin] += samples[lo - start : hi - start]
        self._clips = [(start, samples) for start, samples in self._clips if start + len(samples) > end]
        return np.clip(mixed, -32768, 32767).astype(np.int16)
