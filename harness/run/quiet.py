"""A quiet process while measuring: garbage collection held off, priority raised on request, run-queue delay read.

All three act on this process or thread only. How noisy the machine itself is, `harness.run.sentinel` tells.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import msgspec

Priority = Literal["normal", "nice", "realtime"]
LOWEST_NICE = -20
FIFO_LEVEL = 10
"""Any level of SCHED_FIFO beats every normal thread; a low one stays below the kernel's own real-time threads (50)."""
RESET_ON_FORK = getattr(os, "SCHED_RESET_ON_FORK", 0)


class CollectionHold:
    """Re-entrant hold on the garbage collector, counted over concurrent sessions; `hold` is the process's one.

    First in: collect, freeze what lives, switch off. Last out: switch on again, unfreeze and collect, as nothing is
    being measured then. Reference counting goes on all the while; only cycles wait. A program that has frozen its heap
    by itself keeps it so.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.held_since_collection = 0
        """Stretches ended since the last collection: their cyclic garbage is still there."""
        self._was_enabled = True
        self._froze = False

    def __enter__(self) -> Self:
        if self.depth == 0:
            self._was_enabled = gc.isenabled()
            gc.collect()
            self._froze = not gc.get_freeze_count()
            if self._froze:
                gc.freeze()
            gc.disable()
        self.depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.depth -= 1
        self.held_since_collection += 1
        if self.depth == 0:
            if self._froze:
                gc.unfreeze()
            if self._was_enabled:
                gc.enable()
            gc.collect()
            self.held_since_collection = 0


hold = CollectionHold()
"""The collector belongs to the process, so its count does too: `with hold:` around every measured session."""


class Scheduling(msgspec.Struct, frozen=True, kw_only=True):
    """How the measuring thread is scheduled, for the session header. detail: the level, or why it is not what was
    asked."""

    asked: Priority
    got: Priority
    detail: str


@contextmanager
def priority(asked: Priority) -> Iterator[Scheduling]:
    """Schedule the calling thread as `asked`, or as near to it as the system permits, until the block ends.

    `realtime`: SCHED_FIFO, else as `nice`. `nice`: nice -20, else as before. Child processes start at normal
    priority (reset on fork). Nothing is tried for `normal`. Never raises for a refused wish.
    """
    if asked == "normal" or not hasattr(os, "sched_setscheduler"):
        reason = "as started" if asked == "normal" else "not on this system"
        yield Scheduling(asked=asked, got="normal", detail=reason)
        return
    policy, level, nice = os.sched_getscheduler(0), os.sched_getparam(0), os.getpriority(os.PRIO_PROCESS, 0)
    got = _raise(asked)
    try:
        yield got
    finally:
        if got.got != "normal":
            with suppress(OSError):
                os.sched_setscheduler(0, policy, level)
                os.setpriority(os.PRIO_PROCESS, 0, nice)


def _raise(asked: Priority) -> Scheduling:
    refusals: list[str] = []
    if asked == "realtime":
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO | RESET_ON_FORK, os.sched_param(FIFO_LEVEL))
            return Scheduling(asked=asked, got="realtime", detail=f"SCHED_FIFO {FIFO_LEVEL}")
        except OSError as exc:
            refusals.append(f"SCHED_FIFO: {exc.strerror}")
    try:
        os.sched_setscheduler(0, os.SCHED_OTHER | RESET_ON_FORK, os.sched_param(0))
        os.setpriority(os.PRIO_PROCESS, 0, LOWEST_NICE)
        detail = "; ".join([f"nice {LOWEST_NICE}", *refusals])
        return Scheduling(asked=asked, got="nice", detail=detail)
    except OSError as exc:
        refusals.append(f"nice {LOWEST_NICE}: {exc.strerror}")
        return Scheduling(asked=asked, got="normal", detail="; ".join(refusals))


class RunDelay:
    """Time that the thread which made this object has waited for a core: field 2 of Linux's schedstat.

    One descriptor stays open, as a reading (a few us) belongs into a hot loop. Use as a context manager or close it.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._file = -1
        # thread-self: the measuring loop need not run in the process's first thread.
        for name in [path] if path else [Path("/proc/thread-self/schedstat"), Path("/proc/self/schedstat")]:
            with suppress(OSError):
                self._file = os.open(name, os.O_RDONLY)
                break

    def read_ns(self) -> int | None:
        """Cumulative run-queue delay in ns; None where the system does not tell."""
        if self._file < 0:
            return None
        try:
            return int(os.pread(self._file, 96, 0).split()[1])
        except (OSError, IndexError, ValueError):
            return None

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
