"""A session as a listener hears it: both sides laid on one axis of session time.

The user's samples stand at their media time (`StreamStarted`, `MediaAnchor`), the agent's where the zero-buffer
playout model places their packet, cut at each flush. Where nothing plays there is no signal, which is not the same
as silence that was sent.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from harness.core.audio import NS_PER_S, Int16, ns_to_samples, samples_to_ns
from harness.core.events import (
    AudioReceived,
    AudioSent,
    CommandSent,
    Interrupted,
    MediaAnchor,
    ResponseDone,
    StreamStarted,
    StreamStopped,
)
from harness.core.playout import Packet, Played, play
from harness.core.session.reader import Session

Bool = npt.NDArray[np.bool_]
Peak = int | None
PEAK_SCALE = 100
"""Peaks are whole hundredths of full scale: finer than a pixel of any lane."""


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """`samples` samples from `sample` on, the first of which sounds at `start_ns`."""

    start_ns: int
    sample: int
    samples: int


class Track(msgspec.Struct, frozen=True, kw_only=True):
    """One side within a window. signal: shape (n,), int16 at `rate_hz`; heard: whether anything plays there."""

    signal: Int16
    heard: Bool
    rate_hz: int


def origin_ns(session: Session) -> int:
    """Zero of the anchors in a row: the start of the user's stream, else the session's first event."""
    marks = _marks(session)
    if marks:
        return marks[0][0]
    return session.events[0].t_ns if session.events else session.header.anchor.monotonic_ns


def late_packets(session: Session) -> list[AudioReceived]:
    """Audio that came after its response was over or cancelled: recorded, never heard."""
    closed: set[str] = set()
    found = []
    for event in session.events:
        if isinstance(event, AudioReceived):
            if event.response in closed:
                found.append(event)
        elif isinstance(event, ResponseDone | Interrupted) and event.response:
            closed.add(event.response)
        elif isinstance(event, CommandSent) and event.command == "cancel" and event.detail.get("response"):
            closed.add(str(event.detail["response"]))
    return found


def played(session: Session) -> list[Played]:
    """Received audio packets on the heard timeline, by the profile's own flush events; late ones are left out."""
    late = {event.seq for event in late_packets(session)}
    packets = [
        Packet(arrival_ns=event.t_ns, samples=event.samples, rate_hz=event.rate_hz, sample_start=event.sample)
        for event in session.of(AudioReceived)
        if event.samples > 0 and event.seq not in late
    ]
    kinds = frozenset(session.header.profile.flush_on)
    flushes = [event.t_ns for event in session.events if event.__struct_config__.tag in kinds]
    return play(packets, flushes_ns=sorted(flushes))


def agent_pieces(packets: Sequence[Played], rate_hz: int) -> list[Piece]:
    """What was heard of each packet."""
    return [
        Piece(
            start_ns=packet.start_ns,
            sample=packet.packet.sample_start,
            samples=min(packet.packet.samples, ns_to_samples(packet.end_ns - packet.start_ns, rate_hz) + 1),
        )
        for packet in packets
        if packet.end_ns > packet.start_ns
    ]


def user_pieces(session: Session) -> list[Piece]:
    """The user's audio at its media time; an uploaded query stands at the start of its first send."""
    total = session.header.user.samples
    marks = _marks(session)
    if not marks:
        first = next(session.of(AudioSent), None)
        return [Piece(start_ns=first.started_ns, sample=first.sample, samples=total)] if first else []
    stops = sorted(event.sample for event in session.of(StreamStopped))
    pieces = []
    for index, (start_ns, sample) in enumerate(marks):
        end = marks[index + 1][1] if index + 1 < len(marks) else total
        end = min([end, total, *(stop for stop in stops if stop > sample)])
        if end > sample:
            pieces.append(Piece(start_ns=start_ns, sample=sample, samples=end - sample))
    return pieces


def render(pieces: Sequence[Piece], samples: Int16, rate_hz: int, from_ns: int, to_ns: int) -> Track:
    """Lay pieces of `samples` into the window [from_ns, to_ns)."""
    length = max(0, ns_to_samples(to_ns - from_ns, rate_hz))
    signal = np.zeros(length, dtype=np.int16)
    heard = np.zeros(length, dtype=np.bool_)
    for piece in pieces:
        at = round((piece.start_ns - from_ns) * rate_hz / NS_PER_S)
        skip = max(0, -at)
        source = samples[piece.sample + skip : piece.sample + piece.samples]
        target = max(0, at)
        source = source[: max(0, length - target)]
        signal[target : target + len(source)] = source
        heard[target : target + len(source)] = True
    return Track(signal=signal, heard=heard, rate_hz=rate_hz)


def peaks(track: Track, step_ms: int) -> tuple[list[Peak], list[Peak]]:
    """Lowest and highest sample of each `step_ms` column in hundredths of full scale; None where nothing plays."""
    columns = len(track.signal) * 1000 // (track.rate_hz * step_ms)
    if columns == 0:
        return [], []
    edges = np.rint(np.arange(columns) * step_ms * track.rate_hz / 1000).astype(np.int64)
    edges = np.minimum(edges, len(track.signal) - 1)  # rounding at rates of a few hertz
    low = np.minimum.reduceat(track.signal, edges).astype(np.float64) * PEAK_SCALE / 32768
    high = np.maximum.reduceat(track.signal, edges).astype(np.float64) * PEAK_SCALE / 32768
    heard = np.logical_or.reduceat(track.heard, edges)

    def whole(values: npt.NDArray[np.float64]) -> list[Peak]:
        return [round(float(value)) if there else None for value, there in zip(values, heard, strict=True)]

    return whole(low), whole(high)


def _marks(session: Session) -> list[tuple[int, int]]:
    """(t_ns, sample) pairs from which the user's media time runs on at the nominal rate, by sample."""
    rate_hz = session.header.user.rate_hz
    anchors = [event for event in session.of(MediaAnchor) if event.side == "user"]
    starts = [(event.t_ns, event.sample) for event in session.of(StreamStarted)]
    if anchors and not starts:
        first = anchors[0]
        starts = [(first.t_ns - samples_to_ns(first.sample, rate_hz), 0)]
    marks = {sample: t_ns for t_ns, sample in starts}
    marks.update({event.sample: event.t_ns for event in anchors})
    return [(t_ns, sample) for sample, t_ns in sorted(marks.items())]
