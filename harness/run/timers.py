"""One-shot timers on absolute deadlines: timerfd where Linux has it, a portable one elsewhere.

A timer wakes at or after its deadline as well as the system can; it may wake early (some do), so whoever uses it
checks the clock. `harness.run.pacer` is that user; `harness.run.virtual` has the timer of the virtual clock.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from collections.abc import Callable
from typing import Protocol

from harness.core.audio import NS_PER_MS, NS_PER_S
from harness.core.clock import Clock

CLOCK_MONOTONIC = 1
TFD_NONBLOCK_CLOEXEC = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)
TFD_TIMER_ABSTIME = 1
SPIN_NS = int(1.5 * NS_PER_MS)
"""The portable timer sleeps until this long before the deadline: event loops round to whole milliseconds."""


class Timer(Protocol):
    def arm(self, deadline_ns: int) -> None:
        """Wake at `deadline_ns` (absolute, the session's clock); replaces an earlier deadline."""
        ...

    def close(self) -> None: ...


class _Timespec(ctypes.Structure):
    _fields_ = (("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("it_interval", _Timespec), ("it_value", _Timespec))


class TimerfdTimer:
    """Linux timerfd in absolute CLOCK_MONOTONIC, watched by the loop (through ctypes: Python 3.11 has no call)."""

    def __init__(self, on_wake: Callable[[], None]) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd: int = self._libc.timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed")
        self._on_wake = on_wake
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._readable)
        self._spec = _Itimerspec()

    def arm(self, deadline_ns: int) -> None:
        deadline_ns = max(deadline_ns, 1)  # an all-zero value would disarm
        self._spec.it_value.tv_sec, self._spec.it_value.tv_nsec = divmod(deadline_ns, NS_PER_S)
        if self._libc.timerfd_settime(self._fd, TFD_TIMER_ABSTIME, ctypes.byref(self._spec), None) != 0:
            raise OSError(ctypes.get_errno(), "timerfd_settime failed")

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _readable(self) -> None:
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            return
        self._on_wake()


class PortableTimer:
    """The event loop's own timer until shortly before the deadline, then a look at the clock on every turn."""

    def __init__(self, on_wake: Callable[[], None], clock: Clock) -> None:
        self._on_wake = on_wake
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.Handle | None = None
        self._deadline_ns = 0

    def arm(self, deadline_ns: int) -> None:
        self.close()
        self._deadline_ns = deadline_ns
        left_ns = deadline_ns - self._clock.now_ns() - SPIN_NS
        if left_ns > 0:
            self._handle = self._loop.call_later(left_ns / NS_PER_S, self._look)
        else:
            self._handle = self._loop.call_soon(self._look)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _look(self) -> None:
        if self._clock.now_ns() >= self._deadline_ns:
            self._handle = None
            self._on_wake()
        else:
            self._handle = self._loop.call_soon(self._look)


def has_timerfd() -> bool:
    """Whether this system has timerfd."""
    return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "timerfd_create")


def system_timer(on_wake: Callable[[], None], clock: Clock) -> Timer:
    """The best timer here for a real clock; must be called inside a running loop."""
    return TimerfdTimer(on_wake) if has_timerfd() else PortableTimer(on_wake, clock)
