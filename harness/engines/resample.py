"""Offline resampling of whole signals, delay-compensated; live streams are resampled elsewhere."""

from __future__ import annotations

import numpy as np
import soxr

from harness.core.audio import Float32

QUALITY = "HQ"
"""soxr's recipe: pass band to 0.91 of Nyquist, 20-bit precision, linear phase, so a constant delay."""


def resample(samples: Float32, rate_in_hz: int, rate_out_hz: int) -> Float32:
    """Mono float32, shape (n,), at `rate_in_hz` to shape (round(n * out / in),) at `rate_out_hz`.

    An event at sample i comes out at i * out / in (soxr's one-shot call removes its delay; a test holds it to that).
    """
    if rate_in_hz == rate_out_hz:
        return samples
    return np.asarray(soxr.resample(samples, rate_in_hz, rate_out_hz, quality=QUALITY), dtype=np.float32)
