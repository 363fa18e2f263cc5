"""A session with what all metrics share, computed once: media timeline, responses, the heard timeline, sends."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property

from harness.core.audibility import DEFAULT, Audibility
from harness.core.events import AudioReceived, AudioSent, ConnectionPhase, LoopLag, RoundTrip
from harness.core.session.reader import Session
from scoring.timing.listener import Listener, Utterance
from scoring.timing.response import Response, responses_of
from scoring.timing.timeline import Instant, Timeline


class Recording:
    """One session, read-only. Each property is computed on first use."""

    def __init__(self, session: Session, rule: Audibility = DEFAULT) -> None:
        self.session = session
        self.rule = rule
        self.timeline = Timeline(session)

    @cached_property
    def responses(self) -> list[Response]:
        """Responses in order of their start; for a continuous peer they carry its text only."""
        return responses_of(self.session)

    @cached_property
    def packets(self) -> list[AudioReceived]:
        """Received audio in order of arrival; late packets are left out (a continuous peer has none)."""
        received = [event for event in self.session.of(AudioReceived) if event.samples > 0]
        if self.session.header.profile.continuous:
            return received
        late = {packet.seq for response in self.responses for packet in response.late}
        return [packet for packet in received if packet.seq not in late]

    @cached_property
    def listener(self) -> Listener:
        return Listener(self.session, self.packets, self.rule)

    @cached_property
    def utterances(self) -> list[Utterance]:
        """What a continuous peer said, as heard; empty for turn peers."""
        return self.listener.utterances if self.session.header.profile.continuous else []

    @cached_property
    def sent(self) -> list[AudioSent]:
        """Chunks of user audio by their first sample."""
        return sorted(self.session.of(AudioSent), key=lambda event: event.sample)

    @cached_property
    def _sent_samples(self) -> list[int]:
        return [event.sample for event in self.sent]

    def packet_holding(self, sample: int) -> AudioSent | None:
        """The chunk of user audio that holds `sample`."""
        index = bisect_right(self._sent_samples, sample) - 1
        if index < 0 or sample >= self.sent[index].sample + self.sent[index].samples:
            return None
        return self.sent[index]

    def sent_between(self, start: int, end: int | None) -> tuple[AudioSent, ...]:
        """Chunks that hold samples of [start, end), in order; end None: all from `start` on."""
        low = max(0, bisect_left(self._sent_samples, start) - 1)
        if low < len(self.sent) and self.sent[low].sample + self.sent[low].samples <= start:
            low += 1
        high = len(self.sent) if end is None else bisect_left(self._sent_samples, end)
        return tuple(self.sent[low:high])

    @cached_property
    def phases(self) -> dict[str, Instant]:
        """When each step of setting up was finished; the first of each."""
        found: dict[str, Instant] = {}
        for event in self.session.of(ConnectionPhase):
            found.setdefault(event.phase, Instant(t_ns=event.t_ns, seq=event.seq))
        return found

    @cached_property
    def round_trips_ns(self) -> list[int]:
        return [event.rtt_ns for event in self.session.of(RoundTrip)]

    @cached_property
    def lags(self) -> list[LoopLag]:
        return list(self.session.of(LoopLag))

    @property
    def origin_ns(self) -> int:
        """Zero of the anchors in a row: the start of the user's stream, else the first event."""
        origin_ns = self.timeline.origin_ns
        if origin_ns is not None:
            return origin_ns
        return self.session.events[0].t_ns if self.session.events else self.session.header.anchor.monotonic_ns
