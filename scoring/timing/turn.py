"""The turns of a session and which answers belong to them.

Turn k owns what starts in [speech_start_k, speech_start_k+1) on the media timeline (the first turn also what came
before it, the last one everything after); where there is no media time, the window begins with the `TurnStarted`
event. Of its responses those that start before `speech_end` (upload: before `speech_sent`) are early. Used are the
others that delivered audio; latencies come from the first of them. A continuous peer's answer is the first utterance
that starts in [speech_end_k, speech_start_k+1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.core.events import AudioReceived, AudioSent, TurnEnded, TurnStarted
from harness.core.scorer import Unscored
from harness.core.session.reader import Session
from scoring.timing.listener import Utterance
from scoring.timing.recording import Recording
from scoring.timing.response import Response
from scoring.timing.timeline import Instant, Point

FOREVER_NS = 2**63 - 1
"""End of the last turn's window: no instant of a session's clock lies beyond it."""
NEVER_PUT = Unscored(reason="the query was never put on the timeline")
LOST = Unscored(reason="the connection went before the last of the query had left")


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One turn of a session.

    index: position in the session. number: the runner's own. started: None for a query that was never put on the
    timeline. begin_ns, end_ns: the window that owns answers. sent: chunks of user audio of the turn. early, later:
    responses by their start; used: those of `later` that delivered audio. speech_end, speech_sent: needed to tell
    early from late.
    """

    recording: Recording
    index: int
    number: int
    query: str
    begin_ns: int
    end_ns: int
    first_seq: int
    last_seq: int
    started: TurnStarted | None = None
    ended: TurnEnded | None = None
    sent: tuple[AudioSent, ...] = ()
    anchor_packet: AudioSent | None = None
    speech_start: Point = NEVER_PUT
    speech_end: Point = NEVER_PUT
    early: tuple[Response, ...] = ()
    later: tuple[Response, ...] = ()
    utterance: Utterance | None = None
    early_utterances: tuple[Utterance, ...] = ()
    used: tuple[Response, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "used", tuple(response for response in self.later if response.packets))

    @property
    def session(self) -> Session:
        return self.recording.session

    @property
    def packets(self) -> list[AudioReceived]:
        """Audio of all used responses, in order of arrival within each."""
        return [packet for response in self.used for packet in response.packets]

    @property
    def responses(self) -> tuple[Response, ...]:
        return (*self.early, *self.later)

    @property
    def speech_sent(self) -> Point:
        """The write of the anchor packet was complete; a packet that was lost with its connection never was."""
        if self.started is None:
            return NEVER_PUT
        if self.anchor_packet is None:
            lost = "the query was not sent to its end" if self.recording.sent else "no sends were recorded"
            return Unscored(reason=lost)
        if self.anchor_packet.lost:
            return LOST
        return Instant(t_ns=self.anchor_packet.t_ns, seq=self.anchor_packet.seq)


def turns_of(recording: Recording, started: Sequence[TurnStarted] = ()) -> list[Turn]:
    """All turns: those that were started, in order, then those that the runner set out to run and never started.

    started: what counts as turns in a session that has none of its own (a scenario's)."""
    session = recording.session
    started = list(session.of(TurnStarted)) or list(started)
    marks = [_begin_ns(recording, event) for event in started]
    turns = [_turn(recording, started, marks, index) for index in range(len(started))]
    seen = {event.turn for event in started}
    ended = {event.turn: event for event in session.of(TurnEnded)}
    seen |= {event.turn for event in session.of(TurnEnded) if event.moved_to}  # its row stands in that session
    never = [number for number in range(len(session.header.queries)) if number not in seen]
    for number in never:
        turns.append(
            Turn(
                recording=recording,
                index=len(turns),
                number=number,
                query=session.header.queries[number],
                begin_ns=FOREVER_NS,
                end_ns=FOREVER_NS,
                first_seq=len(session.events),
                last_seq=len(session.events),
                ended=ended.get(number),
            )
        )
    return turns


def _begin_ns(recording: Recording, event: TurnStarted) -> int:
    point = recording.timeline.start_of(event.speech_start)
    return point.t_ns if isinstance(point, Instant) else event.t_ns


def _turn(recording: Recording, started: Sequence[TurnStarted], marks: list[int], index: int) -> Turn:
    event, last = started[index], index + 1 == len(started)
    begin_ns = marks[index] if index else -FOREVER_NS
    end_ns = FOREVER_NS if last else marks[index + 1]
    following = None if last else started[index + 1]
    sent = recording.sent_between(event.clip_sample, following.clip_sample if following else None)
    anchor = _anchor_packet(recording, event)
    speech_end = _speech_end(recording, event, anchor)
    bound_ns = _early_bound(recording, speech_end, anchor)
    owned = [response for response in recording.responses if begin_ns <= response.start.t_ns < end_ns]
    if recording.session.header.profile.continuous:
        owned = []
    spoken = [u for u in recording.utterances if begin_ns <= u.start.t_ns < end_ns]
    return Turn(
        recording=recording,
        index=index,
        number=event.turn,
        query=event.query,
        begin_ns=begin_ns,
        end_ns=end_ns,
        first_seq=event.seq if index else 0,
        last_seq=following.seq if following else len(recording.session.events),
        started=event,
        ended=next((e for e in recording.session.of(TurnEnded) if e.turn == event.turn), None),
        sent=sent,
        anchor_packet=anchor,
        speech_start=recording.timeline.start_of(event.speech_start),
        speech_end=speech_end,
        early=tuple(response for response in owned if response.start.t_ns < bound_ns),
        later=tuple(response for response in owned if response.start.t_ns >= bound_ns),
        utterance=next((u for u in spoken if u.start.t_ns >= bound_ns), None),
        early_utterances=tuple(u for u in spoken if u.start.t_ns < bound_ns),
    )


def _anchor_packet(recording: Recording, event: TurnStarted) -> AudioSent | None:
    """The packet that holds sample `speech_end - 1` (with a look-ahead encoder: that many samples later); in an
    upload, the last packet of the whole clip."""
    header = recording.session.header
    if header.mode == "upload":
        return recording.packet_holding(event.clip_sample + event.clip_samples - 1)
    last = event.speech_end - 1
    held = last + header.profile.encoder_lookahead_samples
    clip_last = event.clip_sample + event.clip_samples - 1
    if last <= clip_last < held:  # a committed stream may end with the clip: nothing comes after to push the rest out
        return recording.packet_holding(held) or recording.packet_holding(clip_last)
    return recording.packet_holding(held)


def _speech_end(recording: Recording, event: TurnStarted, anchor: AudioSent | None) -> Point:
    """On the media timeline; a query whose end never left (where sends were recorded at all) has none."""
    if anchor is None and recording.sent:
        return Unscored(reason="the query was not sent to its end")
    return recording.timeline.end_of(event.speech_end)


def _early_bound(recording: Recording, speech_end: Point, anchor: AudioSent | None) -> int:
    """Answers that start before this instant are early. A query that was not sent to its end has early ones only; of
    recordings of others that give no time for it, none is."""
    if isinstance(speech_end, Instant):
        return speech_end.t_ns
    if recording.session.header.imported and not recording.sent:
        return -FOREVER_NS
    return anchor.t_ns if anchor is not None and not anchor.lost else FOREVER_NS
