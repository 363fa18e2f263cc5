"""Reverberation by convolution with a room's impulse response, direct sound first.

Two ways, named in every record: `room` is an image-source shoebox by pyroomacoustics (extra `rooms`); `tail` is the
direct sound and Gaussian noise that decays by 60 dB in RT60 seconds (J. D. Polack's statistical model of a diffuse
field). Both end after RT60 seconds. Where none is named, `room` is taken if it is installed.
"""

from __future__ import annotations

import functools
import importlib.util
from typing import Any

import numpy as np

from harness.core.audio import Float64
from harness.core.errors import PrerequisiteError
from scenarios.impairments.noise import rms

TAIL_FROM_MS = 2
"""The tail of `tail` begins so long after the direct sound: the first reflection of a small room."""
DIRECT_TO_TAIL_DB = -9.0
"""Energy of the direct sound over that of the tail: about what `room` has at every RT60."""
REFERENCE_RT60_S = 0.4
ROOM_M = (6.0, 5.0, 3.0)
SOURCE_M = (2.0, 1.7, 1.5)
MICROPHONE_M = (4.1, 3.3, 1.2)
"""A living room whose walls give 0.4 s. Other times scale all its lengths, which keeps the walls, the balance of direct
and reverberant sound, and the number of image sources (about 200,000) as they are: 3 s is a hall."""
_SOUND_M_S = 343.0


def method(variant: str) -> str:
    """`room` or `tail`: as asked, or what this installation can do."""
    return variant or ("room" if importlib.util.find_spec("pyroomacoustics") else "tail")


def reverberate(x: Float64, response: Float64, span: slice) -> Float64:
    """`x` in the room, the whole tail included: shape (n + m - 1,). The level within `span` (the speech) is kept."""
    n = len(x) + len(response) - 1
    size = 1 << (n - 1).bit_length()
    wet = np.asarray(np.fft.irfft(np.fft.rfft(x, size) * np.fft.rfft(response, size), size)[:n], dtype=np.float64)
    level = rms(wet[span])
    return np.asarray(wet * (rms(x[span]) / level) if level > 0.0 else wet, dtype=np.float64)


def decaying_tail(rt60_s: float, rate_hz: int, random: np.random.Generator) -> Float64:
    """Impulse response `tail`, shape (RT60 * rate,): 1 at sample 0, then noise that is 9 dB stronger in all."""
    n = max(2, round(rt60_s * rate_hz))
    begin = min(n - 1, round(TAIL_FROM_MS * rate_hz / 1000))
    t = np.arange(n) / rate_hz
    tail = random.standard_normal(n) * 10.0 ** (-3.0 * t / rt60_s)
    tail[:begin] = 0.0
    tail *= 10.0 ** (-DIRECT_TO_TAIL_DB / 20.0) / np.sqrt(np.sum(np.square(tail)))
    tail[0] = 1.0
    return np.asarray(tail, dtype=np.float64)


@functools.lru_cache(maxsize=16)
def room(rt60_s: float, rate_hz: int) -> Float64:
    """Impulse response `room`, its direct sound at sample 0 and 1 high, read-only.

    Absorption and order of reflections by inverting Sabine's formula, as the package does. Raises PrerequisiteError
    where it is not installed.
    """
    pra = _pyroomacoustics()
    scale = rt60_s / REFERENCE_RT60_S
    size, source, microphone = ([scale * metres for metres in point] for point in (ROOM_M, SOURCE_M, MICROPHONE_M))
    absorption, order = pra.inverse_sabine(rt60_s, size, c=_SOUND_M_S)
    box = pra.ShoeBox(size, fs=rate_hz, materials=pra.Material(absorption), max_order=order)
    box.set_sound_speed(_SOUND_M_S)
    box.add_source(source)
    box.add_microphone(microphone)
    box.compute_rir()
    whole = np.asarray(box.rir[0][0], dtype=np.float64)
    distance_m = float(np.linalg.norm(np.subtract(source, microphone)))
    direct = round(distance_m / _SOUND_M_S * rate_hz) + pra.constants.get("frac_delay_length") // 2
    found: Float64 = whole[direct : direct + round(rt60_s * rate_hz)] / whole[direct]
    found.flags.writeable = False
    return found


def _pyroomacoustics() -> Any:
    try:
        import pyroomacoustics  # type: ignore[import-not-found]
    except ImportError as exc:
        raise PrerequisiteError("reverb:room needs pyroomacoustics: pip install 'firstpacket[rooms]'") from exc
    return pyroomacoustics


def response(variant: str, rt60_s: float, rate_hz: int, random: np.random.Generator) -> Float64:
    """Impulse response of `room` or `tail`. Raises PrerequisiteError where `room` is not installed."""
    return room(rt60_s, rate_hz) if variant == "room" else decaying_tail(rt60_s, rate_hz, random)
