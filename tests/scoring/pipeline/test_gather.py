"""Stages side by side: what each delivers reaches its answer, whatever is missing says why, and nothing hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from harness.core.errors import PrerequisiteError
from harness.core.run_directory import RunDirectory
from harness.core.scorer import Unscored
from harness.core.session.header import PeerInfo
from harness.engines.asr import Transcript
from scoring.judge.task import JudgeTask, Verdict
from scoring.pipeline.answers import ItemAnswer, answers_of
from scoring.pipeline.gather import OUTSTANDING, Engines, Gatherer
from scoring.speech.answer import Answer
from scoring.speech.stage import Heard
from tests.scoring.pipeline.benchmarks import NAME, Toy, answered, item, small_run
from tests.scoring.timing.recordings import tone


class Fixed:
    """An engine whose results are a function of the answer's key."""

    def __init__(self, name: str, result: Any, *, pause_s: float = 0.0) -> None:
        self.name = name
        self.asked: list[str] = []
        self._result = result
        self._pause_s = pause_s

    def run(self, answers: Sequence[Answer], progress: None = None) -> Iterator[Heard]:
        for answer in answers:
            self.asked.append(answer.key)
            time.sleep(self._pause_s)
            yield Heard(answer.key, self._result(answer), False)


class Grader:
    """Answers each task on a thread of its own with the length of its prompt."""

    def __init__(self, *, pause_s: float = 0.0) -> None:
        self.tasks: list[JudgeTask] = []
        self.open = 0
        self.most_open = 0
        self._guard = threading.Lock()
        self._pause_s = pause_s

    def submit(self, task: JudgeTask) -> Future[Verdict]:
        future: Future[Verdict] = Future()
        with self._guard:
            self.tasks.append(task)
            self.open += 1
            self.most_open = max(self.most_open, self.open)
        threading.Thread(target=self._grade, args=(task, future)).start()
        return future

    def _grade(self, task: JudgeTask, future: Future[Verdict]) -> None:
        time.sleep(self._pause_s)
        with self._guard:
            self.open -= 1
        future.set_result(verdict(len(task.messages[0].content)))


def verdict(value: int | None, reason: str = "") -> Verdict:
    return Verdict(value=value, strict=value, reply="", calls=1, judge="grader", prompt="own", reason=reason)


def transcript(answer: Answer) -> Transcript:
    return Transcript(text=f"heard {answer.key}", words=None, model="fixed")


def engines(judge: Any = None, missing: dict[Any, str] | None = None, recorded: bool = False, **speech: Any) -> Engines:
    return Engines(speech=speech, judge=judge, judge_name="grader", missing=missing or {}, recorded=recorded)


@pytest.fixture
def answers(tmp_path) -> list[ItemAnswer]:
    run = small_run(tmp_path / "run", [item(0), item(1), item(2, "words"), item(3, "sound")])
    return list(answers_of(run, NAME))


def test_every_stage_reaches_its_answer(answers) -> None:
    asr, mos, judge = Fixed("asr", transcript), Fixed("mos", lambda answer: 4.0 + int(answer.key) / 10), Grader()
    evidence = Gatherer(Toy(), answers, engines(judge, asr=asr, mos=mos)).gather()
    assert [each.transcript for each in evidence] == ["heard 0", "heard 1", None, None]
    assert [each.mos for each in evidence] == [4.0, 4.1, None, 4.3]
    assert [sorted(each.verdicts) for each in evidence] == [["speech", "text"], ["speech", "text"], ["text"], []]
    assert evidence[1].verdicts["speech"].value == len("grade heard heard 1")
    assert [dict(each.unscored) for each in evidence] == [{}, {}, {}, {}]
    assert evidence[0].engines == {"asr": "asr", "mos": "mos", "judge": "grader"}


def test_sound_is_read_by_the_engine_only(answers) -> None:
    lengths: list[int] = []

    def hear(answer: Answer) -> float:
        lengths.append(len(answer.load().pcm))
        return 3.0

    Gatherer(Toy(), answers, engines(Grader(), asr=Fixed("asr", transcript), mos=Fixed("mos", hear))).gather()
    assert lengths == [4800, 4800, 4800]


def test_a_stage_without_engine_says_why(answers) -> None:
    missing = {"asr": "--asr none", "mos": "not installed", "judge": "no judge"}
    evidence = Gatherer(Toy(), answers, engines(missing=missing)).gather()
    assert dict(evidence[0].unscored) == missing
    assert dict(evidence[3].unscored) == {"mos": "not installed"}


def test_what_cannot_be_heard_or_judged_says_why(tmp_path) -> None:
    run = small_run(tmp_path / "run", [item(0)])
    answered(run.sessions, "mute", item(1), text="words alone")
    answered(run.sessions, "wordless", item(2), text="", sound=tone(100))
    found = list(answers_of(run, NAME))
    broken = Fixed("mos", lambda answer: Unscored(reason="too short"))
    evidence = Gatherer(Toy(), found, engines(Grader(), asr=Fixed("asr", transcript), mos=broken)).gather()
    by_item = {each.item.index: dict(each.unscored) for each in evidence}
    assert by_item[0] == {"mos": "too short"}
    silent = "the answer has no sound"
    assert by_item[1] == {"asr": silent, "mos": silent, "generation_s": "no answer with audio", **NO_EMOTION}
    assert by_item[2] == {"text": "the peer sent no text of its own", "mos": "too short"}


NO_EMOTION = {"emotion": "the answer has no sound"}


def test_recorded_transcripts_take_the_place_of_asr(tmp_path) -> None:
    run = small_run(tmp_path / "run", [item(0)], config={"transcript": "as they heard it"})
    answered(run.sessions, "other", item(1), sound=tone(50))
    judge = Grader()
    evidence = Gatherer(
        Toy(), list(answers_of(run, NAME)), engines(judge, recorded=True, mos=Fixed("mos", lambda answer: 1.0))
    ).gather()
    by_item = {each.item.index: each for each in evidence}
    assert by_item[0].transcript == "as they heard it"
    assert by_item[0].verdicts["speech"].value == len("grade heard as they heard it")
    assert by_item[1].unscored["asr"] == "no transcript came with the recording"


def test_a_judge_that_could_not_be_asked_leaves_its_reason(answers) -> None:
    class Silent(Grader):
        def _grade(self, task: JudgeTask, future: Future[Verdict]) -> None:
            future.set_result(verdict(None, "HTTP 401"))

    evidence = Gatherer(Toy(), answers[2:3], engines(Silent())).gather()
    assert dict(evidence[0].unscored) == {"judge.text": "HTTP 401"}


def test_an_engine_that_fails_ends_all_and_is_raised(answers) -> None:
    def full(answer: Answer) -> float:
        raise PrerequisiteError("disk full: free some space")

    with pytest.raises(PrerequisiteError, match="disk full"):
        Gatherer(Toy(), answers, engines(Grader(), asr=Fixed("asr", transcript), mos=Fixed("mos", full))).gather()


def test_a_judge_that_breaks_is_raised(answers) -> None:
    class Broken(Grader):
        def _grade(self, task: JudgeTask, future: Future[Verdict]) -> None:
            future.set_exception(PrerequisiteError("disk full"))

    with pytest.raises(PrerequisiteError, match="disk full"):
        Gatherer(Toy(), answers, engines(Broken(), asr=Fixed("a", transcript), mos=Fixed("m", transcript))).gather()


def test_the_judge_is_handed_a_bounded_number_of_tasks(answers) -> None:
    many = [answers[2]] * (OUTSTANDING + 50)
    judge = Grader(pause_s=0.05)
    evidence = Gatherer(Toy(), many, engines(judge)).gather()
    assert len(evidence) == len(judge.tasks) == OUTSTANDING + 50
    assert judge.most_open <= OUTSTANDING


def test_stages_work_side_by_side(answers) -> None:
    """Each stage waits until another one is at work: one after the other, this would never end."""
    meeting = threading.Barrier(2, timeout=20)

    def meet(result: Any) -> Any:
        def hear(answer: Answer) -> Any:
            if answer.key == "0":
                meeting.wait()
            return result(answer)

        return hear

    mos = Fixed("mos", meet(lambda answer: 3.0))
    Gatherer(Toy(), answers, engines(Grader(), asr=Fixed("asr", meet(transcript)), mos=mos)).gather()


def test_progress_counts_every_stage(answers) -> None:
    told: dict[str, tuple[int, int]] = {}
    Gatherer(
        Toy(),
        answers,
        engines(Grader(), asr=Fixed("asr", transcript), mos=Fixed("mos", lambda answer: 2.0)),
        lambda stage, done, total: told.update({stage: (done, total)}),
    ).gather()
    assert told == {"asr": (2, 2), "mos": (3, 3), "judge": (5, 5)}


def random_run(tmp_path) -> RunDirectory:
    return small_run(
        tmp_path / "random",
        [item(0), item(1, "sound")],
        peer=PeerInfo(kind="local", label="local-big", version="1", config={"facts": {"weights": "random"}}),
    )


def test_answers_of_random_weights_are_refused_and_no_engine_is_asked(tmp_path) -> None:
    judge, asr = Grader(), Fixed("asr", transcript)
    found = list(answers_of(random_run(tmp_path), NAME))
    for evidence in Gatherer(Toy(), found, engines(judge, asr=asr, mos=Fixed("mos", lambda answer: 4.0))).gather():
        assert (evidence.text, evidence.transcript, evidence.mos, evidence.verdicts) == (None, None, None, {})
        assert set(evidence.unscored.values()) == {"weights: random, so only its timing means anything"}
        assert {"answer", "text", "asr", "mos", "judge"} <= set(evidence.unscored)


def test_answers_of_random_weights_are_scored_when_told(tmp_path) -> None:
    found = list(answers_of(random_run(tmp_path), NAME, random_weights=True))
    mos = Fixed("mos", lambda answer: 4.0)
    evidence = Gatherer(Toy(), found, engines(Grader(), asr=Fixed("asr", transcript), mos=mos)).gather()
    assert [each.mos for each in evidence] == [4.0, 4.0]
