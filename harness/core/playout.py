"""The playout model: when each received packet would be heard. Pure functions of arrivals and durations.

Zero buffer: start_i = max(end_{i-1}, arrival_i), end_i = start_i + duration_i. With a jitter buffer of `buffer_ns`
the first packet, and each packet that comes after an underrun, waits that long before it is played. A flush at
instant f drops what has not been played: packets that start at or after f and arrived before it are not heard. What
comes after a flush that dropped something begins anew, as the first packet did: the gap is no underrun.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from harness.core.audio import samples_to_ns


class Packet(msgspec.Struct, frozen=True, kw_only=True):
    """One received audio packet. sample_start: where its samples lie in the received audio."""

    arrival_ns: int
    samples: int
    rate_hz: int
    sample_start: int = 0


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """One packet on the heard timeline; `end_ns` is cut at a flush, `end_ns == start_ns` means never heard."""

    packet: Packet
    start_ns: int
    end_ns: int
    underrun_ns: int
    """Silence heard between the end of the packet before and this one (0 for the first, also after a flush)."""
    lead_ns: int
    """How long before its playout the packet was there."""

    def instant_of(self, sample: int) -> int:
        """Instant at which received sample `sample` (an index into the received audio) is heard."""
        return self.start_ns + samples_to_ns(sample - self.packet.sample_start, self.packet.rate_hz)


def play(packets: Iterable[Packet], *, flushes_ns: Sequence[int] = (), buffer_ns: int = 0) -> list[Played]:
    """Play `packets` (in arrival order) and return one `Played` for each.

    flushes_ns: instants, ascending, at which the listener's queue is emptied.
    """
    heard: list[Played] = []
    end_ns: int | None = None
    flushes = list(flushes_ns)
    for packet in packets:
        while flushes and flushes[0] <= packet.arrival_ns:
            end_ns = _flush(heard, flushes.pop(0), end_ns)
        duration_ns = samples_to_ns(packet.samples, packet.rate_hz)
        if end_ns is None or packet.arrival_ns > end_ns:
            start_ns = packet.arrival_ns + buffer_ns
            underrun_ns = 0 if end_ns is None else start_ns - end_ns
        else:
            start_ns, underrun_ns = end_ns, 0
        heard.append(
            Played(
                packet=packet,
                start_ns=start_ns,
                end_ns=start_ns + duration_ns,
                underrun_ns=underrun_ns,
                lead_ns=start_ns - packet.arrival_ns,
            )
        )
        end_ns = start_ns + duration_ns
    for flush_ns in flushes:
        end_ns = _flush(heard, flush_ns, end_ns)
    return heard


def _flush(heard: list[Played], flush_ns: int, end_ns: int | None) -> int | None:
    """Cut everything in `heard` that would sound at or after `flush_ns`; return the new end of playout (None when
    something was cut: playout begins anew)."""
    if end_ns is None or end_ns <= flush_ns:
        return end_ns
    index = len(heard) - 1
    while index >= 0 and heard[index].end_ns > flush_ns:
        played = heard[index]
        cut_ns = max(played.start_ns, flush_ns)
        heard[index] = msgspec.structs.replace(played, end_ns=cut_ns)
        index -= 1
    return None
