"""Resampling, delay-compensated: whole signals at once, and streams, whose output lags."""

from __future__ import annotations

import numpy as np
import soxr

from harness.core.audio import Float32, Int16

QUALITY = "HQ"
"""soxr's recipe: pass band to 0.91 of Nyquist, 20-bit precision, linear phase, so a constant delay."""


def resample(samples: Float32, rate_in_hz: int, rate_out_hz: int) -> Float32:
    """Mono float32, shape (n,), at `rate_in_hz` to shape (round(n * out / in),) at `rate_out_hz`.

    An event at sample i comes out at i * out / in (soxr's one-shot call removes its delay; a test holds it to that).
    """
    if rate_in_hz == rate_out_hz:
        return samples
    return np.asarray(soxr.resample(samples, rate_in_hz, rate_out_hz, quality=QUALITY), dtype=np.float32)


class StreamResampler:
    """A stream, block by block. Output sample k lies at input sample k * in / out, as with `resample`; it comes with
    the block that lies 20 to 30 ms later, the rest with `finish`."""

    def __init__(self, rate_in_hz: int, rate_out_hz: int) -> None:
        self.rate_in_hz = rate_in_hz
        same = rate_in_hz == rate_out_hz
        self._stream = None if same else soxr.ResampleStream(rate_in_hz, rate_out_hz, 1, dtype="int16", quality=QUALITY)

    def push(self, samples: Int16) -> Int16:
        """Take mono int16, shape (n,); return what is ready, shape (m,)."""
        return samples if self._stream is None else np.asarray(self._stream.resample_chunk(samples), dtype=np.int16)

    def finish(self) -> Int16:
        """The rest; nothing may be pushed after it."""
        if self._stream is None:
            return np.zeros(0, dtype=np.int16)
        return np.asarray(self._stream.resample_chunk(np.zeros(0, dtype=np.int16), last=True), dtype=np.int16)
