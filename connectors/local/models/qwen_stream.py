"""The incremental way of Qwen's Omni models: thinker and talker stepped in turn, sound in blocks as frames come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from connectors.local.model import Audio, Output, Pause, Text
from connectors.local.models.qwen_steps import Thinker
from connectors.local.models.qwen_tokens import Pieces
from harness.core.audio import Float32


class Talker(Protocol):
    """Codec frames, one a step. done: no more steps. ready: the text that the next step reads is known."""

    @property
    def done(self) -> bool: ...

    @property
    def ready(self) -> bool: ...

    def step(self) -> Any | None:
        """One frame, or None if this step completed none."""


class Waves(Protocol):
    """Frames to sound."""

    def push(self, frame: Any) -> None: ...

    def take(self, final: bool = False) -> Iterator[Float32 | None]:
        """Sound that is ready, float32 (n,), and None after each step on the device. final: no more frames come."""


def stream(thinker: Thinker, talker: Talker, waves: Waves, pieces: Pieces) -> Iterator[Output]:
    """An answer. Every step on the device ends in a yield, so that an interruption waits for one step at most."""
    finished = False
    while not finished:
        if not thinker.done:
            text = pieces.push(thinker.step())
            yield Text(text) if text else Pause(0)
        if talker.ready:
            frame = talker.step()
            if frame is not None:
                waves.push(frame)
            yield Pause(0)
        for samples in waves.take(final=talker.done):
            yield Pause(0) if samples is None else Audio(samples)
        finished = thinker.done and talker.done
