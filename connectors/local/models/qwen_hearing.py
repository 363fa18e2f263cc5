"""The user's side of a Qwen Omni session: audio of the present turn, in whole mel frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from connectors.local.model import Output
from harness.core.audio import Float32, Int16, int16_to_float, ms_to_samples

RATE_HZ = 16_000
FRAME = 160
"""Samples of a mel frame: 10 ms."""
SHORTEST = ms_to_samples(100, RATE_HZ)
SILENCE_MS = 600


class Hearing:
    """Audio since the last turn. vad: whether turns are found by voice activity (Silero), else they are told."""

    def __init__(self, vad: bool, silence_ms: int | None = None) -> None:
        self._told: list[Int16] = []
        self._ears: Any = None
        if vad:
            # Only here: where turns are told, the worker's Python need not have Silero.
            from connectors.local.models.cascade.ears import Ears

            self._ears = Ears(ends_turns=True, silence_ms=SILENCE_MS if silence_ms is None else silence_ms)

    def push(self, pcm: Int16) -> list[Output]:
        """int16 of shape (n,) at 16 kHz."""
        if self._ears is None:
            self._told.append(pcm)
            return []
        return list(self._ears.push(pcm))

    def take(self) -> Float32:
        """The turn, in [-1, 1), whole mel frames and no less than 100 ms: what lacks is silence."""
        heard = self._ears.take() if self._ears else int16_to_float(np.concatenate([_EMPTY, *self._told]))
        self._told = []
        length = max(SHORTEST, -(-len(heard) // FRAME) * FRAME)
        return np.pad(heard, (0, length - len(heard)))


_EMPTY = np.zeros(0, dtype=np.int16)
