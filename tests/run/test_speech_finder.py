"""Where speech is found to begin: by energy, around what the network says."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from harness.core.audio import Int16
from harness.engines.vad import FRAME_SAMPLES, StreamingVad, VadEvent, VadFrame
from harness.run.speech_finder import PRIME_FRAMES, Boundary, SpeechFinder

pytestmark = pytest.mark.unit

RATE = 16_000
MS = 1_000_000
HEARD_NS = 5_000 * MS
"""When the first sample of the sound is heard."""


class LateVad:
    """A network that takes `late` samples of speech for silence, and tells 64 ms later."""

    def __init__(self, first: int, late: int) -> None:
        self._from = PRIME_FRAMES * FRAME_SAMPLES + first + late
        self._pushed = 0
        self.speaking = False
        self.silence_from: int | None = None

    def reset(self) -> None:
        self._pushed = 0

    def push(self, samples: Int16) -> list[VadFrame]:
        self._pushed += len(samples)
        if self.speaking or self._pushed < self._from + 1024:
            return []
        self.speaking = True
        return [VadFrame(self._pushed, 1.0, VadEvent("start", self._from, self._pushed))]


def found(first_ms: int, late_ms: int, *, hum_ms: int = 0) -> list[Boundary]:
    """A tone from `first_ms` on, found `late_ms` late; before it, with a gap of 40 ms, `hum_ms` of another."""
    sound = np.zeros(RATE, dtype=np.int16)
    sound[first_ms * 16 :] = 9000 * np.sin(2 * np.pi * 220 * np.arange(len(sound) - first_ms * 16) / RATE)
    hum = np.arange(hum_ms * 16)
    sound[(first_ms - 40 - hum_ms) * 16 : (first_ms - 40) * 16] = 9000 * np.sin(2 * np.pi * 220 * hum / RATE)
    finder = SpeechFinder(cast(StreamingVad, LateVad(first_ms * 16, late_ms * 16)))
    for _ in range(PRIME_FRAMES):
        finder.prime()
    told: list[Boundary] = []
    for at in range(0, len(sound), FRAME_SAMPLES):
        told += finder.hear(sound[at : at + FRAME_SAMPLES], RATE, HEARD_NS + at * 1_000_000_000 // RATE)
    return told


@pytest.mark.parametrize("late_ms", [0, 90, 130, 190])
def test_speech_runs_back_as_far_as_in_a_finished_recording(late_ms: int) -> None:
    """A window of 10 ms is loud from about 8 ms before the tone on; nothing is found late by the network's delay."""
    first, *again = found(400, late_ms)
    assert first.kind == "start"
    assert again == []
    assert HEARD_NS + 388 * MS <= first.t_ns <= HEARD_NS + 400 * MS


def test_it_does_not_run_back_beyond_250_ms_nor_over_a_gap() -> None:
    (first,) = found(400, 300)
    assert HEARD_NS + 449 * MS <= first.t_ns <= HEARD_NS + 451 * MS
    (first,) = found(400, 150, hum_ms=60)
    assert HEARD_NS + 388 * MS <= first.t_ns <= HEARD_NS + 400 * MS
