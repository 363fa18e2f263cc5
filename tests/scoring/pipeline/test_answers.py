"""Answers as they lie in sessions."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from harness.core.errors import ScoringError
from harness.core.run_directory import RunDirectory
from scoring.pipeline.answers import answers_of, session_answers
from scoring.pipeline.gather import Engines
from scoring.pipeline.score import score_run
from tests.scoring.pipeline.benchmarks import NAME, Toy, answered, item, small_run
from tests.scoring.timing.recordings import RATE, Script, header, tone


def test_an_answer_has_its_words_its_sound_and_its_times(tmp_path) -> None:
    asked = item(3, Question="why?")
    sound = tone(100)
    (answer,) = session_answers(answered(tmp_path, "s0", asked, text="hello there", sound=sound))
    assert answer.item == asked
    assert answer.text == "hello there"
    assert answer.samples == 2 * len(sound) == 4800
    assert answer.seconds == 0.2
    assert np.array_equal(answer.sound().samples, np.concatenate([sound, sound]).astype(np.float32) / 32768)
    assert answer.sha256 == hashlib.sha256(b"24000;" + np.concatenate([sound, sound]).tobytes()).hexdigest()
    assert answer.timing["first_packet_ms"] is not None
    assert answer.generation_s == answer.timing["generation_s"] is not None
    assert answer.failed == ""


def test_an_answer_without_sound_keeps_its_words(tmp_path) -> None:
    (answer,) = session_answers(answered(tmp_path, "s0", item(), text="only words"))
    assert (answer.text, answer.pieces, answer.sha256, answer.rate_hz) == ("only words", (), "", 0)
    assert answer.failed == ""


def test_no_answer_says_why(tmp_path) -> None:
    script = Script().connected().stream().turn(0, 100, 500, clip_ms=(0, 600)).send(0, 2000)
    script.ended(1800, "timeout", reason="nothing came within 1 s")
    (answer,) = session_answers(script.write(tmp_path, header(items=(item(),))))
    assert answer.text is None
    assert answer.failed == "timeout: no answer"


def test_a_transcript_that_came_with_the_recording_is_kept(tmp_path) -> None:
    (answer,) = session_answers(answered(tmp_path, "s0", item(), config={"transcript": "as heard"}))
    assert answer.transcript == "as heard"


def test_written_words_win_over_spoken_ones(tmp_path) -> None:
    from harness.core.events import TextReceived

    script = Script().connected().stream().turn(0, 100, 500, clip_ms=(0, 600)).send(0, 2000).begin(700)
    script.add(TextReceived(t_ns=script.at(701), text="two", kind="transcript", response="r0"))
    script.add(TextReceived(t_ns=script.at(702), text="2", kind="text", response="r0"))
    script.audio(800, tone(50)).done(1000).ended(1100)
    (answer,) = session_answers(script.write(tmp_path, header(items=(item(),))))
    assert answer.text == "2"


def test_pieces_follow_one_another_across_responses(tmp_path) -> None:
    script = Script().connected().stream().turn(0, 100, 500, clip_ms=(0, 600)).send(0, 3000)
    script.begin(700, "a").text(700, "one", "a").audio(800, tone(40), "a").done(900, "a")
    script.begin(950, "b").text(960, "two", "b").audio(970, tone(60), "b").done(1200, "b").ended(1300)
    (answer,) = session_answers(script.write(tmp_path, header(items=(item(),))))
    assert answer.text == "one\ntwo"
    assert answer.pieces == ((0, RATE // 10),)


def test_a_run_without_items_of_the_benchmark_says_what_it_holds(tmp_path) -> None:
    run = small_run(tmp_path / "run", [item()])
    with pytest.raises(ScoringError, match="its items are of toy"):
        list(answers_of(run, "vocalbench-zh"))
    plain = RunDirectory(tmp_path / "plain")
    Script().connected().stream().turn(0, 100, 500, clip_ms=(0, 600)).send(0, 2000).ended(2100, "timeout").write(
        plain.sessions, header()
    )
    with pytest.raises(ScoringError, match="bench --suite"):
        list(answers_of(plain, "vocalbench-zh"))


def test_warm_ups_are_no_answers(tmp_path) -> None:
    run = small_run(tmp_path / "run", [item(0), item(1)])
    answered(run.sessions, "warm", item(2), warmup=True)
    assert [answer.item.index for answer in answers_of(run, NAME)] == [0, 1]


def test_items_must_match_the_queries(tmp_path) -> None:
    session = answered(tmp_path, "s0", item())
    bad = answered(tmp_path, "s1", item(), queries=("q0", "q1"))
    assert session_answers(session)
    with pytest.raises(ScoringError, match="1 items for 2 queries"):
        session_answers(bad)


def test_what_was_never_asked_is_neither_answered_nor_failed(tmp_path) -> None:
    run = small_run(tmp_path / "run", [item(0)])
    for name, outcome, reason in (("lost", "timeout", ""), ("left", "not_run", "no sound: a.wav is missing")):
        script = Script().connected().stream().turn(0, 100, 500, clip_ms=(0, 600)).send(0, 2000)
        script.ended(1800, outcome, reason=reason)
        script.write(run.sessions, header(session=name, items=(item(len(name)),)))
    engines = Engines(speech={}, judge=None, judge_name="", missing={"judge": "no judge"})
    scores = score_run(run, Toy(), lambda needed: engines)
    assert {name: scores.summary[name] for name in ("answers", "failed", "not_run")} == {
        "answers": 1,
        "failed": 1,
        "not_run": 1,
    }
    (left,) = [row for row in scores.rows if row["session"] == "left"]
    assert left["unscored"]["text"] == "no answer: not_run: no sound: a.wav is missing"
