"""Audio arithmetic against naive twins."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness.core import audio

pytestmark = pytest.mark.unit
signals = hnp.arrays(np.int16, st.integers(0, 400))


@settings(deadline=None)
@given(signals, st.integers(1, 60), st.integers(1, 20), st.booleans())
def test_window_power_equals_the_naive_sum(samples: audio.Int16, window: int, hop: int, remove_mean: bool):
    found = audio.window_power(samples, window, hop, remove_mean=remove_mean)
    x = samples.astype(np.float64) / 32768
    naive = []
    for start in range(0, len(x) - window + 1, hop):
        part = x[start : start + window]
        naive.append(np.mean((part - part.mean()) ** 2) if remove_mean else np.mean(part**2))
    assert len(found) == len(naive)
    np.testing.assert_allclose(found, naive, rtol=1e-9, atol=1e-12)


@settings(deadline=None)
@given(signals, st.integers(0, 300))
def test_window_power_is_the_same_wherever_the_window_stands(samples: audio.Int16, pad: int):
    padded = np.concatenate((np.full(pad, 12_345, dtype=np.int16), samples))
    whole = audio.window_power(padded, 24, 1, remove_mean=True)[pad:]
    np.testing.assert_array_equal(whole, audio.window_power(samples, 24, 1, remove_mean=True))


def test_levels():
    sine = audio.float_to_int16(np.sin(2 * np.pi * np.arange(2400) / 24))
    power = audio.window_power(sine, 240, 240)
    assert audio.to_db(float(np.sqrt(power[0]))) == pytest.approx(-3.01, abs=0.01)
    assert audio.to_db(0.0) == audio.SILENCE_FLOOR_DB
    assert audio.db_to_power(-40) == pytest.approx(1e-4)


@settings(deadline=None)
@given(st.integers(0, 10**9), st.sampled_from([8000, 11025, 16000, 22050, 24000, 44100, 48000]))
def test_samples_to_ns_rounds_up_and_comes_back(samples: int, rate_hz: int):
    exact = Fraction(samples * audio.NS_PER_S, rate_hz)
    found = audio.samples_to_ns(samples, rate_hz)
    assert 0 <= found - exact < 1
    assert audio.ns_to_samples(found, rate_hz) == samples


@settings(deadline=None)
@given(hnp.arrays(np.int16, st.integers(0, 100)))
def test_int16_survives_bytes_and_float(samples: audio.Int16):
    np.testing.assert_array_equal(audio.pcm16_to_int16(audio.int16_to_pcm16(samples)), samples)
    np.testing.assert_array_equal(audio.float_to_int16(audio.int16_to_float(samples)), samples)


def test_odd_byte_counts_are_refused():
    with pytest.raises(ValueError):
        audio.pcm16_to_int16(b"\x00\x01\x02")


def test_float_is_clipped_at_full_scale():
    assert audio.float_to_int16(np.array([2.0, -2.0, 1.0, -1.0])).tolist() == [32767, -32768, 32767, -32768]


def test_marks_map_by_rounding():
    assert audio.map_sample(44_100, 44_100, 24_000) == 24_000
    assert audio.map_sample(1, 16_000, 24_000) == 2  # 1.5, halves to even
    assert audio.map_sample(3, 16_000, 24_000) == 4  # 4.5


def test_identity_of_a_sound_is_that_of_its_bytes():
    samples = np.array([1, -2, 3], dtype=np.int16)
    assert audio.audio_sha256(samples) == audio.audio_sha256(samples.astype(">i2").astype(np.int16))
    assert audio.audio_sha256(samples) != audio.audio_sha256(samples[::-1])
