"""First audible sound: worked examples on the window grid, and shift invariance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.audibility import Audibility, audible_spans, first_audible_sample
from harness.core.audio import Int16, float_to_int16

pytestmark = pytest.mark.unit
RATE = 24_000
MS = RATE // 1000


def tone(ms: float, level: float = 0.3, rate_hz: int = RATE) -> Int16:
    n = round(ms * rate_hz / 1000)
    return float_to_int16(level * np.sin(2 * np.pi * 1000 * np.arange(n) / rate_hz))


def silence(ms: float, rate_hz: int = RATE) -> Int16:
    return np.zeros(round(ms * rate_hz / 1000), dtype=np.int16)


def test_digital_silence_is_never_audible():
    assert first_audible_sample(silence(2000), RATE) is None


def test_nothing_and_less_than_a_window():
    assert first_audible_sample(silence(0), RATE) is None
    assert first_audible_sample(tone(5), RATE) is None


def test_a_tone_is_audible_from_its_first_window_on():
    assert first_audible_sample(tone(200), RATE) == 0


def test_the_first_window_that_is_loud_enough_may_begin_in_the_silence():
    # -13.5 dBFS of tone: a window that holds 1 ms of it has -23.5 dBFS, so the first one begins 9 ms before the tone.
    assert first_audible_sample(np.concatenate((silence(100), tone(200))), RATE) == (100 - 9) * MS


def test_a_click_shorter_than_the_hold_is_no_sound():
    click = np.concatenate((silence(50), tone(30), silence(200)))
    assert first_audible_sample(click, RATE) is None
    assert first_audible_sample(np.concatenate((click, tone(100))), RATE) == (280 - 9) * MS


def test_hold_counts_windows_that_start_in_the_following_50_ms():
    # 51 windows of 10 ms at a hop of 1 ms span 60 ms; a tone of 60 ms alone has exactly that many.
    assert first_audible_sample(tone(60), RATE) == 0
    assert first_audible_sample(tone(59), RATE) is None


def test_threshold_is_on_the_rms():
    # A sine of amplitude a has RMS a / sqrt 2: -40 dBFS is a = 0.01414.
    assert first_audible_sample(tone(500, level=0.0145), RATE) is not None
    assert first_audible_sample(tone(500, level=0.0138), RATE) is None
    assert first_audible_sample(tone(500, level=0.0138), RATE, Audibility(threshold_db=-41.0)) is not None


def test_a_constant_offset_is_not_sound():
    assert first_audible_sample(np.full(RATE, 8000, dtype=np.int16), RATE) is None


@pytest.mark.parametrize("rate_hz", [8000, 11025, 16000, 22050, 44100, 48000])
def test_odd_rates(rate_hz: int):
    found = first_audible_sample(np.concatenate((silence(100, rate_hz), tone(200, rate_hz=rate_hz))), rate_hz)
    assert found is not None
    assert abs(found / rate_hz - 0.091) < 0.0015


def test_spans():
    signal = np.concatenate((silence(100), tone(200), silence(100), tone(30), silence(100), tone(100), silence(50)))
    first, second = audible_spans(signal, RATE)
    assert first == (91 * MS, 309 * MS)
    assert second == ((530 - 9) * MS, (630 + 9) * MS)
    assert first[0] == first_audible_sample(signal, RATE)


@settings(deadline=None)
@given(st.integers(0, 400), st.integers(0, 2**32 - 1))
def test_padding_by_k_ms_shifts_by_k_ms(k: int, seed: int):
    random = np.random.default_rng(seed)
    envelope = np.repeat(random.random(40) ** 3, 20 * MS)
    signal = np.concatenate((silence(20), float_to_int16(envelope * random.normal(0, 0.1, len(envelope)))))
    before, after = first_audible_sample(signal, RATE), first_audible_sample(np.concatenate((silence(k), signal)), RATE)
    assert (before is None) == (after is None)
    if before is not None and after is not None:
        assert after == before + k * MS
    moved = [(a + k * MS, b + k * MS) for a, b in audible_spans(signal, RATE)]
    assert audible_spans(np.concatenate((silence(k), signal)), RATE) == moved


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(60, 400))
def test_a_sound_found_in_a_prefix_is_the_first_of_the_whole(seed: int, cut_ms: int):
    random = np.random.default_rng(seed)
    envelope = np.repeat(random.random(25) ** 4, 20 * MS)
    signal = float_to_int16(envelope * random.normal(0, 0.2, len(envelope)))
    found = first_audible_sample(signal[: cut_ms * MS], RATE)
    if found is not None:
        assert found == first_audible_sample(signal, RATE)
