"""Offline resampling: an impulse comes out where it went in."""

from __future__ import annotations

import numpy as np
import pytest

from harness.engines.resample import resample

RATES = (8_000, 16_000, 22_050, 24_000, 44_100, 48_000)


@pytest.mark.unit
@pytest.mark.parametrize("rate_in", RATES)
@pytest.mark.parametrize("rate_out", RATES)
def test_impulse_keeps_its_place(rate_in: int, rate_out: int) -> None:
    signal = np.zeros(rate_in, dtype=np.float32)
    place = rate_in // 3 + 7
    signal[place] = 1.0
    out = resample(signal, rate_in, rate_out)
    energy = out.astype(np.float64) ** 2
    centre = float((np.arange(len(out)) * energy).sum() / energy.sum())
    assert len(out) == rate_out
    assert abs(centre - place * rate_out / rate_in) < 0.01
    assert abs(int(np.argmax(np.abs(out))) - place * rate_out / rate_in) <= 0.51


@pytest.mark.unit
def test_same_rate_is_the_same_signal() -> None:
    signal = np.linspace(-1, 1, 100, dtype=np.float32)
    assert resample(signal, 24_000, 24_000) is signal


@pytest.mark.unit
def test_a_tone_keeps_its_phase_and_level() -> None:
    t_in, t_out = np.arange(48_000) / 48_000, np.arange(16_000) / 16_000
    out = resample((0.5 * np.sin(2 * np.pi * 440 * t_in)).astype(np.float32), 48_000, 16_000)
    middle = slice(1_000, 15_000)
    np.testing.assert_allclose(out[middle], (0.5 * np.sin(2 * np.pi * 440 * t_out))[middle], atol=2e-4)
