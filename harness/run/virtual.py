"""Virtual time: an event loop that jumps to the next deadline instead of waiting, for tests and drift proofs.

Only for code whose input comes from timers and in-memory peers: real sockets would be overtaken by the jumps.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from harness.core.audio import NS_PER_S
from harness.core.clock import Clock, VirtualClock

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):  # type: ignore[misc,valid-type,unused-ignore]
    """Where a real loop would sleep, moves the clock to the next timer, in whole nanoseconds."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self.clock = clock
        self.timers: list[VirtualTimer] = []

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        now_ns = self.clock.now_ns()
        armed = [timer for timer in self.timers if timer.deadline_ns is not None]
        timer = min(armed, key=lambda each: each.deadline_ns or 0, default=None)
        loop_ns = None if timeout is None else now_ns + round(timeout * NS_PER_S)
        if timer is not None and timer.deadline_ns is not None and (loop_ns is None or timer.deadline_ns <= loop_ns):
            self.clock.advance_to(timer.deadline_ns)
            timer.fire()
        elif loop_ns is not None:
            self.clock.advance_to(max(loop_ns, now_ns + 1))
        else:
            return super().select(timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An asyncio loop on a `VirtualClock`; `time()` is its seconds."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.jumping = _JumpingSelector(clock)
        super().__init__(self.jumping)

    def time(self) -> float:
        return self.clock.now_ns() / NS_PER_S


class VirtualTimer:
    """The timer that belongs to a `VirtualLoop`: fires exactly at its deadline."""

    def __init__(self, on_wake: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        if not isinstance(loop, VirtualLoop):
            raise TypeError("a VirtualTimer needs a VirtualLoop")
        self._loop = loop
        self._on_wake = on_wake
        self.deadline_ns: int | None = None
        loop.jumping.timers.append(self)

    def arm(self, deadline_ns: int) -> None:
        self.deadline_ns = deadline_ns

    def fire(self) -> None:
        self.deadline_ns = None
        self._loop.call_soon(self._on_wake)

    def close(self) -> None:
        self.deadline_ns = None
        if self in self._loop.jumping.timers:
            self._loop.jumping.timers.remove(self)


def virtual_timer(on_wake: Callable[[], None], clock: Clock) -> VirtualTimer:
    """Timer factory for `Pacer` on a virtual loop."""
    return VirtualTimer(on_wake)


def run_virtual(main: Callable[[VirtualClock], Coroutine[Any, Any, T]], start_ns: int = 0) -> T:
    """Run `main(clock)` to its end in virtual time."""
    clock = VirtualClock(start_ns)
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
        return runner.run(main(clock))
