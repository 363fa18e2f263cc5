"""A sound device as a live session needs it: blocks in, blocks out, in a thread of its own. What it is, not how."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec

from harness.core.audio import NS_PER_MS, Int16
from harness.live.source import Source

Fill = Callable[[int], tuple[Int16, int]]
"""The next n samples to play, int16 of shape (n,), and how many of them are sound."""


class DeviceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a device says of itself. Latencies are its own word. anchor: how instants are known, for the session."""

    input: str
    output: str
    host: str
    rate_hz: int
    block_samples: int
    input_latency_ms: float
    output_latency_ms: float
    anchor: str

    def source(self, echo: str) -> Source:
        """The user's samples, for a session. echo: what is done against the agent's sound in them."""
        return Source(
            rate_hz=self.rate_hz,
            latency_ns=round(self.input_latency_ms * NS_PER_MS),
            anchor=self.anchor,
            facts={**msgspec.to_builtins(self), "echo": echo},
        )


class Block(NamedTuple):
    """samples: captured, int16 of shape (n,). handed_ns: when the device handed them on. played: what was given to it
    in return, of the same shape. overflow: captured samples were lost before these. underflow: a gap was heard."""

    samples: Int16
    handed_ns: int
    played: Int16
    overflow: bool = False
    underflow: bool = False


class Device(Protocol):
    """One full-duplex stream."""

    @property
    def facts(self) -> DeviceFacts: ...

    def start(self, fill: Fill, deliver: Callable[[Block], None], ended: Callable[[], None]) -> None:
        """Begin. All three are called from the device's own thread and return at once; `ended` when the stream is over.

        Raises PrerequisiteError for a device that does not start.
        """
        ...

    def stop(self) -> None:
        """End, and give the device back; never raises for one that is gone."""
        ...
