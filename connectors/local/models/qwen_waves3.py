"""Sound of Qwen3-Omni from frames of codes, block by block: a causal decoder, 12.5 frames of 16 codes a second.

The decoder's upsampling drops a constant number of samples at the end of whatever it decodes (555 at the real size):
they need the next frame. `chunked_decode` of transformers 5.24 therefore leaves a hole at each joint; here a block
goes on where the last one ended. Its attention reaches 72 frames back in each of 8 layers, so a window's short left
context changes the sound a little; how much is measured at load and in the model's facts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from connectors.local.models.qwen_blocks import Blocks
from harness.core.audio import Float32
from harness.engines.extras import require


class Waves3:
    """Sound of one answer."""

    def __init__(self, code2wav: Any, blocks: Blocks) -> None:
        self._torch = require("torch", "local")
        self._decoder = code2wav
        self._frame = int(code2wav.total_upsample)
        self._blocks = blocks
        self._frames: list[Any] = []
        self._sent = 0

    def push(self, frame: Any) -> None:
        """frame: (1, groups, 1)."""
        self._frames.append(frame)

    def take(self, final: bool = False) -> Iterator[Float32 | None]:
        """Decode what can be decoded: float32 of shape (n,) at 24 kHz, and None after each step on the device."""
        while (window := self._blocks.next(len(self._frames), final)) is not None:
            wave = self._decoder(self._torch.cat(self._frames[window.start : window.end], dim=-1)).reshape(-1)
            fresh = wave[self._sent - window.start * self._frame :]
            self._sent += len(fresh)
            yield fresh.float().cpu().numpy()
            yield None
