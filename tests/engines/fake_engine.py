"""An engine that costs nothing and does on demand what bad ones do; `asr:tests.engines.fake_engine.Loudest:...`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

import numpy as np

from harness.core.errors import ConfigError
from harness.engines.clip_engine import Clip, EngineSpec

RATE_HZ = 8_000
RAISES, DIES = np.float32(-0.5), np.float32(-0.25)
"""A clip that begins with one of these makes the engine raise, or its process end."""


def clip(value: float, *, first: np.float32 | None = None, samples: int = 80) -> Clip:
    pcm = np.full(samples, value, np.float32)
    if first is not None:
        pcm[0] = first
    return Clip(pcm, RATE_HZ)


class Loudest:
    """MOS 1 + 4 * peak. spec.model: `unloadable`, `deadly` (dies on loading), or the size of a batch."""

    device: Literal["cpu", "cuda"] = "cpu"

    def __init__(self, spec: EngineSpec) -> None:
        self.name = "loudest, weights: random"
        self.fingerprint = f"loudest {spec.model}"
        self.batch = int(spec.model) if spec.model.isdigit() else 3
        self._model = spec.model

    def load(self) -> None:
        if self._model == "unloadable":
            raise ConfigError("these weights are no weights")
        if self._model == "deadly":
            os._exit(9)

    def run(self, clips: Sequence[Clip]) -> list[float]:
        for one in clips:
            if one.pcm[0] == RAISES:
                raise ZeroDivisionError("odd clip\nand a long story")
            if one.pcm[0] == DIES:
                os._exit(9)
        return [1.0 + 4.0 * float(np.abs(one.pcm).max()) for one in clips]
