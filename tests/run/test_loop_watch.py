"""The watch over the loop: a stall is seen with its length, in its own window, and a restart forgets the past."""

from __future__ import annotations

from harness.core.events import LoopLag
from harness.run.loop_watch import TICK_NS, WINDOW_NS, LoopWatch
from harness.run.pacer import Pacer
from harness.run.virtual import run_virtual, virtual_timer

MS = 1_000_000


def watch(body) -> list[LoopLag]:
    async def main(clock):
        pacer, seen = Pacer(clock, virtual_timer), []
        watching = LoopWatch(pacer, seen.append)
        watching.start()
        await body(watching, pacer, clock)
        watching.stop()
        return seen

    return run_virtual(main)


def test_a_quiet_loop_has_no_lag() -> None:
    async def body(watching, pacer, clock) -> None:
        await pacer.until(1000 * MS)

    seen = watch(body)
    assert len(seen) >= 19
    assert {lag.max_lag_ns for lag in seen} == {0}
    assert {lag.window_ns for lag in seen} == {WINDOW_NS}


def test_a_stall_is_told_to_the_tick() -> None:
    async def body(watching, pacer, clock) -> None:
        pacer.call_at(301 * MS, lambda: clock.advance_to(clock.now_ns() + 37 * MS))
        await pacer.until(1000 * MS)

    lags = [lag for lag in watch(body) if lag.max_lag_ns]
    assert len(lags) == 1
    assert 37 * MS - TICK_NS <= lags[0].max_lag_ns <= 37 * MS
    assert lags[0].t_ns - lags[0].window_ns <= 301 * MS <= lags[0].t_ns


def test_a_restart_forgets_what_was_before() -> None:
    async def body(watching, pacer, clock) -> None:
        await pacer.until(101 * MS)
        clock.advance_to(clock.now_ns() + 40 * MS)
        watching.start()
        await pacer.until(1000 * MS)

    assert max(lag.max_lag_ns for lag in watch(body)) == 0
