"""What a listener hears: received packets on the playout timeline, audible instants, stalls, utterances.

Zero-buffer playout of everything that was not late, in order of arrival, the queue emptied at the profile's `flush_on`
events. A second model waits `buffer_ns` before the first packet and after each underrun.

The audibility rule works on concatenated samples, and the first loud window usually begins some ms before the sound. If
playout ran dry inside that window for longer than the window itself, its head belongs to the silence before the gap and
the sound begins with the packet after it; else a silent packet followed by a long wait would be called audible.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import msgspec
import numpy as np

from harness.core.audibility import DEFAULT, Audibility, audible_spans, first_audible_sample
from harness.core.audio import NS_PER_MS, Int16, ms_to_samples
from harness.core.errors import ScoringError
from harness.core.events import AudioReceived
from harness.core.playout import Packet, Played, play
from harness.core.scorer import Unscored
from harness.core.session.reader import Session
from scoring.stats import Int64
from scoring.timing.timeline import Instant, Point

JOIN_NS = 600 * NS_PER_MS
"""Gaps below this join two audible spans into one utterance (timing definitions, section 1)."""
_FIRST_LOOK_S = 1
"""Seconds of an answer searched first for its first sound; four times as much whenever nothing is found."""


class Utterance(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of audible sound as heard, [start, end)."""

    start: Instant
    end_ns: int


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """How an answer's packets met their playout. leads_ns: of the packets after the first."""

    stalls: int
    stall_ns: int
    leads_ns: tuple[int, ...]


class Listener:
    """The heard timeline of one session."""

    def __init__(self, session: Session, packets: Sequence[AudioReceived], rule: Audibility = DEFAULT) -> None:
        """packets: all audio of the session that was not late, in order of arrival.

        Raises ScoringError for a packet without a sample rate: no playout can be worked out then.
        """
        for packet in packets:
            if packet.rate_hz <= 0:
                raise ScoringError(f"{session.path}: event {packet.seq} has audio at {packet.rate_hz} Hz")
        self._session = session
        self._packets = packets
        self._rule = rule
        kinds = frozenset(session.header.profile.flush_on)
        self._models: dict[int, dict[int, Played]] = {}
        self.flushes_ns = tuple(sorted(event.t_ns for event in session.events if event.__struct_config__.tag in kinds))

    @property
    def played(self) -> dict[int, Played]:
        """Each packet in the zero-buffer model, by the `seq` of its event."""
        return self.model(0)

    def model(self, buffer_ns: int) -> dict[int, Played]:
        """Each packet in a model that waits `buffer_ns` before the first packet and after an underrun; made once."""
        if buffer_ns not in self._models:
            self._models[buffer_ns] = _played(self._packets, self.flushes_ns, buffer_ns)
        return self._models[buffer_ns]

    def unflushed(self, packets: Sequence[AudioReceived], from_ns: int) -> dict[int, Played]:
        """How `packets` would be heard (zero buffer) if nothing were flushed from `from_ns` on."""
        return _played(packets, [flush_ns for flush_ns in self.flushes_ns if flush_ns < from_ns])

    def first_audible(self, packets: Sequence[AudioReceived]) -> Point:
        """When the first audible sample of an answer's packets is heard."""
        samples = self._samples(packets)
        if samples is None:
            return Unscored(reason="the recording lacks samples of this answer")
        index = _first_sound(samples, packets[0].rate_hz, self._rule)
        if index is None:
            return Unscored(reason="silent: the answer never becomes audible")
        number, offset = self._after_gap(packets, index, _offsets(packets))
        packet = packets[number]
        played = self.played[packet.seq]
        t_ns = played.instant_of(packet.sample + offset)
        if t_ns >= played.end_ns:
            return Unscored(reason="flushed before its first sound was heard")
        return Instant(t_ns=t_ns, seq=packet.seq)

    def audible(self, packets: Sequence[AudioReceived]) -> bool:
        """Whether the samples of an answer, heard in full, ever become audible. An answer that the recording does not
        hold whole gets the benefit of the doubt: silence is the peer's fault, a lost sample is not."""
        samples = self._samples(packets)
        return samples is None or _first_sound(samples, packets[0].rate_hz, self._rule) is not None

    def delivery(self, packets: Sequence[AudioReceived], buffer_ns: int = 0) -> Delivery:
        """Underruns and leads between the packets of one answer; the wait for its first packet is no underrun."""
        heard = self.model(buffer_ns)
        after = [heard[packet.seq] for packet in packets[1:]]
        underruns = [played.underrun_ns for played in after if played.underrun_ns > 0]
        return Delivery(
            stalls=len(underruns), stall_ns=sum(underruns), leads_ns=tuple(played.lead_ns for played in after)
        )

    @cached_property
    def utterances(self) -> list[Utterance]:
        """Audible spans of the whole stream as heard, joined across gaps under 600 ms (continuous peers).

        A span of samples is cut where playout ran dry inside it, then joined again if the gap was short.
        """
        samples = self._samples(self._packets)
        if samples is None or not self._packets:
            return []
        found: list[Utterance] = []
        for piece in self._heard_spans(samples):
            if found and piece.start.t_ns - found[-1].end_ns < JOIN_NS:
                end_ns = max(found[-1].end_ns, piece.end_ns)
                found[-1] = msgspec.structs.replace(found[-1], end_ns=end_ns)
            else:
                found.append(piece)
        return found

    def _heard_spans(self, samples: Int16) -> list[Utterance]:
        offsets = _offsets(self._packets)
        pieces: list[Utterance] = []
        for span_start, end in audible_spans(samples, self._packets[0].rate_hz, self._rule):
            index, offset = self._after_gap(self._packets, span_start, offsets)
            start = int(offsets[index]) + offset
            while index < len(self._packets) and offsets[index] < end:
                packet = self._packets[index]
                played = self.played[packet.seq]
                first = packet.sample + max(0, start - int(offsets[index]))
                last = packet.sample + min(packet.samples, end - int(offsets[index]))
                begin_ns = played.instant_of(first)
                stop_ns = min(played.instant_of(last), played.end_ns)
                if stop_ns > begin_ns:
                    pieces.append(Utterance(start=Instant(t_ns=begin_ns, seq=packet.seq), end_ns=stop_ns))
                index += 1
        return pieces

    def _after_gap(self, packets: Sequence[AudioReceived], index: int, offsets: Int64) -> tuple[int, int]:
        """Where sample `index` of the concatenated packets lies: number of its packet and offset in that; or the first
        sample after a gap in playout that lies in the window beginning at `index` and is longer than the window."""
        window = ms_to_samples(self._rule.window_ms, packets[0].rate_hz)
        at = int(np.searchsorted(offsets, index, side="right")) - 1
        last = int(np.searchsorted(offsets, index + window - 1, side="right")) - 1
        for later in range(min(last, len(packets) - 1), at, -1):
            if self.played[packets[later].seq].underrun_ns > self._rule.window_ms * NS_PER_MS:
                return later, 0
        return at, index - int(offsets[at])

    def _samples(self, packets: Sequence[AudioReceived]) -> Int16 | None:
        """The packets' samples, concatenated; None when the recording does not hold them."""
        if not packets:
            return np.zeros(0, dtype=np.int16)
        agent = self._session.agent
        if max(packet.sample + packet.samples for packet in packets) > len(agent):
            return None
        first, last = packets[0].sample, packets[-1].sample + packets[-1].samples
        if last - first == sum(packet.samples for packet in packets):
            return agent[first:last]
        return np.concatenate([agent[packet.sample : packet.sample + packet.samples] for packet in packets])


def _offsets(packets: Sequence[AudioReceived]) -> Int64:
    """Where each packet begins in the concatenated samples, and their end; shape (n + 1,)."""
    return np.cumsum([0, *(packet.samples for packet in packets)], dtype=np.int64)


def _played(packets: Sequence[AudioReceived], flushes_ns: Sequence[int], buffer_ns: int = 0) -> dict[int, Played]:
    arrivals = [
        Packet(arrival_ns=event.t_ns, samples=event.samples, rate_hz=event.rate_hz, sample_start=event.sample)
        for event in packets
    ]
    heard = play(arrivals, flushes_ns=flushes_ns, buffer_ns=buffer_ns)
    return {event.seq: played for event, played in zip(packets, heard, strict=True)}


def _first_sound(samples: Int16, rate_hz: int, rule: Audibility) -> int | None:
    """`first_audible_sample`, looking at a growing prefix: a sound found there is the first of the whole as well."""
    length = _FIRST_LOOK_S * rate_hz
    while length < len(samples):
        found = first_audible_sample(samples[:length], rate_hz, rule)
        if found is not None:
            return found
        length *= 4
    return first_audible_sample(samples, rate_hz, rule)
