"""Turns put into a live recording afterwards: where they are, what they say, and that the session scores as any."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.core.audio import int16_to_pcm16
from harness.core.events import AudioReceived, ResponseDone, TurnEnded, TurnStarted, UserTranscript
from harness.core.run_directory import RunDirectory
from harness.core.session.reader import load_session
from harness.live.annotation import Annotator, put_turns
from harness.run.session_plan import SessionOptions
from scenarios.annotator import annotate, annotator_name
from scoring.timing.scorer import TimingScorer
from tests.live.room import RATE, hold, play_in
from tests.live.test_session import Replier, said
from tests.run.fakes import ToneQuery

pytestmark = pytest.mark.unit
OURS = Annotator(annotator_name(), annotate)


def hold_two_turns(folder: Path, **how):
    """Two queries, the second 2 s after the first answer; both answered 300 ms after their end."""
    (one, first), (two, second) = said("en-03", 2.0), said("en-01", 2.0)
    ends = [one.speech_end, len(first) + two.speech_end]

    async def speak(live, rig) -> None:
        await play_in(live, rig, first)
        live._sink(UserTranscript(t_ns=rig.clock.now_ns(), text=one.text, final=True))
        await play_in(live, rig, second)

    hold(lambda clock, sink: Replier(clock, sink, ends), speak, sessions=folder / "sessions", **how)
    return one, two, len(first)


def test_turns_are_marked_as_their_clips_are_and_scored(tmp_path: Path) -> None:
    one, two, offset = hold_two_turns(tmp_path)
    path = tmp_path / "sessions" / "00000-live"
    before = load_session(path)
    assert put_turns(path, OURS) == 2
    session = load_session(path)
    assert np.array_equal(session.user, before.user)
    assert np.array_equal(session.agent, before.agent)
    first, second = session.of(TurnStarted)
    ms = RATE // 1000
    assert first.speech_end == pytest.approx(one.speech_end, abs=15 * ms)
    assert second.speech_end == pytest.approx(offset + two.speech_end, abs=15 * ms)
    assert first.text == one.text
    assert "after the session" in first.annotator
    assert len(session.events) == len(before.events) + 2

    scored = TimingScorer().score(RunDirectory(tmp_path))
    assert [row["status"] for row in scored.rows] == ["ok", "ok"]
    for row, mark in zip(scored.rows, (first, second), strict=True):
        # The answer came with the chunk that ends 300 ms after the clip's own mark, its tone 100 ms later.
        clip_end = one.speech_end if mark is first else offset + two.speech_end
        packet_ms = (-(-(clip_end + 300 * ms) // 480) * 480 - mark.speech_end) / ms
        assert row["first_audible_ms"] == pytest.approx(packet_ms + 100, abs=10)


def test_turns_of_a_runs_sessions_have_names_of_their_own(tmp_path: Path) -> None:
    """Intervals are over queries: what was said first in two sessions is not one."""
    names = ("00000-live", "00001-live")
    for name in names:
        hold_two_turns(tmp_path, name=name)
        put_turns(tmp_path / "sessions" / name, OURS)
    turns = [turn.query for name in names for turn in load_session(tmp_path / "sessions" / name).of(TurnStarted)]
    assert turns == ["live-001", "live-002", "live-2-001", "live-2-002"]


def test_a_pause_is_no_end_and_an_answer_makes_one(tmp_path: Path) -> None:
    clip, samples = said("en-03", 1.0)
    again = np.concatenate([samples, clip.samples, np.zeros(RATE, np.int16)])
    hold(
        lambda clock, sink: Replier(clock, sink, []),
        lambda live, rig: play_in(live, rig, again),
        sessions=tmp_path,
    )
    assert put_turns(tmp_path / "00000-live", OURS) == 1
    session = load_session(tmp_path / "00000-live")
    (ended,) = session.of(TurnEnded)
    assert ended.outcome == "interrupted"

    hold(
        lambda clock, sink: Replier(clock, sink, [clip.speech_end]),
        lambda live, rig: play_in(live, rig, again),
        sessions=tmp_path,
    )
    assert put_turns(tmp_path / "00000-live", OURS) == 2


def test_push_to_talk_makes_turns_of_its_own(tmp_path: Path) -> None:
    _, samples = said("en-03", 0)

    async def speak(live, rig) -> None:
        for _ in range(2):
            live.talk(True)
            await play_in(live, rig, samples)
            live.talk(False)
            await play_in(live, rig, np.zeros(RATE, np.int16))

    hold(
        lambda clock, sink: Replier(clock, sink, []),
        speak,
        sessions=tmp_path / "sessions",
        options=SessionOptions(turn="manual"),
    )
    assert put_turns(tmp_path / "sessions" / "00000-live", OURS) == 2
    rows = TimingScorer().score(RunDirectory(tmp_path)).rows
    assert [row["status"] for row in rows] == ["ok", "ok"]
    assert [row["ttft_ms"] for row in rows] == [0, 0]


def test_an_answer_that_the_key_cut_is_not_heard_when_the_next_turn_begins(tmp_path: Path) -> None:
    _, samples = said("en-03", 0)

    class Long(Replier):
        def answer(self) -> None:
            self.answers += 1
            now_ns, tone = self.clock.now_ns(), ToneQuery(ms=9000, lead_ms=0).samples
            name, pcm = f"r{self.answers}", int16_to_pcm16(tone)
            self.sink(AudioReceived(t_ns=now_ns, samples=len(tone), rate_hz=RATE, response=name, pcm=pcm))
            self.sink(ResponseDone(t_ns=now_ns, response=name))

    async def speak(live, rig) -> None:
        for _ in range(2):
            live.talk(True)
            await play_in(live, rig, samples)
            live.talk(False)
            await play_in(live, rig, np.zeros(RATE, np.int16))

    hold(
        lambda clock, sink: Long(clock, sink, []),
        speak,
        sessions=tmp_path / "sessions",
        options=SessionOptions(turn="manual"),
    )
    assert put_turns(tmp_path / "sessions" / "00000-live", OURS) == 2
    _, second = TimingScorer().score(RunDirectory(tmp_path)).rows
    assert second["barge_in_stop_ms"] is None
    assert second["reasons"]["barge_in_stop_ms"] == "no answer was being heard when this turn began"


def test_without_speech_there_is_no_turn(tmp_path: Path) -> None:
    hold(
        lambda clock, sink: Replier(clock, sink, []),
        lambda live, rig: play_in(live, rig, np.zeros(RATE, np.int16)),
        sessions=tmp_path,
    )
    assert put_turns(tmp_path / "00000-live", OURS) == 0
