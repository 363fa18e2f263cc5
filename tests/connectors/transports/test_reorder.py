"""The reorder buffer: whatever a network does to packets, they come out once, in order, with their own instants."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.transports.reorder import MAX_HELD, Arrived, ReorderBuffer

pytestmark = pytest.mark.unit
MS = 1_000_000
WAIT_NS = 40 * MS


def packet(number: int, t_ms: float, *, base: int = 0, ssrc: int = 7) -> Arrived:
    """Packet `number` of a stream whose sequence and timestamp begin at `base` below their wraps."""
    sequence, timestamp = (65_536 - base + number) % 65_536, (2**32 - base * 960 + number * 960) % 2**32
    return Arrived(round(t_ms * MS), ssrc, sequence, timestamp, number.to_bytes(4, "big"), 60)


def numbers(packets: list[Arrived]) -> list[int]:
    return [int.from_bytes(each.payload, "big") for each in packets]


def run(arrivals: list[Arrived], wait_ns: int = WAIT_NS) -> tuple[list[Arrived], ReorderBuffer]:
    buffer = ReorderBuffer(wait_ns)
    out: list[Arrived] = []
    for each in arrivals:
        out += buffer.push(each)
    end_ns = max((each.t_ns for each in arrivals), default=0)
    return out + buffer.flush(end_ns), buffer


def test_what_is_in_order_goes_out_at_once():
    buffer = ReorderBuffer(WAIT_NS)
    for number in range(5):
        assert numbers(buffer.push(packet(number, 20 * number))) == [number]
        assert buffer.deadline_ns is None
    assert (buffer.counts.delivered, buffer.counts.held_ns, buffer.counts.lost) == (5, 0, 0)


def test_a_missing_packet_is_waited_for_and_then_given_up():
    buffer = ReorderBuffer(WAIT_NS)
    buffer.push(packet(0, 0))
    assert buffer.push(packet(2, 40)) == []
    assert buffer.deadline_ns == 80 * MS
    assert buffer.expire(79 * MS) == []
    assert numbers(buffer.push(packet(3, 80))) == [2, 3]
    assert buffer.counts.lost == 1
    assert (buffer.counts.held_ns, buffer.counts.max_held_ns) == (40 * MS, 40 * MS)
    assert buffer.push(packet(1, 81)) == []  # too late by now
    assert (buffer.counts.late, buffer.counts.duplicates) == (1, 0)


def test_a_packet_that_comes_in_time_is_no_loss():
    buffer = ReorderBuffer(WAIT_NS)
    buffer.push(packet(0, 0))
    buffer.push(packet(2, 40))
    out = buffer.push(packet(1, 45))
    assert numbers(out) == [1, 2]
    assert [each.t_ns for each in out] == [45 * MS, 40 * MS]
    assert (buffer.counts.reordered, buffer.counts.lost, buffer.counts.max_held_ns) == (1, 0, 5 * MS)


def test_duplicates_are_told_from_late_packets():
    _, buffer = run([packet(0, 0), packet(0, 1), packet(2, 40), packet(2, 41), packet(1, 42), packet(1, 43)])
    assert (buffer.counts.duplicates, buffer.counts.late, buffer.counts.delivered) == (3, 0, 3)


def test_another_source_begins_anew():
    out, buffer = run([packet(0, 0), packet(2, 40), packet(900, 50, ssrc=8), packet(901, 70, ssrc=8)])
    assert numbers(out) == [0, 2, 900, 901]
    assert (buffer.counts.lost, buffer.counts.restarts) == (1, 1)


def test_a_jump_is_no_loss():
    out, buffer = run([packet(0, 0), packet(20_000, 20), packet(20_001, 40)])
    assert numbers(out) == [0, 20_000, 20_001]
    assert (buffer.counts.lost, buffer.counts.restarts) == (0, 1)


def test_no_more_than_a_bounded_number_waits():
    buffer = ReorderBuffer(10**15)
    buffer.push(packet(0, 0))
    for number in range(2, MAX_HELD + 10):
        buffer.push(packet(number, 0))
    assert buffer.counts.lost == 1
    assert buffer.counts.delivered == MAX_HELD + 9


BASES = st.sampled_from([0, 1, 5, 40, 65_000])


@given(BASES, st.lists(st.floats(0, 39), min_size=1, max_size=120))
def test_any_reordering_within_the_wait_is_undone(base: int, delays: list[float]):
    sent = [packet(number, 20 * number + delay, base=base) for number, delay in enumerate([0.0, *delays])]
    out, buffer = run(sorted(sent, key=lambda each: each.t_ns))
    assert out == sent  # instants included
    assert (buffer.counts.lost, buffer.counts.late) == (0, 0)
    assert buffer.counts.max_held_ns <= WAIT_NS


@given(BASES, st.randoms(use_true_random=False), st.sampled_from([0, 20, 40, 200]))
def test_loss_duplicates_and_any_delay(base: int, chance: random.Random, wait_ms: int):
    arrivals = [packet(0, 0, base=base)]
    came = {0}
    for number in range(1, 150):
        if chance.random() < 0.05:
            continue
        came.add(number)
        copies = 1 + (chance.random() < 0.05)
        arrivals += [packet(number, 20 * number + chance.uniform(0, 150), base=base) for _ in range(copies)]
    arrivals.sort(key=lambda each: each.t_ns)
    out, buffer = run(arrivals, wait_ms * MS)
    assert numbers(out) == sorted(set(numbers(out)))  # in order, none twice
    assert set(out) <= set(arrivals)  # untouched
    counts = buffer.counts
    assert counts.received == len(arrivals)
    assert counts.received == counts.delivered + counts.duplicates + counts.late
    assert counts.delivered + counts.lost == max(numbers(out)) + 1
    if wait_ms == 200:
        assert set(numbers(out)) == came


@given(st.randoms(use_true_random=False))
def test_a_longer_wait_changes_no_instant(chance: random.Random):
    arrivals = [
        packet(number, 20 * number + chance.uniform(0, 60))
        for number in range(100)
        if number == 0 or chance.random() > 0.05
    ]
    arrivals.sort(key=lambda each: each.t_ns)
    short, _ = run(arrivals, 20 * MS)
    long, _ = run(arrivals, 200 * MS)
    by_number = dict(zip(numbers(long), long, strict=True))
    assert all(by_number[number].t_ns == each.t_ns for number, each in zip(numbers(short), short, strict=True))
