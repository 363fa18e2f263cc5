"""How many RTP packets of a session came, and how many were sent: by their sequence numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.core.events import RtpReceived

MAX_DROPOUT, MAX_MISORDER = 3_000, 1_000
"""A jump of the sequence number beyond these is no loss: the sender began anew (RFC 3550, A.1)."""


@dataclass
class _Run:
    """A row of sequence numbers of one source, counted on beyond 16 bits."""

    first: int
    last: int
    seen: set[int] = field(default_factory=set)


def packets(events: Iterable[RtpReceived]) -> tuple[int, int]:
    """(came, sent): distinct packets, and those between the first and the last of each run that came."""
    runs: dict[int, _Run] = {}
    came = sent = 0
    for event in events:
        run = runs.get(event.ssrc)
        ahead = 0 if run is None else (event.sequence - run.last + 0x8000) % 0x10000 - 0x8000
        if run is None or not -MAX_MISORDER <= ahead <= MAX_DROPOUT:
            if run is not None:
                came, sent = came + len(run.seen), sent + run.last - run.first + 1
            run = runs[event.ssrc] = _Run(event.sequence, event.sequence)
            ahead = 0
        number = run.last + ahead
        run.seen.add(number)
        run.first, run.last = min(run.first, number), max(run.last, number)
    for run in runs.values():
        came, sent = came + len(run.seen), sent + run.last - run.first + 1
    return came, sent
