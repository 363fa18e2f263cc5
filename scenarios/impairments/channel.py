"""What a bad way from mouth to peer does: far field, lost packets, clipping. Float64, mono, shape (n,)."""

from __future__ import annotations

import numpy as np

from harness.core.audio import Float64, ms_to_samples
from scenarios.impairments.noise import rms

FRAME_MS = 20
"""Length of a lost packet: what telephony and WebRTC send by default."""
_ORDER = 4


def far_field(x: Float64, rate_hz: int, cutoff_hz: float) -> Float64:
    """Low-pass with a Butterworth magnitude of order 4 (-3 dB at the cutoff, 24 dB an octave), zero phase.

    Without phase there is no delay, so the clean clip's marks stay true. The level is not made up.
    """
    pad = round(4 * rate_hz / cutoff_hz)
    n = len(x) + 2 * pad
    spectrum = np.fft.rfft(np.pad(x, pad))
    gain = 1.0 / np.sqrt(1.0 + (np.fft.rfftfreq(n, 1.0 / rate_hz) / cutoff_hz) ** (2 * _ORDER))
    return np.asarray(np.fft.irfft(spectrum * gain, n)[pad : pad + len(x)], dtype=np.float64)


def lose(x: Float64, rate_hz: int, rate: float, random: np.random.Generator) -> Float64:
    """Silence round(rate * frames) of the clip's 20 ms frames, drawn without replacement; nothing is concealed."""
    frame = ms_to_samples(FRAME_MS, rate_hz)
    frames = -(-len(x) // frame)
    lost = x.copy()
    for index in random.permutation(frames)[: round(rate * frames)]:
        lost[int(index) * frame : (int(index) + 1) * frame] = 0.0
    return lost


def clip_peaks(x: Float64, threshold: float, span: slice) -> Float64:
    """Limit to +-`threshold` times the peak, then bring the level within `span` (the speech) back to what it was."""
    limit = threshold * float(np.max(np.abs(x), initial=0.0))
    if limit <= 0.0:
        return x
    flat = np.clip(x, -limit, limit)
    level = rms(flat[span])
    return np.asarray(flat * (rms(x[span]) / level) if level > 0.0 else x, dtype=np.float64)
