"""Gathering the evidence: ASR, quality, emotion and the judge work on a run's answers side by side.

Each speech stage has a thread (its engine may have processes of its own) and the judge an event loop; this thread
alone keeps the books. So the judge's waiting time vanishes behind the others. Whatever a stage finds is in its cache
before it arrives here: an interrupted run loses nothing.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

from harness.core.scorer import Unscored
from harness.engines.clip_engine import Clip, Kind
from scoring.benchmarks.benchmark import Benchmark, Evidence, Stage
from scoring.judge.task import JudgeTask, Verdict
from scoring.pipeline.answers import ItemAnswer
from scoring.speech.answer import Answer as HeardAnswer
from scoring.speech.stage import Heard

SPEECH: tuple[Kind, ...] = ("asr", "mos", "emotion")
RECORDED = "transcripts of the recording"
OUTSTANDING = 256
"""Judge tasks handed over at once: more than any judge works on, and few enough to hold."""

Progress = Callable[[Stage, int, int], None]
"""Called with (stage, answers or tasks done, in all so far); must return at once."""


class SpeechEngine(Protocol):
    """`scoring.speech.stage.SpeechStage`, as far as it is used here."""

    name: str

    def run(self, answers: Sequence[HeardAnswer], progress: None = None) -> Iterator[Heard]: ...


class JudgeEngine(Protocol):
    """`scoring.judge.client.Judge`, as far as it is used here."""

    def submit(self, task: JudgeTask) -> Future[Verdict]: ...


class Engines(NamedTuple):
    """What there is for each stage; missing: why there is nothing, for the others. recorded: transcripts are those that
    came with the recordings."""

    speech: Mapping[Stage, SpeechEngine]
    judge: JudgeEngine | None
    judge_name: str
    missing: Mapping[Stage, str]
    recorded: bool = False

    def names(self) -> dict[str, str]:
        """Stage to the name of its engine."""
        named: dict[str, str] = {stage: engine.name for stage, engine in self.speech.items()}
        named |= {"asr": RECORDED} if self.recorded else {}
        return named | ({"judge": self.judge_name} if self.judge else {})


class _Message(NamedTuple):
    """To the book-keeping thread. what: `heard`, `verdict`, `ended` (a stage is through) or `failed`."""

    what: str
    stage: Stage
    answer: int = -1
    name: str = ""
    value: Any = None


class Gatherer:
    """The evidence for `answers`. Used once: `gather`, which blocks."""

    def __init__(
        self, benchmark: Benchmark, answers: Sequence[ItemAnswer], engines: Engines, progress: Progress | None = None
    ) -> None:
        self._benchmark = benchmark
        self._answers = answers
        self._engines = engines
        self._progress = progress or (lambda stage, done, total: None)
        self._found: list[dict[str, Any]] = [{} for _ in answers]
        self._verdicts: list[dict[str, Verdict]] = [{} for _ in answers]
        self._missing: list[dict[str, str]] = [_absent(answer) for answer in answers]
        self._inbox: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._waiting: deque[tuple[int, JudgeTask]] = deque()
        self._outstanding = 0
        self._counts: dict[Stage, list[int]] = {}
        self._stop = threading.Event()

    def gather(self) -> list[Evidence]:
        """One evidence an answer, in their order.

        Raises what an engine raises that cannot go on (ConfigError, PrerequisiteError): all stages end first.
        """
        threads = [self._start(stage, wanted) for stage, wanted in self._wanted()]
        running = len(threads)
        try:
            for index, answer in enumerate(self._answers):
                needs = self._benchmark.needs(answer.item)
                if answer.text is not None and "judge" in needs and not answer.refused:
                    self._ask(index, self._benchmark.text_tasks(answer.item, answer.text))
                if self._engines.recorded and "asr" in needs and not (answer.failed or answer.refused):
                    self._read(index, answer.transcript)
            while running or self._waiting or self._outstanding:
                message = self._inbox.get()
                if message.what == "failed":
                    raise message.value
                running -= message.what == "ended"
                self._take(message)
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()
        return [self._evidence(index) for index in range(len(self._answers))]

    def _wanted(self) -> Iterator[tuple[Stage, list[int]]]:
        """Each speech stage that has an engine, and the answers that it is needed for."""
        for stage in SPEECH:
            if stage == "asr" and self._engines.recorded:
                continue
            needing = [i for i, answer in enumerate(self._answers) if stage in self._benchmark.needs(answer.item)]
            for index in needing:
                if stage not in self._engines.speech:
                    self._missing[index].setdefault(stage, self._engines.missing.get(stage, "no engine"))
            wanted = [index for index in needing if stage not in self._missing[index]]
            if wanted:
                self._counts[stage] = [0, len(wanted)]
                self._progress(stage, 0, len(wanted))
                yield stage, wanted

    def _start(self, stage: Stage, wanted: list[int]) -> threading.Thread:
        thread = threading.Thread(target=self._listen, args=(stage, wanted), name=f"score-{stage}", daemon=True)
        thread.start()
        return thread

    def _listen(self, stage: Stage, wanted: list[int]) -> None:
        """A stage's thread."""
        try:
            for heard in self._engines.speech[stage].run([_to_hear(index, self._answers[index]) for index in wanted]):
                self._inbox.put(_Message("heard", stage, int(heard.key), value=heard.value))
                if self._stop.is_set():
                    break
            self._inbox.put(_Message("ended", stage))
        except BaseException as exc:  # noqa: BLE001 - handed to the thread that gathers, which raises it
            self._inbox.put(_Message("failed", stage, value=exc))

    def _take(self, message: _Message) -> None:
        if message.what == "heard":
            self._heard(message)
            self._count(message.stage)
        elif message.what == "verdict":
            self._outstanding -= 1
            self._verdicts[message.answer][message.name] = message.value
            self._count("judge")
            self._feed()

    def _heard(self, message: _Message) -> None:
        index = message.answer
        if isinstance(message.value, Unscored):
            self._missing[index][message.stage] = message.value.reason
            return
        if message.stage == "asr":
            self._read(index, message.value.text)
        else:
            self._found[index][message.stage] = message.value

    def _read(self, index: int, transcript: str | None) -> None:
        """A transcript is there, or will never be."""
        answer = self._answers[index]
        if transcript is None:
            self._missing[index]["asr"] = "no transcript came with the recording"
            return
        self._missing[index].pop("asr", None)
        self._found[index]["asr"] = transcript
        if "judge" in self._benchmark.needs(answer.item):
            self._ask(index, self._benchmark.speech_tasks(answer.item, answer.text, transcript))

    def _ask(self, index: int, tasks: Sequence[JudgeTask]) -> None:
        if not tasks:
            return
        if self._engines.judge is None:
            self._missing[index].setdefault("judge", self._engines.missing.get("judge", "no judge"))
            return
        self._counts.setdefault("judge", [0, 0])[1] += len(tasks)
        self._waiting.extend((index, task) for task in tasks)
        self._feed()

    def _feed(self) -> None:
        while self._waiting and self._outstanding < OUTSTANDING and self._engines.judge is not None:
            index, task = self._waiting.popleft()
            self._outstanding += 1
            self._engines.judge.submit(task).add_done_callback(self._deliver(index, task.name))

    def _deliver(self, index: int, name: str) -> Callable[[Future[Verdict]], None]:
        def deliver(future: Future[Verdict]) -> None:
            failed = None if future.cancelled() else future.exception()
            if future.cancelled() or failed is not None:
                self._inbox.put(_Message("failed", "judge", value=failed or RuntimeError("the judge was closed")))
            else:
                self._inbox.put(_Message("verdict", "judge", index, name, future.result()))

        return deliver

    def _count(self, stage: Stage) -> None:
        self._counts[stage][0] += 1
        self._progress(stage, *self._counts[stage])

    def _evidence(self, index: int) -> Evidence:
        answer, found = self._answers[index], self._found[index]
        missing = dict(self._missing[index])
        for name, verdict in self._verdicts[index].items():
            if verdict.value is None:
                missing[f"judge.{name}"] = verdict.reason
        if answer.generation_s is None and "generation_s" in answer.timing["reasons"]:
            missing.setdefault("generation_s", answer.timing["reasons"]["generation_s"])
        return Evidence(
            item=answer.item,
            session=answer.session,
            turn=answer.turn,
            text=None if answer.refused else answer.text,
            transcript=found.get("asr"),
            mos=found.get("mos"),
            emotion=found.get("emotion"),
            answer_samples=answer.samples,
            answer_rate_hz=answer.rate_hz,
            generation_s=answer.generation_s,
            verdicts=self._verdicts[index],
            unscored=missing,
            engines=self._engines.names(),
        )


def _absent(answer: ItemAnswer) -> dict[str, str]:
    """What an answer lacks from the start, by stage."""
    if answer.refused:
        return dict.fromkeys(("answer", "text", *SPEECH, "judge"), answer.refused)
    if answer.failed:
        return dict.fromkeys(("answer", "text", *SPEECH, "judge"), f"no answer: {answer.failed}")
    missing = {} if answer.text is not None else {"text": "the peer sent no text of its own"}
    return missing if answer.pieces else missing | dict.fromkeys(SPEECH, "the answer has no sound")


def _to_hear(index: int, answer: ItemAnswer) -> HeardAnswer:
    def load() -> Clip:
        sound = answer.sound()
        return Clip(sound.samples, sound.rate_hz)

    return HeardAnswer(str(index), answer.sha256, answer.seconds, load)
