"""From a session to its conversation: the user's spans from what was put on the timeline, the agent's as heard."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import msgspec
import numpy as np

from harness.core.audio import NS_PER_MS, Int16, ns_to_samples
from harness.core.events import ScenarioEvent, TurnStarted
from harness.core.playout import Played
from harness.core.scorer import Unscored
from harness.core.session.reader import Session
from harness.core.speech_edges import WINDOW_MS, is_silent
from harness.engines.vad import THRESHOLD, vad_name
from scoring.duplex.agent_speech import agent_spans, heard_pieces
from scoring.duplex.spans import Conversation, Span, UserSpan, Utterance, clip, merge
from scoring.timing.recording import Recording
from scoring.timing.response import Response
from scoring.timing.timeline import Instant

HOLD_NS = 2_000 * NS_PER_MS
"""Silence that a peer sends inside a response is a pause below this: between the sentences of the bundled answers lie
up to 1.12 s, and a listener who waits for the next one is still listening."""
STUMBLE_NS = 200 * NS_PER_MS
"""A flush whose response is heard on within this is no stop; shorter than the pauses at which people take turns."""
FRAGMENT_NS = 64 * NS_PER_MS
"""What a boundary between two responses leaves of a span must last as long as Silero asks of speech."""


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """A session's conversation. unplaced: event id to why it has no place on the timeline. vad: engine and version.

    threshold: of the engine. behind_ns: of a continuous peer, event id to how far playout was behind arrival at the
    event's end."""

    conversation: Conversation
    unplaced: dict[str, str]
    vad: str
    threshold: float
    behind_ns: dict[str, int] = {}


def hear(session: Session, *, threshold: float = THRESHOLD) -> Heard:
    """The conversation of a session. Raises SessionFormatError for damaged audio, ScoringError for impossible packets.

    Listening begins with the user's stream and ends with the session's last event. An agent span that comes within one
    window (10 ms) of the end reaches it.
    """
    recording = Recording(session)
    end_ns = max((event.t_ns for event in session.events), default=recording.origin_ns)
    begin_ns = min(recording.origin_ns, end_ns)
    user, unplaced = _user(recording, end_ns)
    packets = recording.packets
    played = [recording.listener.played[packet.seq] for packet in packets]
    spans: tuple[Span, ...] = ()
    if packets:
        rate_hz = packets[0].rate_hz
        clipped = [msgspec.structs.replace(p, end_ns=max(p.start_ns, min(p.end_ns, end_ns))) for p in played]
        if session.header.agent.samples or not session.header.imported:
            spans = agent_spans(heard_pieces(clipped, session.agent, rate_hz), rate_hz, threshold=threshold)
        else:  # imported intervals: when the agent speaks is known, its sound is not
            spans = merge(Span(p.start_ns, p.end_ns) for p in clipped)
        spans = tuple(_to_the_end(span, end_ns) for span in spans)
    # Nobody knows the packets and responses of an imported recording, even where it is laid out in some.
    only_sound = session.header.profile.continuous or bool(session.header.imported)
    conversation = Conversation(
        user=user,
        agent=spans,
        begin_ns=begin_ns,
        end_ns=end_ns,
        utterances=None if only_sound else _utterances(recording, spans, end_ns),
        wire=None if only_sound else _wire(recording.responses),
    )
    live = session.header.profile.continuous and not session.header.imported
    return Heard(
        conversation=conversation,
        unplaced=unplaced,
        vad=vad_name(),
        threshold=threshold,
        behind_ns=_behind_ns(played, user) if live else {},
    )


def _to_the_end(span: Span, end_ns: int) -> Span:
    return Span(span.start_ns, end_ns) if span.end_ns >= end_ns - WINDOW_MS * NS_PER_MS else span


def _user(recording: Recording, end_ns: int) -> tuple[tuple[UserSpan, ...], dict[str, str]]:
    """Spans of the scenario's events; of the turns where a session has none. What sounds past the end is cut there."""
    session = recording.session
    planned: list[tuple[ScenarioEvent | TurnStarted, UserSpan]] = [
        (
            event,
            UserSpan(
                0,
                0,
                kind=event.kind,
                expect=event.expect,
                event=event.event,
                offset_exact=event.offset_exact and not event.timed_out,
                category=event.category,
            ),
        )
        for event in session.of(ScenarioEvent)
    ]
    if not planned:
        planned = [
            (event, UserSpan(0, 0, kind="turn", expect="respond", event=event.query))
            for event in session.of(TurnStarted)
        ]
    spans: list[UserSpan] = []
    unplaced: dict[str, str] = {}
    for event, span in planned:
        start = recording.timeline.start_of(event.speech_start)
        end = recording.timeline.end_of(event.speech_end)
        if isinstance(start, Unscored):
            unplaced[span.event] = start.reason
        elif start.t_ns >= end_ns:
            unplaced[span.event] = "the session ended before it began"
        else:
            last_ns = min(end.t_ns, end_ns) if isinstance(end, Instant) else end_ns
            spans.append(msgspec.structs.replace(span, start_ns=start.t_ns, end_ns=max(last_ns, start.t_ns + 1)))
    return tuple(sorted(spans, key=lambda span: (span.start_ns, span.end_ns))), unplaced


def _behind_ns(played: Sequence[Played], user: Sequence[UserSpan]) -> dict[str, int]:
    """By event: how long the last packet that had come by its end waited for those before it to be played."""
    arrivals = [packet.packet.arrival_ns for packet in played]
    last = {span.event: bisect_right(arrivals, span.end_ns) - 1 for span in user}
    return {event: played[index].lead_ns for event, index in last.items() if index >= 0}


def _wire(responses: Sequence[Response]) -> tuple[Span, ...]:
    spans = (Span(r.start.t_ns, max(r.start.t_ns, r.packets[-1].t_ns)) for r in responses if r.packets)
    return tuple(sorted(spans))


def _utterances(recording: Recording, spans: Sequence[Span], end_ns: int) -> tuple[Utterance, ...]:
    """What a turn peer says, by response: parted by flushes that dropped something and were followed by 200 ms without
    the next packet, and by 2 s of silence that the peer sent; a stall parts nothing."""
    flushes = _cutting(recording)
    found: list[Utterance] = []
    for response in recording.responses:
        stretches = _stretches([recording.listener.played[packet.seq] for packet in response.packets], flushes)
        for number, played in enumerate(stretches, start=1):
            pieces = _joined(_fragments(spans, played), played)
            if not pieces:
                continue
            stop_ns, natural = pieces[-1].end_ns, _ending(response) if number == len(stretches) else None
            epoch = bisect_right(flushes, played[-1].packet.arrival_ns)
            if epoch < len(flushes) and _dropped_sound(played, flushes[epoch], recording.session.agent):
                stop_ns, natural = max(stop_ns, min(flushes[epoch], end_ns)), False
            elif _sound_after(played, end_ns, recording.session.agent):
                stop_ns = end_ns
            found += [Utterance(piece.start_ns, piece.end_ns) for piece in pieces[:-1]]
            found.append(Utterance(pieces[-1].start_ns, stop_ns, natural=None if stop_ns >= end_ns else natural))
    return tuple(sorted(found, key=lambda utterance: (utterance.start_ns, utterance.end_ns)))


def _stretches(played: Sequence[Played], flushes: Sequence[int]) -> list[list[Played]]:
    """The packets of one response, parted where a flush was followed by silence. A peer that talks on through a flush
    is heard to stumble, not to stop."""
    found: list[list[Played]] = []
    for packet in played:
        epoch = bisect_right(flushes, packet.packet.arrival_ns)
        same = bool(found) and bisect_right(flushes, found[-1][-1].packet.arrival_ns) == epoch
        if found and (same or packet.start_ns - flushes[epoch - 1] < STUMBLE_NS):
            found[-1].append(packet)
        else:
            found.append([packet])
    return found


def _cutting(recording: Recording) -> list[int]:
    """The flushes that dropped something: the first one after the arrival of each packet that was not heard whole."""
    flushes = recording.listener.flushes_ns
    cut = [p for p in recording.listener.played.values() if p.end_ns < p.instant_of(_after(p))]
    found = {bisect_right(flushes, p.packet.arrival_ns) for p in cut}
    return [flushes[index] for index in sorted(found) if index < len(flushes)]


def _after(played: Played) -> int:
    return played.packet.sample_start + played.packet.samples


def _fragments(spans: Sequence[Span], played: Sequence[Played]) -> list[Span]:
    """The parts of the agent's spans that were heard from these packets."""
    heard = merge((Span(p.start_ns, p.end_ns) for p in played), 0)
    found: list[Span] = []
    for span in spans:
        for stretch in heard:
            part = clip(span, stretch.start_ns, stretch.end_ns)
            if part is not None and (part == span or part.length_ns >= FRAGMENT_NS):
                found.append(part)
    return sorted(found)


def _joined(fragments: Sequence[Span], played: Sequence[Played]) -> list[Span]:
    found: list[Span] = []
    for span in fragments:
        if found and _sent_silence_ns(found[-1].end_ns, span.start_ns, played) < HOLD_NS:
            found[-1] = Span(found[-1].start_ns, max(found[-1].end_ns, span.end_ns))
        else:
            found.append(span)
    return found


def _sent_silence_ns(start_ns: int, end_ns: int, played: Sequence[Played]) -> int:
    parts = (clip(Span(p.start_ns, p.end_ns), start_ns, end_ns) for p in played if p.end_ns > p.start_ns)
    return sum(part.length_ns for part in parts if part is not None)


def _ending(response: Response) -> bool | None:
    if response.completed:
        return True
    return False if response.cancelled else None


def _dropped_sound(played: Sequence[Played], flush_ns: int, agent: Int16) -> bool:
    """Whether what the flush dropped of these packets is more than silence."""
    dropped = [
        agent[p.packet.sample_start + ns_to_samples(p.end_ns - p.start_ns, p.packet.rate_hz) : _after(p)]
        for p in played
        if p.end_ns < p.instant_of(_after(p)) and p.end_ns >= flush_ns
    ]
    return bool(dropped) and not is_silent(np.concatenate(dropped), played[0].packet.rate_hz)


def _sound_after(played: Sequence[Played], end_ns: int, agent: Int16) -> bool:
    """Whether more than silence of these packets plays after listening has ended."""
    later = [
        agent[p.packet.sample_start + max(0, ns_to_samples(end_ns - p.start_ns, p.packet.rate_hz)) : _after(p)]
        for p in played
        if p.end_ns > end_ns
    ]
    return bool(later) and not is_silent(np.concatenate(later), played[0].packet.rate_hz)
