"""Noises, and mixing one into speech at a signal-to-noise ratio.

Signals are float64, mono, shape (n,), full scale 1.0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.core.audio import Float64, int16_to_float
from harness.core.errors import ConfigError
from scenarios.clip import Clip

BABBLE_VOICES = 6
"""Voices in a babble, where the pack has so many: enough that no single one can be followed."""
_PINK_FROM_HZ = 20.0


def white(n: int, random: np.random.Generator) -> Float64:
    """Gaussian white noise over the whole band, RMS 1."""
    return _unit(random.standard_normal(n))


def pink(n: int, rate_hz: int, random: np.random.Generator) -> Float64:
    """Noise whose power falls by 3 dB an octave from 20 Hz up (flat below), RMS 1."""
    spectrum = np.fft.rfft(random.standard_normal(n))
    spectrum /= np.sqrt(np.maximum(np.fft.rfftfreq(n, 1.0 / rate_hz), _PINK_FROM_HZ))
    return _unit(np.fft.irfft(spectrum, n))


def babble(n: int, rate_hz: int, voices: Sequence[Clip], random: np.random.Generator) -> Float64:
    """Several people at once, RMS 1: up to six of `voices`, each at the same speech level, looped from a random place.

    Raises ConfigError when there is no voice to mix.
    """
    if not voices:
        raise ConfigError("noise:babble needs other clips to mix, and this pack has none")
    chosen = random.permutation(len(voices))[:BABBLE_VOICES]
    mixed = np.zeros(n, dtype=np.float64)
    for index in chosen:
        voice = voices[int(index)].at_rate(rate_hz)
        samples = int16_to_float(voice.samples).astype(np.float64)
        samples /= max(rms(samples[voice.speech_start : voice.speech_end]), 1e-9)
        begin = int(random.integers(len(samples)))
        mixed += np.resize(np.roll(samples, -begin), n)
    return _unit(mixed)


def mix(speech: Float64, noise: Float64, snr_db: float, span: slice) -> Float64:
    """`speech` plus `noise` scaled so that within `span` (the speech) their power ratio is `snr_db`.

    Raises ConfigError when either is silent there.
    """
    signal, disturbance = rms(speech[span]), rms(noise[span])
    if signal <= 0.0 or disturbance <= 0.0:
        raise ConfigError(
            "no signal-to-noise ratio: " + ("the speech" if signal <= 0.0 else "the noise") + " is silent"
        )
    scale = signal / disturbance * 10.0 ** (-snr_db / 20.0)
    return np.asarray(speech + noise * scale, dtype=np.float64)


def rms(x: Float64) -> float:
    """Root mean square, full scale 1.0; 0 for nothing."""
    return float(np.sqrt(np.mean(np.square(x)))) if len(x) else 0.0


def _unit(x: Float64) -> Float64:
    level = rms(x)
    return np.asarray(x / level if level > 0.0 else x, dtype=np.float64)
