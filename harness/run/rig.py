"""What all sessions of a process share: clock, pacer, slots, recorder, ears and the watch over the loop."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

from harness.core.clock import Clock, SystemClock
from harness.run.ear_desk import EarDesk
from harness.run.loop_watch import LoopWatch
from harness.run.machine import machine_facts
from harness.run.pacer import Pacer, Slots
from harness.run.quiet import Priority, Scheduling, priority
from harness.run.recorder import Recorder


class Rig:
    """Set up once around a run, as an async context manager inside the loop that measures."""

    def __init__(self, clock: Clock | None = None, *, asked: Priority = "normal") -> None:
        self.clock: Clock = clock or SystemClock()
        self._asked = asked
        self.scheduling: Scheduling
        self.pacer: Pacer
        self.recorder: Recorder
        self.ears: EarDesk
        self.watch: LoopWatch
        self.slots = Slots()
        self.machine: dict[str, Any] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self.pacer = Pacer(self.clock)
            stack.callback(self.pacer.close)
            self.recorder = await stack.enter_async_context(Recorder(self.pacer))
            self.watch = LoopWatch(self.pacer, self.recorder.broadcast)
            self.scheduling = stack.enter_context(priority(self._asked))
            self.ears = EarDesk(self.pacer, urgent=self.scheduling.got != "normal")
            stack.push_async_callback(self.ears.end)
            self.machine = machine_facts(asyncio.get_running_loop())
            self.watch.start()
            stack.callback(self.watch.stop)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()
