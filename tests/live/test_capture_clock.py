"""Anchors of live audio: against drift, jitter, a busy machine and lost samples."""

from __future__ import annotations

import numpy as np
import pytest

from harness.live.capture_clock import CaptureClock

pytestmark = pytest.mark.unit
MS, S = 1_000_000, 1_000_000_000
RATE = 48_000
BLOCK = 480


def run(clock: CaptureClock, seconds: float, *, ppm: float = 0, late=lambda number: 0, lost=lambda number: False, at=0):
    """Feed 10 ms blocks; all anchors. late: ns by which block `number` is handed on too late."""
    anchors = []
    for number in range(at, at + round(seconds * 100)):
        if lost(number):
            continue
        due = round((number + 1) * BLOCK * S / (RATE * (1 + ppm * 1e-6)))
        anchors += clock.take(BLOCK, due + late(number), lost=lost(number - 1))
    return anchors


def test_the_soonest_block_of_each_second_is_the_anchor_less_the_latency() -> None:
    clock = CaptureClock(RATE, 30 * MS)
    anchors = run(clock, 3.1, late=lambda number: 0 if number % 50 == 20 else 4 * MS)
    # Windows begin with the blocks 0, 101 and 202: in each, block n * 50 + 20 came without delay.
    assert [anchor.sample for anchor in anchors] == [21 * BLOCK, 121 * BLOCK, 221 * BLOCK]
    assert [anchor.t_ns for anchor in anchors] == [210 * MS - 30 * MS, 1210 * MS - 30 * MS, 2210 * MS - 30 * MS]


def test_drift_is_followed() -> None:
    anchors = run(CaptureClock(RATE), 60, ppm=200)
    last = anchors[-1]
    assert last.t_ns == pytest.approx(last.sample * S / (RATE * 1.0002), abs=1000)
    # At the nominal rate it would be 200 ppm of a minute off.
    assert last.sample * S / RATE - last.t_ns > 11 * MS


def test_a_second_in_which_all_blocks_came_late_gives_no_anchor() -> None:
    anchors = run(CaptureClock(RATE), 6, late=lambda number: 20 * MS if 200 <= number < 330 else 0)
    assert len(anchors) == 4
    assert all(anchor.t_ns == anchor.sample * S // RATE for anchor in anchors)


def test_samples_that_were_lost_unsaid_move_the_line_after_three_seconds() -> None:
    anchors = run(CaptureClock(RATE), 10, late=lambda number: 20 * MS if number >= 200 else 0)
    moved = [anchor for anchor in anchors if anchor.t_ns == anchor.sample * S // RATE + 20 * MS]
    assert moved
    assert 4 * S < moved[0].t_ns < 5.2 * S
    assert anchors[-1] in moved


def test_samples_that_were_lost_make_a_step_where_they_were() -> None:
    clock = CaptureClock(RATE)
    anchors = run(clock, 4, lost=lambda number: 150 <= number < 155)
    at = 150 * BLOCK
    before, after = [anchor.t_ns for anchor in anchors if anchor.sample == at]
    assert (before, after) == (1500 * MS, 1550 * MS)
    assert [anchor.sample for anchor in anchors] == sorted(anchor.sample for anchor in anchors)


def test_instants_are_known_from_the_first_block_on() -> None:
    clock = CaptureClock(RATE, 30 * MS)
    assert clock.instant_of(0) is None
    clock.take(BLOCK, 100 * MS)
    assert clock.instant_of(0) == 60 * MS
    assert clock.instant_of(BLOCK) == 70 * MS


def test_jitter_of_a_loaded_machine_leaves_a_millisecond() -> None:
    random = np.random.default_rng(1)
    jitter = random.exponential(5 * MS, 6000)
    for anchor in run(CaptureClock(RATE), 60, ppm=-150, late=lambda number: round(jitter[number])):
        assert anchor.t_ns == pytest.approx(anchor.sample * S / (RATE * (1 - 150e-6)), abs=MS)
