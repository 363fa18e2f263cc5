"""Playout: worked examples, a sample-by-sample queue as a second opinion, and invariants."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.audio import samples_to_ns
from harness.core.playout import Packet, Played, play

MS = 1_000_000
pytestmark = pytest.mark.unit


def packet(arrival_ms: float, ms: float, rate_hz: int = 1000, start: int = 0) -> Packet:
    return Packet(
        arrival_ns=round(arrival_ms * MS), samples=round(ms * rate_hz / 1000), rate_hz=rate_hz, sample_start=start
    )


def spans(played: list[Played]) -> list[tuple[float, float]]:
    return [(p.start_ns / MS, p.end_ns / MS) for p in played]


def test_burst_queues_up():
    heard = play([packet(10, 100), packet(11, 100), packet(12, 50)])
    assert spans(heard) == [(10, 110), (110, 210), (210, 260)]
    assert [p.underrun_ns for p in heard] == [0, 0, 0]
    assert [p.lead_ns / MS for p in heard] == [0, 99, 198]


def test_a_late_packet_is_an_underrun_and_shifts_the_rest():
    heard = play([packet(0, 20), packet(35, 20), packet(40, 20)])
    assert spans(heard) == [(0, 20), (35, 55), (55, 75)]
    assert [p.underrun_ns / MS for p in heard] == [0, 15, 0]


def test_a_packet_that_arrives_as_the_last_ends_is_no_underrun():
    assert [p.underrun_ns for p in play([packet(0, 20), packet(20, 20)])] == [0, 0]


def test_jitter_buffer_delays_the_first_and_each_packet_after_an_underrun():
    heard = play([packet(0, 20), packet(35, 20), packet(100, 20)], buffer_ns=30 * MS)
    assert spans(heard) == [(30, 50), (50, 70), (130, 150)]
    assert [p.underrun_ns / MS for p in heard] == [0, 0, 60]


def test_flush_cuts_what_sounds_and_drops_what_waits():
    heard = play([packet(0, 100), packet(1, 100), packet(2, 100)], flushes_ns=[150 * MS])
    assert spans(heard) == [(0, 100), (100, 150), (200, 200)]


def test_after_a_flush_playout_begins_anew_without_an_underrun():
    heard = play([packet(0, 100), packet(400, 100)], flushes_ns=[50 * MS])
    assert spans(heard) == [(0, 50), (400, 500)]
    assert heard[1].underrun_ns == 0


def test_a_flush_of_an_empty_queue_changes_nothing():
    heard = play([packet(0, 100), packet(400, 100)], flushes_ns=[200 * MS])
    assert spans(heard) == [(0, 100), (400, 500)]
    assert heard[1].underrun_ns == 300 * MS


def test_a_flush_at_the_arrival_comes_before_the_packet():
    heard = play([packet(0, 100), packet(50, 100)], flushes_ns=[50 * MS])
    assert spans(heard) == [(0, 50), (50, 150)]


def test_a_flush_while_the_jitter_buffer_fills():
    heard = play([packet(0, 20), packet(15, 20)], flushes_ns=[10 * MS], buffer_ns=30 * MS)
    assert spans(heard) == [(30, 30), (45, 65)]


def test_nothing_received_nothing_heard():
    assert play([], flushes_ns=[5]) == []


def test_instant_of_counts_received_samples():
    heard = play([packet(7, 20, start=500)])[0]
    assert heard.instant_of(500) == 7 * MS
    assert heard.instant_of(510) == 17 * MS


arrivals = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 80)), min_size=1, max_size=25
)  # gap to the packet before and length, ms


def packets_of(steps: list[tuple[int, int]]) -> list[Packet]:
    t, position, found = 0, 0, []
    for gap, ms in steps:
        t += gap
        found.append(packet(t, ms, start=position))
        position += ms
    return found


@settings(deadline=None)
@given(arrivals, st.integers(0, 50))
def test_starts_are_monotone_and_never_before_arrival(steps: list[tuple[int, int]], buffer_ms: int):
    heard = play(packets_of(steps), buffer_ns=buffer_ms * MS)
    for before, after in itertools.pairwise(heard):
        assert after.start_ns >= before.end_ns
        assert after.underrun_ns == after.start_ns - before.end_ns
    for played in heard:
        assert played.start_ns - played.packet.arrival_ns == played.lead_ns >= 0
        assert played.end_ns - played.start_ns == samples_to_ns(played.packet.samples, 1000)


def brute_force(packets: list[Packet], flushes_ms: list[int]) -> dict[int, int]:
    """Millisecond (and sample) by sample: which received sample sounds in each millisecond."""
    queue: list[int] = []
    heard: dict[int, int] = {}
    waiting = list(packets)
    for now in range(5000):
        if now in flushes_ms:
            queue.clear()
        while waiting and waiting[0].arrival_ns <= now * MS:
            first = waiting.pop(0)
            queue += range(first.sample_start, first.sample_start + first.samples)
        if queue:
            heard[now] = queue.pop(0)
    return heard


@settings(deadline=None)
@given(arrivals, st.lists(st.integers(0, 1500), max_size=4, unique=True).map(sorted))
def test_equals_a_queue_played_sample_by_sample(steps: list[tuple[int, int]], flushes_ms: list[int]):
    packets = packets_of(steps)
    model: dict[int, int] = {}
    for played in play(packets, flushes_ns=[f * MS for f in flushes_ms]):
        for t_ms in range(played.start_ns // MS, played.end_ns // MS):
            assert t_ms not in model
            model[t_ms] = played.packet.sample_start + t_ms - played.start_ns // MS
    assert model == brute_force(packets, flushes_ms)


@settings(deadline=None)
@given(arrivals, st.integers(0, 1500))
def test_nothing_that_was_there_is_heard_after_a_flush(steps: list[tuple[int, int]], flush_ms: int):
    for played in play(packets_of(steps), flushes_ns=[flush_ms * MS]):
        if played.packet.arrival_ns < flush_ms * MS:
            assert played.end_ns <= flush_ms * MS or played.end_ns == played.start_ns
        else:
            assert played.start_ns >= flush_ms * MS


@settings(deadline=None)
@given(arrivals, st.integers(-(10**15), 10**15))
def test_time_shift(steps: list[tuple[int, int]], shift_ns: int):
    packets = packets_of(steps)
    moved = [
        Packet(arrival_ns=p.arrival_ns + shift_ns, samples=p.samples, rate_hz=p.rate_hz, sample_start=p.sample_start)
        for p in packets
    ]
    assert [p.start_ns + shift_ns for p in play(packets)] == [p.start_ns for p in play(moved)]
