"""A barge-in: the user starts to speak while an answer to an earlier turn is being heard."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.core.playout import Played
from harness.core.scorer import Unscored
from scoring.timing.timeline import Instant
from scoring.timing.turn import Turn

NO_EVENT = Unscored(reason="no answer was being heard when this turn began")


class BargeIn(msgspec.Struct, frozen=True, kw_only=True):
    """onset_ns: start of the interrupting speech. heard_stop_ns: when the agent is no longer heard. last_packet_ns:
    arrival of the interrupted answers' last packet (None: continuous peer)."""

    onset_ns: int
    heard_stop_ns: int
    last_packet_ns: int | None


def barge_in(turn: Turn) -> BargeIn | Unscored:
    """The barge-in that `turn` is, or why it is none."""
    if not isinstance(turn.speech_start, Instant):
        return turn.speech_start
    onset_ns = turn.speech_start.t_ns
    if turn.session.header.profile.continuous:
        return _continuous(turn, onset_ns)
    recording = turn.recording
    earlier = [r for r in recording.responses if r.packets and r.start.t_ns < onset_ns]
    packets = sorted((packet for response in earlier for packet in response.packets), key=lambda packet: packet.seq)
    heard = recording.listener.unflushed(packets, onset_ns)
    spans = [_heard_span([heard[packet.seq] for packet in response.packets]) for response in earlier]
    if not any(span is not None and span[0] <= onset_ns < span[1] for span in spans):
        return NO_EVENT
    end_ns = max(span[1] for span in spans if span is not None)
    return BargeIn(onset_ns=onset_ns, heard_stop_ns=_cut(turn, onset_ns, end_ns), last_packet_ns=packets[-1].t_ns)


def _heard_span(played: Sequence[Played]) -> tuple[int, int] | None:
    """From when to when something of one answer is heard; None when all of it was flushed."""
    heard = [packet for packet in played if packet.end_ns > packet.start_ns]
    return (heard[0].start_ns, heard[-1].end_ns) if heard else None


def _continuous(turn: Turn, onset_ns: int) -> BargeIn | Unscored:
    for utterance in turn.recording.utterances:
        if utterance.start.t_ns <= onset_ns < utterance.end_ns:
            return BargeIn(onset_ns=onset_ns, heard_stop_ns=_cut(turn, onset_ns, utterance.end_ns), last_packet_ns=None)
    return NO_EVENT


def _cut(turn: Turn, onset_ns: int, end_ns: int) -> int:
    flushes = [flush_ns for flush_ns in turn.recording.listener.flushes_ns if flush_ns >= onset_ns]
    return min([end_ns, *flushes])
