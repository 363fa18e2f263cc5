"""The media timeline: at which instant a sample of the user's audio was captured.

Paced streams are exact: sample s of a segment that began with sample b at t is captured at t + (s - b) / rate, rounded
up to the ns, as a sample exists only when its period has passed. Live audio has anchors about once a second and is
linear between them (outside them at the nominal rate), because a sound card drifts.
"""

from __future__ import annotations

from bisect import bisect_right

import msgspec

from harness.core.audio import NS_PER_S, samples_to_ns
from harness.core.events import MediaAnchor, StreamStarted, StreamStopped
from harness.core.scorer import Unscored
from harness.core.session.reader import Session


class Instant(msgspec.Struct, frozen=True, kw_only=True):
    """A point on the session's clock and the event that it comes from (its `seq`)."""

    t_ns: int
    seq: int


Point = Instant | Unscored


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of user audio from sample `sample` on, captured from `t_ns` on. stop: first sample that was never sent
    (None: it flowed until the next segment or the end)."""

    sample: int
    t_ns: int
    rate_hz: int
    seq: int
    stop: int | None = None

    def instant(self, sample: int) -> Instant:
        offset_ns = samples_to_ns(sample - self.sample, self.rate_hz)
        return Instant(t_ns=self.t_ns + offset_ns, seq=self.seq)


class Timeline:
    """Sample to instant for the user's side of one session."""

    def __init__(self, session: Session) -> None:
        self._upload = session.header.mode == "upload"
        self._rate_hz = session.header.user.rate_hz
        self._anchors = sorted(
            (event for event in session.of(MediaAnchor) if event.side == "user"), key=lambda event: event.sample
        )
        self._anchor_samples = [anchor.sample for anchor in self._anchors]
        self._segments = _segments(session)
        self._segment_samples = [segment.sample for segment in self._segments]

    @property
    def origin_ns(self) -> int | None:
        """Where the user's stream began: zero of the anchors in a row."""
        if self._segments:
            return self._segments[0].t_ns
        if self._anchors:
            return self._from_anchors(0, 0).t_ns
        return None

    def start_of(self, sample: int) -> Point:
        """The instant at which sample `sample` begins."""
        return self._at(sample, sample)

    def end_of(self, sample: int) -> Point:
        """The instant at which everything before `sample` is over: by the segment that holds `sample - 1`, since the
        next one may begin there after a pause."""
        return self._at(sample - 1, sample)

    def segment_start(self, sample: int) -> Point:
        """Where the stretch of stream that holds `sample` began."""
        found = self._segment(sample)
        if isinstance(found, Unscored):
            return found
        return found.instant(found.sample)

    def _at(self, held: int, sample: int) -> Point:
        if self._upload:
            return Unscored(reason="upload: the query has no place on a media timeline")
        if self._anchors:
            return self._from_anchors(held, sample)
        found = self._segment(held)
        return found if isinstance(found, Unscored) else found.instant(sample)

    def _segment(self, sample: int) -> Segment | Unscored:
        index = bisect_right(self._segment_samples, sample) - 1
        if index < 0:
            return Unscored(reason="no user audio was streamed")
        segment = self._segments[index]
        if segment.stop is not None and sample >= segment.stop:
            return Unscored(reason="the stream stopped before this sample")
        return segment

    def _from_anchors(self, held: int, sample: int) -> Instant:
        """By the anchors around `held`: where a stream stopped and went on, two of them have the same sample."""
        last = len(self._anchors) - 1
        index = max(0, bisect_right(self._anchor_samples, held) - 1)
        anchor = self._anchors[index]
        if sample < anchor.sample or index == last:
            offset_ns = _divided((sample - anchor.sample) * NS_PER_S, self._rate_hz)
        else:
            after = self._anchors[index + 1]
            span = after.sample - anchor.sample
            offset_ns = _divided((sample - anchor.sample) * (after.t_ns - anchor.t_ns), span)
        return Instant(t_ns=anchor.t_ns + offset_ns, seq=anchor.seq)


def _segments(session: Session) -> list[Segment]:
    found: list[Segment] = []
    for event in session.events:
        if isinstance(event, StreamStarted):
            segment = Segment(sample=event.sample, t_ns=event.t_ns, rate_hz=event.rate_hz, seq=event.seq)
            found.append(segment)
        elif isinstance(event, StreamStopped) and found:
            found[-1] = msgspec.structs.replace(found[-1], stop=event.sample)
    return found


def _divided(numerator: int, denominator: int) -> int:
    """numerator / denominator to the nearest integer (halves up), exact for any size."""
    return (2 * numerator + denominator) // (2 * denominator)
