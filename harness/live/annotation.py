"""Turns of a live session, put into its recording afterwards: where each began and ended is the offline annotator's.

While a person speaks nobody knows where a turn will end. Here the whole recording is at hand: spans of speech are
found in `user.wav`, joined into turns (`harness.live.turn_rule`) and marked as any clip is; the session is written anew
with a `TurnStarted` for each. The annotator comes from the caller: this room does not know it.
"""

from __future__ import annotations

import shutil
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from harness.core.audio import Int16, int16_to_float, int16_to_pcm16, ms_to_samples, samples_to_ns
from harness.core.errors import ConfigError
from harness.core.events import (
    AudioReceived,
    AudioSent,
    CommandSent,
    ConnectionClosed,
    Event,
    MediaAnchor,
    ResponseStarted,
    StreamStarted,
    StreamStopped,
    TextReceived,
    TurnEnded,
    TurnStarted,
    UserTranscript,
)
from harness.core.session.reader import Session, load_session
from harness.core.session.writer import SessionWriter
from harness.engines.vad import speech_spans
from harness.live.turn_rule import goes_on
from harness.run.utterance_watch import UtteranceWatch

MARGIN_MS = 300
"""Kept around a turn's speech, for the annotator's windows."""


class Marks(Protocol):
    """Speech occupies samples [speech_start, speech_end)."""

    @property
    def speech_start(self) -> int: ...

    @property
    def speech_end(self) -> int: ...


class Annotator(NamedTuple):
    """name: with version, as it stands in the session. mark: samples (mono int16, shape (n,)) and rate to marks; raises
    ConfigError where there is no speech."""

    name: str
    mark: Callable[[Int16, int], Marks]


class _Stretch(NamedTuple):
    """Speech in samples [begin, end) of `user.wav`; nothing of it lies outside [low, high)."""

    begin: int
    end: int
    low: int
    high: int


def put_turns(directory: Path, annotator: Annotator) -> int:
    """Find the turns of the session in `directory` and write them into it; how many there are.

    Raises SessionFormatError for a directory that is no whole session, OSError when the disk fails.
    """
    session = load_session(directory)
    turns = _turns(session, annotator)
    if turns:
        _rewrite(session, turns, annotator.name)
    return len(turns)


def _turns(session: Session, annotator: Annotator) -> list[TurnStarted]:
    rate_hz = session.header.user.rate_hz
    media = _Media(session)
    found: list[TurnStarted] = []
    for stretch in _grouped(session, media):
        margin = ms_to_samples(MARGIN_MS, rate_hz)
        low, high = max(stretch.low, stretch.begin - margin), min(stretch.high, stretch.end + margin)
        try:
            marks = annotator.mark(session.user[low:high], rate_hz)
        except ConfigError:  # a click that the whole recording made speech of
            continue
        start = low + marks.speech_start
        turn = TurnStarted(
            t_ns=media.instant_of(start),
            turn=len(found),
            query=_query(session.header.session, len(found) + 1),
            clip_sample=low,
            clip_samples=high - low,
            speech_start=start,
            speech_end=low + marks.speech_end,
            annotator=f"{annotator.name}, after the session",
        )
        found.append(turn)
    return _with_words(session, found)


def _query(session: str, number: int) -> str:
    """A name that no other turn of the run has: `live-001` in its first session, `live-2-001` in its second."""
    place = session.partition("-")[0]
    later = f"{int(place) + 1}-" if place.isdecimal() and int(place) else ""
    return f"live-{later}{number:03d}"


def _grouped(session: Session, media: _Media) -> list[_Stretch]:
    """Spans of speech, joined into turns, in order."""
    answers, commits = _answers(session), [e.t_ns for e in session.of(CommandSent) if e.command == "commit"]
    turns: list[_Stretch] = []
    for low, high in _streams(session):
        turns += _in_stream(session, low, high, media, answers, commits)
    return turns


def _in_stream(
    session: Session, low: int, high: int, media: _Media, answers: Sequence[int], commits: Sequence[int]
) -> list[_Stretch]:
    rate_hz = session.header.user.rate_hz
    turns: list[_Stretch] = []
    for span in speech_spans(int16_to_float(session.user[low:high]), rate_hz):
        begin, end = low + span.start, low + span.end
        if turns:
            last = turns[-1]
            from_ns, to_ns = media.instant_of(last.end), media.instant_of(begin)
            answered, committed = _any_between(answers, from_ns, to_ns), _any_between(commits, from_ns, to_ns)
            if goes_on(to_ns - from_ns, answered=answered, committed=committed):
                turns[-1] = last._replace(end=end)
                continue
            border = (last.end + begin) // 2
            turns[-1] = last._replace(high=border)
        turns.append(_Stretch(begin, end, turns[-1].high if turns else low, high))
    return turns


def _streams(session: Session) -> Iterator[tuple[int, int]]:
    """Samples [low, high) that were captured in one go."""
    low = 0
    for event in session.of(StreamStopped):
        if event.sample > low:
            yield low, event.sample
            low = event.sample
    if len(session.user) > low:
        yield low, len(session.user)


def _answers(session: Session) -> list[int]:
    """Instants at which answers with sound began, ascending."""
    if session.header.profile.continuous:
        watch, began = UtteranceWatch(), set[int]()
        for packet in session.of(AudioReceived):
            samples = session.agent[packet.sample : packet.sample + packet.samples]
            watch.take(msgspec.structs.replace(packet, pcm=int16_to_pcm16(samples)))
            began_ns = watch.began_after(0)
            began |= set() if began_ns is None else {began_ns}
        return sorted(began)
    first: dict[str, int] = {}
    sounded: set[int] = set()
    for event in session.events:
        if isinstance(event, ResponseStarted | TextReceived | AudioReceived):
            begin_ns = first.setdefault(event.response, event.t_ns) if event.response else event.t_ns
            if isinstance(event, AudioReceived) and event.samples > 0:
                sounded.add(begin_ns)
    return sorted(sounded)


def _any_between(instants: Sequence[int], from_ns: int, to_ns: int) -> bool:
    return bisect_right(instants, to_ns) > bisect_right(instants, from_ns - 1)


def _with_words(session: Session, turns: list[TurnStarted]) -> list[TurnStarted]:
    """What the peer understood stands with the turn in whose time it came."""
    starts = [turn.t_ns for turn in turns]
    words: dict[int, list[str]] = {}
    for event in session.of(UserTranscript):
        at = bisect_right(starts, event.t_ns) - 1
        if event.final and at >= 0:
            words.setdefault(at, []).append(event.text.strip())
    return [msgspec.structs.replace(turn, text=" ".join(words.get(turn.turn, ()))) for turn in turns]


def _rewrite(session: Session, turns: Sequence[TurnStarted], annotator: str) -> None:
    header = session.header
    live = {**header.config.get("live", {}), "annotated": f"{annotator}, after the session"}
    header = msgspec.structs.replace(header, complete=False, config={**header.config, "live": live})
    writer = SessionWriter(session.path.parent, header)
    try:
        for event in _with_turns(session, turns):
            writer.append(_with_sound(session, event))
        if (wire := session.path / "wire.jsonl").exists():
            shutil.copy(wire, writer.partial)
        writer.close(header.dropped)
    except BaseException:
        shutil.rmtree(writer.partial, ignore_errors=True)
        raise


def _with_turns(session: Session, turns: Sequence[TurnStarted]) -> Iterator[Event]:
    """Each turn stands before the first packet with something of it."""
    waiting = list(turns)
    for event in session.events:
        while waiting and isinstance(event, AudioSent) and event.sample + event.samples > waiting[0].clip_sample:
            yield waiting.pop(0)
        yield event
    yield from waiting
    if turns and _called_off(session, turns[-1]):
        last_ns = session.events[-1].t_ns
        yield TurnEnded(t_ns=last_ns, turn=turns[-1].turn, outcome="interrupted", reason="the session was ended")


def _called_off(session: Session, last: TurnStarted) -> bool:
    """Whether we ended the session before anything came for the last turn."""
    if any(event.by != "us" for event in session.of(ConnectionClosed)):
        return False
    return not any(packet.t_ns >= last.t_ns for packet in session.of(AudioReceived))


def _with_sound(session: Session, event: Event) -> Event:
    if isinstance(event, AudioSent):
        samples = session.user[event.sample : event.sample + event.samples]
        return msgspec.structs.replace(event, pcm=int16_to_pcm16(samples))
    if isinstance(event, AudioReceived):
        samples = session.agent[event.sample : event.sample + event.samples]
        return msgspec.structs.replace(event, pcm=int16_to_pcm16(samples))
    return event


class _Media:
    """Sample of `user.wav` to instant, near enough to tell what came before what."""

    def __init__(self, session: Session) -> None:
        marks = [(e.sample, e.t_ns) for e in session.of(MediaAnchor) if e.side == "user"]
        marks += [(e.sample, e.t_ns) for e in session.of(StreamStarted)]
        self._marks = sorted(marks) or [(0, session.header.anchor.monotonic_ns)]
        self._samples = [sample for sample, _ in self._marks]
        self._rate_hz = session.header.user.rate_hz

    def instant_of(self, sample: int) -> int:
        begin, t_ns = self._marks[max(0, bisect_right(self._samples, sample) - 1)]
        return t_ns + samples_to_ns(sample - begin, self._rate_hz)
