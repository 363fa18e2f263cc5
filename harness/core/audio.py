"""Audio arithmetic: samples and nanoseconds, PCM16 and float, levels in short windows.

Signals are mono numpy arrays of shape (n,); float32 in [-1, 1) or int16. 0 dBFS is RMS 1.0, so a full-scale sine
is -3.01 dBFS. Resampling lives in `scenarios.clip`; playout and audibility in modules of their own.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Int16 = npt.NDArray[np.int16]
NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000
PCM16_BYTES = 2
SILENCE_FLOOR_DB = -120.0
"""Level printed for digital silence, below the quietest PCM16 step (-90 dBFS)."""


def samples_to_ns(samples: int, rate_hz: int) -> int:
    """Duration of `samples` at `rate_hz` in ns, rounded up: a sample exists only when its period has passed."""
    return -(-samples * NS_PER_S // rate_hz)


def ns_to_samples(duration_ns: int, rate_hz: int) -> int:
    """Whole samples that fit into `duration_ns` at `rate_hz`."""
    return duration_ns * rate_hz // NS_PER_S


def ms_to_samples(ms: float, rate_hz: int) -> int:
    """Nearest whole number of samples to `ms` milliseconds."""
    return round(ms * rate_hz / 1000)


def map_sample(index: int, rate_in_hz: int, rate_out_hz: int) -> int:
    """Where sample `index` of a clip lies after resampling the whole clip: round(i * out / in), halves to even."""
    return round(index * rate_out_hz / rate_in_hz)


def pcm16_to_int16(pcm: bytes | bytearray | memoryview) -> Int16:
    """Little-endian PCM16 bytes as an int16 array (a view where the machine allows). Odd lengths raise ValueError."""
    return np.frombuffer(pcm, dtype="<i2").astype(np.int16, copy=False)


def int16_to_pcm16(samples: Int16) -> bytes:
    """An int16 array as little-endian PCM16 bytes."""
    return samples.astype("<i2", copy=False).tobytes()


def int16_to_float(samples: Int16) -> Float32:
    """int16 to float32 in [-1, 1): divided by 32768."""
    return (samples.astype(np.float32) / np.float32(32768.0)).astype(np.float32, copy=False)


def float_to_int16(samples: npt.NDArray[Any]) -> Int16:
    """float in [-1, 1] to int16: times 32768, rounded to nearest, clipped at full scale."""
    return np.clip(np.rint(samples.astype(np.float64) * 32768.0), -32768, 32767).astype(np.int16)


def audio_sha256(samples: Int16) -> str:
    """sha256 of the little-endian PCM16 samples: the identity of a sound, whatever file holds it."""
    return hashlib.sha256(int16_to_pcm16(samples)).hexdigest()


def to_db(rms: float) -> float:
    """RMS (full scale 1.0) in dBFS, never below `SILENCE_FLOOR_DB`."""
    return max(SILENCE_FLOOR_DB, 20.0 * float(np.log10(max(rms, 1e-12))))


def window_power(samples: Int16, window: int, hop: int, *, remove_mean: bool = False) -> Float64:
    """Mean square (full scale 1.0) of each window of `window` samples, every `hop` samples.

    Returns shape (1 + (n - window) // hop,), or (0,) when the signal is shorter than a window. Sums are exact:
    they run over int64, so equal windows give equal figures wherever they stand. remove_mean takes each
    window's own mean off first (a constant offset is not sound).
    """
    n = len(samples)
    if n < window or window <= 0:
        return np.zeros(0, dtype=np.float64)
    x = samples.astype(np.int64)
    starts = np.arange(0, n - window + 1, hop)
    squares = np.concatenate(([0], np.cumsum(x * x)))
    total = (squares[starts + window] - squares[starts]).astype(np.float64)
    power = total / window
    if remove_mean:
        sums = np.concatenate(([0], np.cumsum(x)))
        mean = (sums[starts + window] - sums[starts]).astype(np.float64) / window
        power = np.maximum(power - mean * mean, 0.0)
    return np.asarray(power / (32768.0 * 32768.0), dtype=np.float64)


def db_to_power(db: float) -> float:
    """dBFS as mean square: 10 ** (db / 10)."""
    return float(10.0 ** (db / 10.0))
