"""A sound device on the virtual clock: it drifts, jitters, loses blocks, lies about its rate and dies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.core.audio import NS_PER_MS, NS_PER_S
from harness.live.device import Block, DeviceFacts


class SimulatedDevice:
    """Block k is handed on `latency_ms` after its last sample, and later by chance.

    true_hz: what it really runs at, if not at its word. lost: numbers of blocks that are lost. silent_from: number of
    the block that never comes, without a word. ended_from: the same, but it says so. captured: n samples from `at` on.
    """

    def __init__(
        self,
        pacer: Any,
        *,
        rate_hz: int = 48_000,
        block_ms: int = 10,
        ppm: float = 0.0,
        true_hz: float | None = None,
        latency_ms: float = 20.0,
        jitter_ms: float = 0.0,
        lost: frozenset[int] = frozenset(),
        silent_from: int | None = None,
        ended_from: int | None = None,
        captured: Callable[[int, int], Any] | None = None,
    ) -> None:
        self._pacer = pacer
        self.true_hz = (true_hz or rate_hz) * (1 + ppm * 1e-6)
        self._latency_ns = round(latency_ms * NS_PER_MS)
        self._jitter_ns = jitter_ms * NS_PER_MS
        self._lost, self._silent, self._ended = lost, silent_from, ended_from
        self._captured = captured or (lambda at, n: np.zeros(n, np.int16))
        self._random = np.random.default_rng(7)
        self._block = rate_hz * block_ms // 1000
        self._stopped = False
        self.played: list[Any] = []
        self.keep_played = False
        self.facts = DeviceFacts(
            input="Simulated microphone",
            output="Simulated loudspeaker",
            host="test",
            rate_hz=rate_hz,
            block_samples=self._block,
            input_latency_ms=latency_ms,
            output_latency_ms=15.0,
            anchor="simulated callback less its latency",
        )

    def captured_ns(self, sample: int) -> float:
        """The truth: when sample `sample` of the device was captured."""
        return self.start_ns + sample * NS_PER_S / self.true_hz

    def start(self, fill, deliver, ended) -> None:
        self._fill, self._deliver, self._ending = fill, deliver, ended
        self.start_ns = self._pacer.clock.now_ns()
        self._last_ns = 0
        self._next(0, overflow=False)

    def stop(self) -> None:
        self._stopped = True

    def _next(self, number: int, *, overflow: bool) -> None:
        late_ns = self._random.exponential(self._jitter_ns) if self._jitter_ns else 0
        due_ns = round(self.captured_ns((number + 1) * self._block) + self._latency_ns + late_ns)
        self._last_ns = max(self._last_ns, due_ns)
        self._pacer.call_at(self._last_ns, lambda: self._fire(number, overflow=overflow))

    def _fire(self, number: int, *, overflow: bool) -> None:
        if self._stopped or number == self._silent:
            return
        if number == self._ended:
            self._ending()
            return
        if number in self._lost:
            self._next(number + 1, overflow=True)
            return
        samples = self._captured(number * self._block, self._block)
        played, _ = self._fill(self._block)
        if self.keep_played:
            self.played.append(played)
        self._deliver(Block(samples, self._pacer.clock.now_ns(), played, overflow))
        self._next(number + 1, overflow=False)
