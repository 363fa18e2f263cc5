"""Owns the process that hears agents: sends it sound without ever waiting, and hands on what it finds.

One process for all sessions, started when a session needs it. What is under way is bounded: a process that cannot keep
up loses sound, which is counted. One that dies leaves the ears it had deaf; the next session gets a new one.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Protocol

from harness.core.audio import NS_PER_MS
from harness.run.ear_channel import Forget, FromEar, Progress, ToEar
from harness.run.ear_link import LIMIT_BYTES, EarLink
from harness.run.pacer import Pacer

BEHIND_NS = 500 * NS_PER_MS
"""A process that is so far behind is too late for cues, and that is told."""
NICENESS = -10
"""Of a process that hears for a measuring loop with a priority."""
STARTS = 3
"""How many processes a run uses up before it goes on without."""


class Hearing(Protocol):
    """A session's ear, as the desk sees it."""

    def told(self, message: FromEar) -> None: ...

    def lost(self, why: str) -> None:
        """Nothing will be told any more."""
        ...

    def dropped(self) -> None:
        """A packet was not heard."""
        ...


class EarDesk:
    """Made inside the loop that measures; `start` before an ear opens, `end` when all is over.

    urgent: the loop that measures has a priority, and the process gets one below it."""

    def __init__(self, pacer: Pacer, *, urgent: bool = False, limit_bytes: int = LIMIT_BYTES) -> None:
        self._pacer = pacer
        self._urgent = urgent
        self._limit = limit_bytes
        self._numbers = count()
        self._ears: dict[int, Hearing] = {}
        self._starts = 0
        self._link: EarLink | None = None
        self._starting = asyncio.Lock()

    async def end(self) -> None:
        """End the process, if there is one."""
        if self._link is not None:
            await self._link.close()

    @property
    def pid(self) -> int | None:
        """Of the process that hears now."""
        return None if self._link is None else self._link.pid

    async def start(self) -> None:
        """Have a process that hears; does nothing where there is one, or where `STARTS` of them have died."""
        async with self._starting:
            if (self._link is not None and not self._link.gone) or self._starts == STARTS:
                return
            if self._link is not None:
                await self._link.close()
            self._starts += 1
            self._link = EarLink(self._pacer, self._told, self._lost, self._limit)
            await self._link.open()
            if self._urgent and self._link.pid is not None:
                _hurry(self._link.pid)

    def open(self, ear: Hearing) -> int:
        """A number for the messages of `ear`, which is told at once if nobody hears."""
        number = next(self._numbers)
        if self._link is None or self._link.gone:
            ear.lost("no process hears" if self._link is None else self._link.gone)
        else:
            self._ears[number] = ear
        return number

    def send(self, message: ToEar) -> None:
        """Pass `message` on soon; of an ear that is deaf or closed nothing is sent."""
        ear = self._ears.get(message.number)
        if ear is None or self._link is None:
            return
        if not self._link.put(message):
            ear.dropped()

    def close(self, number: int) -> None:
        """The session of this ear is over."""
        if self._ears.pop(number, None) is not None and self._link is not None:
            self._link.put(Forget(number))

    def behind_ns(self) -> int:
        """How long the oldest message that was not heard yet has been under way; 0 if all were."""
        return 0 if self._link is None else self._link.behind_ns()

    def _told(self, message: FromEar) -> None:
        ear = None if isinstance(message, Progress) else self._ears.get(message.number)
        if ear is not None:
            ear.told(message)

    def _lost(self, why: str) -> None:
        ears, self._ears = self._ears, {}
        for ear in ears.values():
            ear.lost(why)


def _hurry(pid: int) -> None:
    """Give a process that leads a session of its own a better share of the cores, where the system permits.

    Linux shares them out among sessions first (sched(7), autogroup), so that the session's niceness counts as well."""
    if hasattr(os, "setpriority"):
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, pid, NICENESS)
    with suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(NICENESS))
