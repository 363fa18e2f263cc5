"""The query that calibration says: a tone of known length, all of it speech."""

from __future__ import annotations

from typing import Self

import numpy as np

from harness.core.audio import Int16, audio_sha256

TONE_HZ = 440
AMPLITUDE = 8_000


class CalibrationQuery:
    """`samples` at `rate_hz`: a tone of `duration_ms`; speech begins with its first sample and ends with its last."""

    text = ""
    language = ""
    annotator = "calibration"
    impairment = ""

    def __init__(self, duration_ms: int, rate_hz: int = 24_000) -> None:
        self.id = f"tone-{duration_ms}ms"
        self.rate_hz = rate_hz
        self._duration_ms = duration_ms
        n = rate_hz * duration_ms // 1000
        self.samples: Int16 = (AMPLITUDE * np.sin(2 * np.pi * TONE_HZ * np.arange(n) / rate_hz)).astype(np.int16)
        self.speech_start = 0
        self.speech_end = n
        self.sha256 = audio_sha256(self.samples)

    def at_rate(self, rate_hz: int) -> Self:
        return self if rate_hz == self.rate_hz else type(self)(self._duration_ms, rate_hz)
