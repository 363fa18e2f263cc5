"""A benchmark small enough to work out by hand, and recordings of answers to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.core.audio import Int16
from harness.core.item import Item
from harness.core.run_directory import RunDirectory
from harness.core.session.reader import Session
from scoring.benchmarks.benchmark import Evidence, Stage
from scoring.judge.task import JudgeTask, Message
from tests.scoring.timing.recordings import Script, header, tone

NAME = "toy"


def item(index: int = 0, subset: str = "talk", **fields: Any) -> Item:
    return Item(benchmark=NAME, subset=subset, qid=f"{subset}-{index}", index=index, fields=fields)


class Toy:
    """`talk` wants all there is; `words` the judge alone, on the text; `sound` MOS alone."""

    name = NAME
    version = 1
    subsets = ("talk", "words", "sound")

    def needs(self, item: Item) -> frozenset[Stage]:
        wanted: dict[str, frozenset[Stage]] = {
            "talk": frozenset({"asr", "mos", "judge"}),
            "words": frozenset({"judge"}),
            "sound": frozenset({"mos"}),
        }
        return wanted[item.subset]

    def text_tasks(self, item: Item, text: str) -> tuple[JudgeTask, ...]:
        return (task("text", f"grade {text}"),)

    def speech_tasks(self, item: Item, text: str | None, transcript: str) -> tuple[JudgeTask, ...]:
        return (task("speech", f"grade heard {transcript}"),)

    def row(self, evidence: Evidence) -> dict[str, Any]:
        return {
            "subset": evidence.item.subset,
            "qid": evidence.item.qid,
            "index": evidence.item.index,
            "text": evidence.text,
            "transcript": evidence.transcript,
            "mos": evidence.mos,
            "verdicts": {name: verdict.value for name, verdict in evidence.verdicts.items()},
            "unscored": dict(evidence.unscored),
        }

    def summary(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {"subsets": {}, "categories": {}, "overall": {"missing": ["all"]}, "rows": len(rows)}


def task(name: str, prompt: str) -> JudgeTask:
    return JudgeTask(
        name=name,
        messages=(Message(role="user", content=prompt),),
        rule="digit",
        language="en",
        tries=2,
        default=1,
        prompt="own",
    )


def answered(
    sessions: Path, name: str, asked: Item, *, text: str = "hello", sound: Int16 | None = None, **changes: Any
) -> Session:
    """A turn: speech to 500 ms, text at 700, sound at 800 and 900 ms."""
    script = Script().connected().stream().turn(0, 100, 500, clip_ms=(0, 600)).send(0, 2000).begin(700)
    if text:
        script.text(700, text[:2]).text(720, text[2:])
    for ms, piece in ((800, sound), (900, sound)):
        if piece is not None:
            script.audio(ms, piece)
    script.done(1000).ended(1100)
    return script.write(sessions, header(session=name, items=(asked,), **changes))


def small_run(path: Path, items: Sequence[Item], **changes: Any) -> RunDirectory:
    """A run with an answer of 2 x 100 ms and its own pitch for each item."""
    run = RunDirectory(path)
    for number, asked in enumerate(items):
        answered(
            run.sessions, f"s{number}", asked, text=f"answer {number}", sound=tone(100, hz=500 + number), **changes
        )
    return run
