"""The one monotonic clock, and its virtual twin. Every instant in firstpacket comes from here.

Instants are integer nanoseconds. Wall time appears once per session, as a `WallAnchor`, for display only.
"""

from __future__ import annotations

import time
from typing import Protocol

import msgspec


class Clock(Protocol):
    """A source of monotonic instants.

    name: which clock this is (`CLOCK_MONOTONIC`, `virtual`), stored in the session.
    resolution_ns: its tick as the system reports it.
    """

    @property
    def name(self) -> str: ...

    @property
    def resolution_ns(self) -> int: ...

    def now_ns(self) -> int:
        """The present instant, integer ns since an arbitrary origin; never goes back."""
        ...


class WallAnchor(msgspec.Struct, frozen=True, kw_only=True):
    """One pair of readings that lets a reader print wall-clock dates for monotonic instants."""

    wall_ns: int
    monotonic_ns: int


class SystemClock:
    """`time.monotonic_ns`: the same origin in every process of a machine, so a peer here can be compared."""

    name = "CLOCK_MONOTONIC"

    def __init__(self) -> None:
        self.resolution_ns = max(1, round(time.get_clock_info("monotonic").resolution * 1e9))

    now_ns = staticmethod(time.monotonic_ns)


class VirtualClock:
    """A clock that stands still until it is moved; see `harness.run.virtual` for the loop that moves it."""

    name = "virtual"
    resolution_ns = 1

    def __init__(self, start_ns: int = 0) -> None:
        self._now_ns = start_ns

    def now_ns(self) -> int:
        return self._now_ns

    def advance_to(self, t_ns: int) -> None:
        """Move forward to `t_ns`; an earlier instant is ignored, as time never goes back."""
        self._now_ns = max(self._now_ns, t_ns)


def wall_anchor(clock: Clock) -> WallAnchor:
    """Read wall and monotonic time as close together as Python allows."""
    return WallAnchor(wall_ns=time.time_ns(), monotonic_ns=clock.now_ns())
