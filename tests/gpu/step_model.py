"""Models to measure with: `StepModel` only computes (a stack of layers a token and its 80 ms), `Burst` only sends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from connectors.local.device import cpu_threads, place
from connectors.local.facts import model_facts
from connectors.local.model import Audio, Declaration, LocalModel, Output, Text
from connectors.local.random_weights import build

UNIT = 1920
WIDTH_DEPTH = {"big": (4096, 32), "tiny": (384, 6)}
"""`big`: the layers of a 7B model but for attention."""


class StepModel(LocalModel):
    """size, device, dtype as elsewhere; steps: of one answer."""

    def __init__(
        self, *, size: Literal["big", "tiny"] = "tiny", steps: int = 50, device: str = "auto", dtype: str = "auto"
    ) -> None:
        self._size = size
        self._steps = steps
        self._device = device
        self._dtype = dtype

    @property
    def declaration(self) -> Declaration:
        return Declaration(turns=("manual",), text="with_audio", step_limit_s=60.0)

    @property
    def facts(self) -> dict[str, Any]:
        return model_facts(self._at, weights="random", model=self._stack)

    def load(self) -> None:
        import torch

        self._torch = torch
        self._at = place(self._device, self._dtype)
        if self._at.device.type == "cpu":
            torch.set_num_threads(cpu_threads())
        width, depth = WIDTH_DEPTH[self._size]

        def stack() -> Any:
            layers = [
                part
                for _ in range(depth)
                for part in (
                    torch.nn.Linear(width, 4 * width, bias=False),
                    torch.nn.SiLU(),
                    torch.nn.Linear(4 * width, width, bias=False),
                    torch.nn.LayerNorm(width),
                )
            ]
            return torch.nn.Sequential(*layers, torch.nn.Linear(width, UNIT, bias=False))

        dtype = str(self._at.dtype).removeprefix("torch.")
        self._stack = build(stack, device=str(self._at.device), dtype=dtype)
        self._input = torch.ones(1, width, dtype=self._at.dtype, device=self._at.device)

    def warm_up(self) -> None:
        for _ in self.end_turn():
            pass

    def push_audio(self, pcm: Any) -> None:
        return None

    def end_turn(self) -> Iterator[Output]:
        with self._torch.inference_mode():
            for _ in range(self._steps):
                sound = self._torch.tanh(self._stack(self._input))[0].float().cpu().numpy()
                yield Text("a")
                yield Audio(sound)


class Burst(LocalModel):
    """megabytes: of one answer, in packets of `samples`, as fast as they leave."""

    def __init__(self, *, megabytes: int = 30, samples: int = 24_000) -> None:
        self._packet = np.full(samples, 1000, dtype=np.int16)
        self._packets = megabytes * 1_000_000 // self._packet.nbytes

    def push_audio(self, pcm: Any) -> None:
        return None

    def end_turn(self) -> Iterator[Output]:
        for _ in range(self._packets):
            yield Audio(self._packet)
