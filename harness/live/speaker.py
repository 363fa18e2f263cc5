"""What a live session's listener is to hear next: the agent's audio at the device's rate, in a queue. No device.

Filled by the session's loop, emptied by the device's thread. Without sound it gives silence.
"""

from __future__ import annotations

import threading
from collections import deque

import numpy as np

from harness.core.audio import Int16
from harness.engines.resample import StreamResampler

LIMIT_S = 600
"""Sound beyond this is dropped: a peer that sends for ever without being heard."""


class Speaker:
    """A queue of mono int16 at `rate_hz`."""

    def __init__(self, rate_hz: int) -> None:
        self.rate_hz = rate_hz
        self._lock = threading.Lock()
        self._queue: deque[Int16] = deque()
        self._queued = 0
        self._resampler: StreamResampler | None = None
        self.dropped = 0
        """Samples that found no room."""

    @property
    def queued(self) -> int:
        """Samples that are not taken yet."""
        return self._queued

    def put(self, samples: Int16, rate_hz: int) -> None:
        """Int16 of shape (n,) at `rate_hz`, after what is queued."""
        if self._resampler is None or self._resampler.rate_in_hz != rate_hz:
            self._resampler = StreamResampler(rate_hz, self.rate_hz)
        self._append(self._resampler.push(samples))

    def finish(self) -> None:
        """Nothing follows for now: what the resampler holds back is heard."""
        if self._resampler is not None:
            self._append(self._resampler.finish())
            self._resampler = None

    def flush(self) -> int:
        """Forget what is queued; how many samples those were."""
        with self._lock:
            self._queue.clear()
            self._resampler = None
            queued, self._queued = self._queued, 0
            return queued

    def take(self, n: int) -> tuple[Int16, int]:
        """The next `n` samples, shape (n,), silence where there is nothing; and how many are sound."""
        out = np.zeros(n, dtype=np.int16)
        at = 0
        with self._lock:
            while at < n and self._queue:
                head = self._queue.popleft()
                part = head[: n - at]
                out[at : at + len(part)] = part
                at += len(part)
                if len(part) < len(head):
                    self._queue.appendleft(head[len(part) :])
            self._queued -= at
        return out, at

    def _append(self, samples: Int16) -> None:
        if not len(samples):
            return
        with self._lock:
            if self._queued + len(samples) > LIMIT_S * self.rate_hz:
                self.dropped += len(samples)
                return
            self._queue.append(samples)
            self._queued += len(samples)
