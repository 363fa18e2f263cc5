"""The reorder buffer of one RTP stream: packets in as they arrive, out in the order in which they were sent. Sans-IO.

What comes in order goes out at once. Behind a missing packet the others wait, at most `wait_ns` after the first of them
came; then the missing one is given up. No arrival instant is touched: how long a packet was held is counted beside it.
Sequence numbers wrap (16 bits); a jump that no network explains, or another source, begins anew (RFC 3550, A.1).
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import msgspec

MAX_DROPOUT = 3_000
MAX_MISORDER = 1_000
"""Packets ahead of, and behind, the expected one that still belong to the same run of numbers."""
MAX_HELD = 500
"""Packets that wait at most, whatever `wait_ns` says: 10 s of speech."""
REMEMBERED = 2 * MAX_MISORDER
"""Delivered packets by which a duplicate is told from one that came too late."""


class Arrived(NamedTuple):
    """One packet. t_ns: the read of its datagram. sequence: 16 bits, timestamp: 32 bits, at the codec's clock."""

    t_ns: int
    ssrc: int
    sequence: int
    timestamp: int
    payload: bytes
    wire_bytes: int = 0


class Counts(msgspec.Struct, kw_only=True):
    """What became of the packets. lost: given up; late: came after that; reordered: came after a later one, in time.
    held_ns, max_held_ns: waiting of the delivered packets, summed and the longest."""

    received: int = 0
    delivered: int = 0
    lost: int = 0
    late: int = 0
    duplicates: int = 0
    reordered: int = 0
    restarts: int = 0
    held_ns: int = 0
    max_held_ns: int = 0


class ReorderBuffer:
    """Feed `push` with arrivals in the order of their instants; call `expire` when `deadline_ns` has come."""

    def __init__(self, wait_ns: int) -> None:
        self.wait_ns = wait_ns
        self.counts = Counts()
        self._ssrc: int | None = None
        self._next = 0
        """Number of the packet that is due, counted on beyond 16 bits."""
        self._highest = 0
        self._held: dict[int, Arrived] = {}
        self._seen: deque[int] = deque(maxlen=REMEMBERED)

    @property
    def deadline_ns(self) -> int | None:
        """When the missing packet is given up; None while nothing waits."""
        return min(packet.t_ns for packet in self._held.values()) + self.wait_ns if self._held else None

    def push(self, packet: Arrived) -> list[Arrived]:
        """Packets that can go out now."""
        self.counts.received += 1
        out = self.expire(packet.t_ns)
        number = self._number(packet)
        if number is None:
            out += self._restart(packet)
            number = self._next
        if number < self._next:
            known = number in self._seen
            self.counts.duplicates += known
            self.counts.late += not known
            return out
        if number in self._held:
            self.counts.duplicates += 1
            return out
        self.counts.reordered += number < self._highest
        self._highest = max(self._highest, number)
        self._held[number] = packet
        out += self._ready(packet.t_ns)
        while len(self._held) > MAX_HELD:
            out += self._skip(packet.t_ns)
        return out

    def expire(self, now_ns: int) -> list[Arrived]:
        """Give up what has been waited for long enough."""
        out: list[Arrived] = []
        while (deadline_ns := self.deadline_ns) is not None and deadline_ns <= now_ns:
            out += self._skip(now_ns)
        return out

    def flush(self, now_ns: int) -> list[Arrived]:
        """Everything that still waits, in order: nothing more will come."""
        out: list[Arrived] = []
        while self._held:
            out += self._skip(now_ns)
        return out

    def _number(self, packet: Arrived) -> int | None:
        """The packet's place, or None where it begins a new run."""
        if packet.ssrc != self._ssrc:
            return None
        ahead = (packet.sequence - self._next + 0x8000) % 0x10000 - 0x8000
        return self._next + ahead if -MAX_MISORDER <= ahead <= MAX_DROPOUT else None

    def _restart(self, packet: Arrived) -> list[Arrived]:
        out = self.flush(packet.t_ns)
        self.counts.restarts += self._ssrc is not None
        self._ssrc = packet.ssrc
        self._next = self._highest = packet.sequence
        self._seen.clear()
        return out

    def _skip(self, now_ns: int) -> list[Arrived]:
        """Give up everything before the first packet that waits."""
        first = min(self._held)
        self.counts.lost += first - self._next
        self._next = first
        return self._ready(now_ns)

    def _ready(self, now_ns: int) -> list[Arrived]:
        out: list[Arrived] = []
        while (packet := self._held.pop(self._next, None)) is not None:
            held_ns = max(0, now_ns - packet.t_ns)
            self.counts.held_ns += held_ns
            self.counts.max_held_ns = max(self.counts.max_held_ns, held_ns)
            self.counts.delivered += 1
            self._seen.append(self._next)
            self._next += 1
            out.append(packet)
        return out
