"""Sound of Qwen2.5-Omni from codec ids, block by block: a flow-matching transformer (DiT), then a BigVGAN vocoder.

The DiT's attention is cut into blocks of 24 mel frames (12 codec frames): most layers stay inside a block, two look
one back, one looks one ahead. As the flow is solved in 36 evaluations its reach grows with each, so no window short
of the whole answer is exact; what a window changes is measured at load and in the model's facts. The vocoder reaches
about 30 mel frames to each side, which the same window covers. Sources: `Qwen2_5OmniToken2WavModel` of transformers
5.24; Qwen2.5-Omni technical report (arXiv 2503.20215), section 2.4, for the windows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from connectors.local.models.qwen_blocks import Blocks, Window
from harness.core.audio import Float32
from harness.engines.extras import require

FRAME_SAMPLES = 480
"""50 codec frames a second at 24 kHz."""
SOLVER_POINTS = 10
GUIDANCE = 0.5
SWAY = -1.0
"""`Qwen2_5OmniToken2WavModel.forward`'s defaults: points of time of the flow, classifier-free guidance, sway."""


class Waves25:
    """Sound of one answer. voice: its `cond` and `ref_mel`, float32 on the device. seed: of the flow's noise, which
    depends on a frame's place only, not on the blocks."""

    def __init__(self, token2wav: Any, voice: dict[str, Any], blocks: Blocks, seed: int = 0) -> None:
        self._torch = require("torch", "local")
        self._dit = token2wav.code2wav_dit_model
        self._vocoder = token2wav.code2wav_bigvgan_model
        self._voice = voice
        self._device = voice["ref_mel"].device
        self._blocks = blocks
        self._codes: list[int] = []
        # On the CPU, as only there a longer draw begins like a shorter one.
        self._generator = self._torch.Generator().manual_seed(seed)
        self._noise: list[Any] = []

    def push(self, code: int) -> None:
        self._codes.append(code)
        self._noise.append(self._torch.randn((self._dit.repeats, self._dit.mel_dim), generator=self._generator))

    def take(self, final: bool = False) -> Iterator[Float32 | None]:
        """Decode what can be decoded: float32 of shape (n,) at 24 kHz, and None after each step on the device."""
        while (window := self._blocks.next(len(self._codes), final)) is not None:
            yield from self._decode(window)

    def _decode(self, window: Window) -> Iterator[Float32 | None]:
        codes = self._torch.tensor([self._codes[window.start : window.end]], device=self._device)
        value = self._torch.cat(self._noise[window.start : window.end]).unsqueeze(0).to(self._device)
        for begin, end in pairwise(self._times()):
            value = self._advance(value, codes, begin, end)
            yield None
        wave = self._vocoder(value.permute(0, 2, 1)).reshape(-1)
        first, last = (FRAME_SAMPLES * (frame - window.start) for frame in (window.first, window.last))
        yield wave[first:last].float().cpu().numpy()

    def _times(self) -> Any:
        times = self._torch.linspace(0, 1, SOLVER_POINTS, device=self._device)
        return times + SWAY * (self._torch.cos(self._torch.pi / 2 * times) - 1 + times)

    def _advance(self, value: Any, codes: Any, begin: Any, end: Any) -> Any:
        """One step of the Runge-Kutta method of fourth order, 3/8 rule."""
        step = end - begin
        k1 = self._flow(value, codes, begin)
        k2 = self._flow(value + step * k1 * (1 / 3), codes, begin + step * (1 / 3))
        k3 = self._flow(value + step * (k2 - k1 * (1 / 3)), codes, begin + step * (2 / 3))
        k4 = self._flow(value + step * (k1 - k2 + k3), codes, end)
        return value + (k1 + 3 * (k2 + k3) + k4) * step / 8

    def _flow(self, value: Any, codes: Any, time: Any) -> Any:
        condition = self._voice["cond"].unsqueeze(1).expand(1, value.shape[1], -1)
        guided, free = self._dit(
            hidden_states=value,
            quantized_code=codes,
            speaker_embedding=condition,
            condition_vector=self._voice["ref_mel"],
            time_step=time,
            apply_cfg=True,
        ).chunk(2)
        return guided + (guided - free) * GUIDANCE
