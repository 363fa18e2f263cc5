"""Edges by energy, worked out by hand at 8 kHz, where 1 ms is 8 samples and a window of 10 ms has 80."""

from __future__ import annotations

import numpy as np
import pytest

from harness.core.speech_edges import Edges, is_silent, loudest_window, speech_edges

pytestmark = pytest.mark.unit
RATE = 8_000


def square(n: int, amplitude: int) -> np.ndarray:
    return np.where(np.arange(n) % 16 < 8, amplitude, -amplitude).astype(np.int16)


SIGNAL = np.concatenate([np.zeros(800, np.int16), square(1600, 3277), np.zeros(800, np.int16)])
"""100 ms of silence, 200 ms at -20 dBFS, 100 ms of silence."""


def test_the_first_and_the_last_window_that_are_loud():
    # A window is loud with 1 ms of the sound in it: -20 - 10 dB, above -50 and -55. So 9 ms too early and too late.
    assert speech_edges(SIGNAL, RATE, 0, len(SIGNAL)) == Edges(800 - 72, 2400 + 72)
    # Looked for from sample 803 on: the next millisecond is 808.
    assert speech_edges(SIGNAL, RATE, 803, len(SIGNAL)) == Edges(808, 2472)
    assert speech_edges(SIGNAL, RATE, 0, 700) is None
    assert speech_edges(SIGNAL, RATE, 0, 79) is None


def test_what_is_known_to_be_louder_raises_the_bound():
    quiet = np.concatenate([square(800, 327), square(800, 3277)])  # -40, then -20 dBFS
    assert speech_edges(quiet, RATE, 0, 800) == Edges(0, 800)
    assert speech_edges(quiet, RATE, 0, 800, loudest=10**-0.6) == Edges(0, 800)  # -6 - 35 = -41 dBFS
    assert speech_edges(quiet, RATE, 0, 800, loudest=10**-0.4) is None  # -4 - 35 = -39 dBFS
    assert speech_edges(quiet, RATE, 0, 1600, loudest=10**-0.4) == Edges(800 - 72, 1600)


def test_silence_is_below_50_dbfs_in_every_window_and_an_offset_is_no_sound():
    assert is_silent(square(800, 103), RATE)  # -50.05 dBFS
    assert not is_silent(square(800, 104), RATE)  # -49.97 dBFS
    assert is_silent(np.full(800, 5000, np.int16), RATE)
    assert is_silent(np.zeros(0, np.int16), RATE)
    assert loudest_window(square(16, 3277), RATE) == pytest.approx(0.01, rel=1e-3)
    assert loudest_window(np.zeros(0, np.int16), RATE) == 0.0


def test_what_is_loud_at_the_edge_of_the_reach_begins_earlier():
    # Sound from 800 on, looked for from 1200 on.
    assert speech_edges(SIGNAL, RATE, 1200, len(SIGNAL)) == Edges(1200, 2472)
    assert speech_edges(SIGNAL, RATE, 1200, len(SIGNAL), back=0) == Edges(728, 2472)
    assert speech_edges(SIGNAL, RATE, 1200, len(SIGNAL), back=1004) == Edges(1008, 2472)
    # 20 ms of silence in between: what lies before them is something else.
    parted = np.concatenate([SIGNAL[:1000], np.zeros(160, np.int16), SIGNAL[1160:]])
    assert speech_edges(parted, RATE, 1200, len(SIGNAL), back=0) == Edges(1160 - 72, 2472)
    # Nothing is loud at the edge itself.
    assert speech_edges(SIGNAL, RATE, 400, len(SIGNAL), back=0) == Edges(728, 2472)
