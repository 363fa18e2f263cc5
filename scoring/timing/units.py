"""Units of a peer that is clocked by its input: which output came for which audio of ours, and how much later.

Unit u of input is the u-th stretch of `unit_ms` of the user's stream, sent when the write of the chunk with its last
sample was complete. Unit j of output is the j-th stretch of `unit_ms` of the decoded stream, what a codec's start-up
took off included, done with the read that brought its last sample; it answers unit j + `unit_delay` of input.
Source: timing definitions, section 4 (unit-locked models).
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import NamedTuple

from harness.core.audio import NS_PER_MS, ms_to_samples
from harness.core.events import AudioReceived, AudioSent
from harness.core.scorer import Unscored
from scoring.timing.metric import Scene
from scoring.timing.recording import Recording


class Unit(NamedTuple):
    """number: of the input unit. lag_ns: output done - input sent; None: never done, though more than a unit's time was
    left. missed: the lag is longer than a unit."""

    number: int
    lag_ns: int | None
    missed: bool


def turn_units(scene: Scene) -> list[Unit] | Unscored:
    """The units whose last sample is of the turn; the peer's first units, which have no output, are left out."""
    found = _units(scene.turn.recording)
    if isinstance(found, Unscored):
        return found
    ours = {packet.seq for packet in scene.turn.sent}
    inside = [unit for packet, unit in found if packet.seq in ours]
    return inside or Unscored(reason="no whole unit of audio was sent in this turn")


def _units(recording: Recording) -> list[tuple[AudioSent, Unit]] | Unscored:
    session, profile = recording.session, recording.session.header.profile
    assert profile.unit_ms is not None
    unit_ns = profile.unit_ms * NS_PER_MS
    size = ms_to_samples(profile.unit_ms, session.header.user.rate_hz)
    done = _done_ns(list(session.of(AudioReceived)), profile.unit_ms)
    end_ns = max((event.t_ns for event in session.events), default=0)
    found: list[tuple[AudioSent, Unit]] = []
    index = profile.unit_delay
    while (packet := recording.packet_holding((index + 1) * size - 1)) is not None:
        output = index - profile.unit_delay
        if packet.lost:
            break
        if output < len(done):
            lag_ns = done[output] - packet.t_ns
            if done[output] < packet.started_ns:
                return Unscored(reason="the peer's audio is ahead of ours: it is not clocked in these units")
            found.append((packet, Unit(index, lag_ns, lag_ns > unit_ns)))
        elif end_ns - packet.t_ns > unit_ns:
            found.append((packet, Unit(index, None, True)))
        index += 1
    return found


def _done_ns(received: list[AudioReceived], unit_ms: int) -> list[int]:
    """The read that completed each unit of output."""
    if not received:
        return []
    size = ms_to_samples(unit_ms, received[0].rate_hz)
    ends = list(accumulate(event.samples + event.skipped for event in received))
    return [received[bisect_left(ends, (unit + 1) * size)].t_ns for unit in range(ends[-1] // size)]
