"""Absolute deadlines for every session of a process on one timer; never early.

Callbacks run in the event loop at or after their deadline: after waking, the pacer reads the clock and waits again if
it is early. What runs late runs at once, and later deadlines do not move. Sessions are spread over slots of one
millisecond, so that the chunks of many sessions do not fall due at the same instant.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter, deque
from collections.abc import Callable
from itertools import count

from harness.core.audio import NS_PER_MS
from harness.core.clock import Clock
from harness.run.timers import Timer, system_timer

TimerFactory = Callable[[Callable[[], None], Clock], Timer]
SLOT_NS = NS_PER_MS


class Deadline:
    """A pending call; `cancel` forgets it."""

    __slots__ = ("callback", "t_ns")

    def __init__(self, t_ns: int, callback: Callable[[], None]) -> None:
        self.t_ns = t_ns
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Pacer:
    """Runs callbacks on absolute deadlines. Made inside the running loop; `close` gives its timer back."""

    def __init__(self, clock: Clock, timer: TimerFactory = system_timer) -> None:
        self.clock = clock
        self._timer = timer(self._wake, clock)
        self._heap: list[tuple[int, int, Deadline]] = []
        self._order = count()
        self._deferred: deque[Callable[[], None]] = deque()
        self._armed_ns: int | None = None
        self._awake = False
        self._loop = asyncio.get_running_loop()

    def call_at(self, t_ns: int, callback: Callable[[], None]) -> Deadline:
        """Call `callback()` at the first chance at or after `t_ns`."""
        deadline = Deadline(t_ns, callback)
        heapq.heappush(self._heap, (t_ns, next(self._order), deadline))
        if not self._awake:  # else the timer is set once, when all that is due has run
            self._arm()
        return deadline

    @property
    def next_ns(self) -> int | None:
        """The next deadline, if there is one: work that can wait makes way for it."""
        while self._heap and self._heap[0][2].callback is None:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def defer(self, callback: Callable[[], None]) -> None:
        """Call `callback()` soon, but after everything that is due by then: work that prepares the next deadline."""
        self._deferred.append(callback)
        if not self._awake:
            self._loop.call_soon(self._wake)

    async def until(self, t_ns: int) -> None:
        """Wait until `t_ns`."""
        reached: asyncio.Future[None] = self._loop.create_future()

        def arrive() -> None:
            if not reached.done():
                reached.set_result(None)

        deadline = self.call_at(t_ns, arrive)
        try:
            await reached
        finally:
            deadline.cancel()

    def close(self) -> None:
        self._heap.clear()
        self._timer.close()

    def _wake(self) -> None:
        self._armed_ns, self._awake = None, True
        while (callback := self._due()) is not None:
            self._run(callback)
        self._awake = False
        self._arm()

    def _due(self) -> Callable[[], None] | None:
        """The next thing to run: the earliest deadline that has come, else what was deferred, else nothing."""
        while self._heap:
            t_ns, _, deadline = self._heap[0]
            if deadline.callback is not None and t_ns > self.clock.now_ns():
                break
            heapq.heappop(self._heap)
            if deadline.callback is not None:
                return deadline.callback
        return self._deferred.popleft() if self._deferred else None

    def _run(self, callback: Callable[[], None]) -> None:
        try:
            callback()
        except Exception as exc:  # noqa: BLE001 - one session's fault must not stop the others' clockwork
            self._loop.call_exception_handler({"message": "a paced callback failed", "exception": exc})

    def _arm(self) -> None:
        if self._heap and self._heap[0][0] != self._armed_ns:
            self._armed_ns = self._heap[0][0]
            self._timer.arm(self._armed_ns)


class Slots:
    """Hands out phases within a chunk period, the least used first."""

    def __init__(self) -> None:
        self._taken: Counter[tuple[int, int]] = Counter()

    def take(self, period_ns: int, not_before_ns: int) -> tuple[int, int]:
        """Return (start_ns, slot): the first instant at or after `not_before_ns` on the least used slot."""
        slots = max(1, period_ns // SLOT_NS)
        slot = min(range(slots), key=lambda each: (self._taken[period_ns, each], each))
        self._taken[period_ns, slot] += 1
        phase_ns = slot * SLOT_NS
        return not_before_ns + (phase_ns - not_before_ns) % period_ns, slot

    def give_back(self, period_ns: int, slot: int) -> None:
        self._taken[period_ns, slot] -= 1
