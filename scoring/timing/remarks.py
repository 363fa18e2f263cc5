"""What a reader must know about a session beside its figures: the harness's notes, and signs that a figure misleads."""

from __future__ import annotations

from collections.abc import Iterator

from harness.core.audio import NS_PER_MS
from harness.core.events import (
    AudioReceived,
    CommandSent,
    InputCommitted,
    Note,
    PeerError,
    ResponseStarted,
    RtpReceived,
    SessionReady,
    UserSpeechStopped,
)
from harness.core.pace import fitting_rate, is_plausible, pace_of
from harness.core.session.reader import Session
from harness.core.weights_mark import MARK, has_random_weights
from scoring.timing.response import responses_of
from scoring.timing.timeline import Instant, Timeline

SLOW_WORD_MS = 1000
"""A peer's word on the end of speech is usually there within its own silence time (half a second or so) of the audio
position that it names; one that comes this much later was held back by the peer."""

Remark = tuple[str, str]


def remarks(session: Session) -> set[Remark]:
    """(code, sentence) of everything worth saying, each once a session."""
    return {
        *_notes(session),
        *_unreadable(session),
        *_uncommitted(session),
        *_slow_word(session),
        *_contradicted_rate(session),
        *_random_weights(session),
    }


def _notes(session: Session) -> Iterator[Remark]:
    for note in session.of(Note):
        yield note.code, note.message


def _random_weights(session: Session) -> Iterator[Remark]:
    if has_random_weights(session.header.peer.config):
        yield "random_weights", f"{MARK}: latencies are those of the real size, what was said means nothing"


def _unreadable(session: Session) -> Iterator[Remark]:
    for error in session.of(PeerError):
        if error.code == "unreadable":
            yield "unreadable", f"the peer sent what cannot be read: {error.message}"


def _uncommitted(session: Session) -> Iterator[Remark]:
    """A manual turn that the peer answered without ever confirming the commit may not have been heard at all."""
    commits = sum(command.command == "commit" for command in session.of(CommandSent))
    answered = any(True for _ in session.of(ResponseStarted))
    if not session.header.profile.confirms_commit:
        return
    if session.header.mode == "manual" and answered and sum(1 for _ in session.of(InputCommitted)) < commits:
        yield "uncommitted", "the peer answered without confirming the commit: its answer may not depend on the query"


def _slow_word(session: Session) -> Iterator[Remark]:
    """The peer names an audio position in its end-of-speech message: how long after that position did it say so?"""
    timeline, rate_hz = Timeline(session), session.header.user.rate_hz
    for stop in session.of(UserSpeechStopped):
        if stop.audio_ms is None or stop.audio_ms <= 0:
            continue
        heard = timeline.end_of(stop.audio_ms * rate_hz // 1000)
        if isinstance(heard, Instant) and stop.t_ns - heard.t_ns > SLOW_WORD_MS * NS_PER_MS:
            yield (
                "slow_word",
                f"the peer's word on the end of speech came over {SLOW_WORD_MS} ms after the audio that it names: "
                "endpoint_ms holds its delay, and think_ms and an RTF from the endpoint leave it out",
            )
            return


def _contradicted_rate(session: Session) -> Iterator[Remark]:
    """Durations rest on the sample rate: is there a sign that it is another one? A header in the audio is one; for a
    peer that sends in real time, a second of audio that does not take a second to come. RTP has a clock of its own."""
    if any(True for _ in session.of(RtpReceived)):
        return
    declared = next((ready.output_rate_hz for ready in reversed(list(session.of(SessionReady)))), 0)
    packets = [packet for packet in session.of(AudioReceived) if packet.samples > 0]
    other = next((packet.rate_hz for packet in packets if declared and packet.rate_hz != declared), None)
    if other is not None:
        yield "rate_mismatch", f"the audio says {other} Hz, the session {declared} Hz; durations follow the audio"
        return
    if session.header.profile.pacing != "burst" or session.header.profile.continuous:
        yield from _contradicted_by_pace(session, packets)


def _contradicted_by_pace(session: Session, packets: list[AudioReceived]) -> Iterator[Remark]:
    if session.header.profile.continuous:
        answers = [packets]
    else:
        answers = [response.packets for response in responses_of(session)]
    for answer in answers:
        pace = pace_of(answer)
        if pace is None or is_plausible(answer[0].rate_hz, pace):
            continue
        rate_hz = answer[0].rate_hz
        fitting = fitting_rate(rate_hz, pace)
        fits = f"which would fit {fitting} Hz" if fitting else "which fits no usual rate"
        yield (
            "rate_mismatch",
            f"a peer that is said to send in real time declared {rate_hz} Hz, and its audio came {pace:.2f} times as "
            f"fast as it plays, {fits}: durations, stalls and RTF may be wrong",
        )
        return
