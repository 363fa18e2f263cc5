"""Absolute deadlines: never early, never drifting, on the virtual clock and on real timers."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.clock import SystemClock
from harness.run.pacer import Pacer, Slots
from harness.run.timers import PortableTimer, TimerfdTimer, has_timerfd, system_timer
from harness.run.virtual import run_virtual, virtual_timer


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=50))
def test_virtual_deadlines_fire_exactly_and_in_order(deadlines: list[int]) -> None:
    async def main(clock):
        pacer = Pacer(clock, virtual_timer)
        fired: list[tuple[int, int]] = []
        for t_ns in deadlines:
            pacer.call_at(t_ns, lambda t_ns=t_ns: fired.append((t_ns, clock.now_ns())))
        await pacer.until(max(deadlines))
        await pacer.until(max(deadlines) + 1)
        return fired

    fired = run_virtual(main)
    assert fired == [(t_ns, t_ns) for t_ns in sorted(deadlines)]


def test_an_early_timer_is_not_believed() -> None:
    """A timer that wakes before its deadline (uvloop's do) must not let a callback run early."""

    class EarlyTimer:
        def __init__(self, on_wake, clock) -> None:
            self.loop = asyncio.get_running_loop()
            self.on_wake, self.clock, self.handle = on_wake, clock, None

        def arm(self, deadline_ns: int) -> None:
            if self.handle:
                self.handle.cancel()
            left_s = max(0.0, (deadline_ns - self.clock.now_ns()) / 1e9)
            self.handle = self.loop.call_later(left_s * 0.7, self.on_wake)

        def close(self) -> None:
            if self.handle:
                self.handle.cancel()

    async def main() -> list[int]:
        clock = SystemClock()
        pacer = Pacer(clock, EarlyTimer)
        early: list[int] = []
        base = clock.now_ns()
        for k in range(1, 30):
            t_ns = base + k * 3_000_000
            pacer.call_at(t_ns, lambda t_ns=t_ns: early.append(clock.now_ns() - t_ns))
        await pacer.until(base + 100_000_000)
        pacer.close()
        return early

    lateness = asyncio.run(main())
    assert len(lateness) == 29
    assert min(lateness) >= 0


@pytest.mark.parametrize(
    "timer",
    [
        pytest.param(
            lambda wake, clock: TimerfdTimer(wake),
            marks=pytest.mark.skipif(not has_timerfd(), reason="no timerfd on this system"),
            id="timerfd",
        ),
        pytest.param(PortableTimer, id="portable"),
    ],
)
def test_real_timers_are_never_early(timer) -> None:
    async def main() -> list[int]:
        clock = SystemClock()
        pacer = Pacer(clock, timer)
        lateness: list[int] = []
        base = clock.now_ns()
        rng = random.Random(1)
        for _ in range(200):
            t_ns = base + rng.randrange(0, 300_000_000)
            pacer.call_at(t_ns, lambda t_ns=t_ns: lateness.append(clock.now_ns() - t_ns))
        await pacer.until(base + 301_000_000)
        pacer.close()
        return lateness

    lateness = asyncio.run(main())
    assert len(lateness) == 200
    assert min(lateness) >= 0


def test_a_late_callback_does_not_shift_the_next() -> None:
    async def main(clock):
        pacer = Pacer(clock, virtual_timer)
        seen: list[int] = []

        def slow() -> None:
            seen.append(clock.now_ns())
            clock.advance_to(clock.now_ns() + 25)  # the process was held up for 25 ns

        for t_ns in (10, 20, 30, 40):
            pacer.call_at(t_ns, slow if t_ns == 10 else lambda: seen.append(clock.now_ns()))
        await pacer.until(50)
        return seen

    assert run_virtual(main) == [10, 35, 35, 40]


def test_cancelled_and_failing_callbacks_leave_the_others_alone() -> None:
    async def main(clock):
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        pacer = Pacer(clock, virtual_timer)
        seen: list[str] = []

        def broken() -> None:
            raise ValueError("boom")

        pacer.call_at(5, broken)
        pacer.call_at(6, lambda: seen.append("cancelled")).cancel()
        pacer.call_at(7, lambda: seen.append("ran"))
        await pacer.until(10)
        return seen

    assert run_virtual(main) == ["ran"]


def test_slots_spread_sessions_and_are_given_back() -> None:
    slots = Slots()
    period = 20_000_000
    taken = [slots.take(period, 123_456_789) for _ in range(40)]
    assert all(start >= 123_456_789 for start, _ in taken)
    assert sorted(slot for _, slot in taken) == sorted(list(range(20)) * 2)
    assert all(start % period == slot * 1_000_000 for start, slot in taken)
    slots.give_back(period, 7)
    assert slots.take(period, 0)[1] == 7


def test_system_timer_is_one_of_ours() -> None:
    async def main() -> object:
        timer = system_timer(lambda: None, SystemClock())
        timer.close()
        return timer

    assert isinstance(asyncio.run(main()), TimerfdTimer | PortableTimer)


def test_what_is_due_runs_before_what_was_deferred() -> None:
    async def main(clock):
        pacer = Pacer(clock, virtual_timer)
        order: list[str] = []

        def first() -> None:
            order.append("first")
            pacer.defer(lambda: order.append("first, deferred"))

        pacer.call_at(10, first)
        pacer.call_at(10, lambda: order.append("second"))
        pacer.call_at(20, lambda: order.append("third"))
        await pacer.until(15)
        pacer.defer(lambda: order.append("outside"))
        await pacer.until(30)
        return order

    assert run_virtual(main) == ["first", "second", "first, deferred", "outside", "third"]
