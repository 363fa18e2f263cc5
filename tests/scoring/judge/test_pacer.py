"""When the next request may leave."""

from __future__ import annotations

import pytest

from scoring.judge.pacer import Pacer


def test_without_limits_nothing_waits() -> None:
    pacer = Pacer()
    assert [pacer.take(10_000, 5.0) for _ in range(3)] == [0, 0, 0]


def test_requests_are_spaced_evenly() -> None:
    pacer = Pacer(requests_per_minute=120)
    assert [pacer.take(1, 10.0) for _ in range(3)] == [0.0, 0.5, 1.0]
    assert pacer.take(1, 20.0) == 0.0


def test_tokens_count_as_they_were_used() -> None:
    pacer = Pacer(tokens_per_minute=6_000)
    assert pacer.take(200, 0.0) == 0.0
    assert pacer.take(100, 0.0) == pytest.approx(2.0)
    pacer.settle(100, 400)
    assert pacer.take(1, 0.0) == pytest.approx(2.0 + 4.0)


def test_a_hold_comes_before_the_limits() -> None:
    pacer = Pacer(requests_per_minute=60)
    pacer.hold(8.0)
    pacer.hold(3.0)
    assert pacer.held(2.0) == 6.0
    assert [pacer.take(1, 2.0), pacer.take(1, 2.0)] == [6.0, 7.0]
    assert pacer.held(9.0) == 0.0
