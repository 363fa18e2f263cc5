"""The injected clock and its virtual twin."""

from __future__ import annotations

import pytest

from harness.core.clock import SystemClock, VirtualClock, wall_anchor

pytestmark = pytest.mark.unit


def test_system_clock_never_goes_back():
    clock = SystemClock()
    readings = [clock.now_ns() for _ in range(1000)]
    assert readings == sorted(readings)
    assert clock.resolution_ns >= 1


def test_virtual_clock_moves_forward_only():
    clock = VirtualClock(5)
    clock.advance_to(9)
    clock.advance_to(3)
    assert clock.now_ns() == 9


def test_wall_anchor_reads_the_given_clock():
    assert wall_anchor(VirtualClock(42)).monotonic_ns == 42
