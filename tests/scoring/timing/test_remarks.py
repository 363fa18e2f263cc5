"""Signs that a figure misleads: each is said when it must be, and not otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.clock import WallAnchor
from harness.core.events import (
    AudioSent,
    CommandSent,
    Event,
    InputCommitted,
    Note,
    PeerError,
    ResponseStarted,
    StreamStarted,
    UserSpeechStopped,
)
from harness.core.profile import Profile
from harness.core.session.header import AudioInfo, ClockInfo, Header, PeerInfo
from harness.core.session.reader import load_session
from harness.core.session.writer import SessionWriter
from scoring.timing.remarks import SLOW_WORD_MS, remarks

MS = 1_000_000


def codes(folder: Path, mode: str, *events: Event, profile: Profile | None = None) -> set[str]:
    header = Header(
        session="s",
        peer=PeerInfo(kind="k", label="l", version="1"),
        mode=mode,
        profile=profile or Profile(),
        clock=ClockInfo(name="test", resolution_ns=1),
        anchor=WallAnchor(wall_ns=0, monotonic_ns=0),
        user=AudioInfo(file="user.wav", rate_hz=1000),
        agent=AudioInfo(file="agent.wav", rate_hz=1000),
    )
    writer = SessionWriter(folder, header)
    for event in events:
        writer.append(event)
    writer.close()
    return {code for code, _ in remarks(load_session(folder / "s"))}


COMMIT = CommandSent(t_ns=10 * MS, started_ns=10 * MS, command="commit", turn=0)
ANSWER = ResponseStarted(t_ns=20 * MS, response="r")


def test_a_commit_that_was_never_confirmed_is_said(tmp_path: Path) -> None:
    assert codes(tmp_path, "manual", COMMIT, ANSWER) == {"uncommitted"}


def test_nothing_is_said_where_the_protocol_has_no_confirmation(tmp_path: Path) -> None:
    assert codes(tmp_path, "manual", COMMIT, ANSWER, profile=Profile(confirms_commit=False)) == set()


@pytest.mark.parametrize(
    ("mode", "events"),
    [("manual", (COMMIT, InputCommitted(t_ns=12 * MS), ANSWER)), ("manual", (COMMIT,)), ("vad", (ANSWER,))],
)
def test_a_confirmed_or_unanswered_commit_is_not(tmp_path: Path, mode: str, events: tuple[Event, ...]) -> None:
    assert codes(tmp_path, mode, *events) == set()


@pytest.mark.parametrize(("late_ms", "said"), [(SLOW_WORD_MS - 1, set()), (SLOW_WORD_MS + 1, {"slow_word"})])
def test_a_word_that_was_held_back_is_said(tmp_path: Path, late_ms: int, said: set[str]) -> None:
    stream = [StreamStarted(t_ns=5 * MS, sample=0, rate_hz=1000)]
    sent = [
        AudioSent(t_ns=t * MS, planned_ns=t * MS, started_ns=t * MS, sample=t - 105, samples=100, pcm=bytes(200))
        for t in range(105, 3005, 100)
    ]
    stop = UserSpeechStopped(t_ns=(5 + 800 + late_ms) * MS, audio_ms=800)
    assert codes(tmp_path, "vad", *stream, *sent, stop) == said


def test_notes_and_unreadable_messages_are_passed_on(tmp_path: Path) -> None:
    note = Note(t_ns=1, code="rate", message="m")
    broken = PeerError(t_ns=2, code="unreadable", message="x")
    assert codes(tmp_path, "vad", note, broken, PeerError(t_ns=3, code="other", message="y")) == {"rate", "unreadable"}
