"""Sounds that are no speech, made with numpy from a seed: coughs and other noises of a room. No recordings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from harness.core.audio import Float32, Float64, ms_to_samples
from scenarios.packs.recipes_duplex import Noise, NoiseRecipe


def make_noise(recipe: NoiseRecipe, rate_hz: int) -> Float32:
    """The sound, float32 mono, shape (n,), peak 1.0; the same seed gives the same samples."""
    generator = np.random.Generator(np.random.PCG64(recipe.seed))
    samples = _SOUNDS[recipe.sound](generator, rate_hz)
    return np.asarray(samples / np.abs(samples).max(), dtype=np.float32)


def _band(generator: np.random.Generator, ms: float, low_hz: float, high_hz: float, rate_hz: int) -> Float64:
    """White noise limited to a band, with soft edges of a third of an octave."""
    n = ms_to_samples(ms, rate_hz)
    spectrum = np.fft.rfft(generator.standard_normal(n))
    hz = np.fft.rfftfreq(n, 1 / rate_hz)
    octaves = np.log2(np.maximum(hz, 1.0))
    rise = np.clip((octaves - np.log2(low_hz)) * 3 + 1, 0, 1)
    fall = np.clip((np.log2(high_hz) - octaves) * 3 + 1, 0, 1)
    return np.asarray(np.fft.irfft(spectrum * rise * fall, n), dtype=np.float64)


def _burst(sound: Float64, attack_ms: float, decay_ms: float, rate_hz: int) -> Float64:
    """A sound with a linear attack and an exponential decay."""
    t_ms = np.arange(len(sound)) * 1000 / rate_hz
    return np.asarray(sound * np.minimum(t_ms / attack_ms, 1) * np.exp(-t_ms / decay_ms), dtype=np.float64)


def _gap(ms: float, rate_hz: int) -> Float64:
    return np.zeros(ms_to_samples(ms, rate_hz))


def _cough(generator: np.random.Generator, rate_hz: int) -> Float64:
    """Two expulsions: a sharp wide burst, then a longer, darker one."""
    pieces = []
    for length_ms in (320, 380):
        sharp = _burst(_band(generator, length_ms, 400, 6000, rate_hz), 8, 45, rate_hz)
        dark = _burst(_band(generator, length_ms, 150, 1800, rate_hz), 40, 110, rate_hz)
        pieces += [sharp + dark, _gap(140, rate_hz)]
    return np.concatenate(pieces[:-1])


def _throat(generator: np.random.Generator, rate_hz: int) -> Float64:
    """A rough low noise, chopped at 28 Hz."""
    sound = _band(generator, 550, 120, 1400, rate_hz)
    t_s = np.arange(len(sound)) / rate_hz
    rough = 0.55 + 0.45 * np.sin(2 * np.pi * 28 * t_s)
    return _burst(sound * rough, 60, 260, rate_hz)


def _sneeze(generator: np.random.Generator, rate_hz: int) -> Float64:
    """A short breath in, then a burst of high noise."""
    breath = 0.15 * _burst(_band(generator, 250, 800, 5000, rate_hz), 150, 400, rate_hz)
    burst = _burst(_band(generator, 450, 900, 9000, rate_hz), 10, 120, rate_hz)
    return np.concatenate([breath, _gap(60, rate_hz), burst])


def _door(generator: np.random.Generator, rate_hz: int) -> Float64:
    """A thud with a click on top."""
    thud = _burst(_band(generator, 500, 40, 300, rate_hz), 4, 90, rate_hz)
    click = _burst(_band(generator, 500, 1000, 5000, rate_hz), 1, 12, rate_hz)
    return thud + 0.4 * click


def _keyboard(generator: np.random.Generator, rate_hz: int) -> Float64:
    """Fourteen key strokes at uneven distances."""
    pieces = []
    for _ in range(14):
        pieces.append(_burst(_band(generator, 45, 1500, 8000, rate_hz), 1, 8, rate_hz) * generator.uniform(0.5, 1.0))
        pieces.append(_gap(float(generator.uniform(50, 140)), rate_hz))
    return np.concatenate(pieces[:-1])


def _hum(generator: np.random.Generator, rate_hz: int) -> Float64:
    """Two seconds of a ventilator: low noise that swells and fades."""
    sound = _band(generator, 2000, 80, 700, rate_hz)
    return np.asarray(sound * np.hanning(len(sound)) ** 0.5, dtype=np.float64)


_SOUNDS: dict[Noise, Callable[[np.random.Generator, int], Float64]] = {
    "cough": _cough,
    "throat": _throat,
    "sneeze": _sneeze,
    "door": _door,
    "keyboard": _keyboard,
    "hum": _hum,
}
