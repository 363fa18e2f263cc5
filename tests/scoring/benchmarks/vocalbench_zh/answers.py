"""Items, verdicts and evidence for the tests of the rules."""

from __future__ import annotations

from typing import Any

from harness.core.item import Item
from scoring.benchmarks.benchmark import Evidence
from scoring.judge.task import Verdict


def item(subset: str, index: int = 0, *, qid: str = "", question_ms: int = 0, **fields: Any) -> Item:
    return Item(
        benchmark="vocalbench-zh",
        subset=subset,
        qid=qid or f"{subset}-{index:03d}",
        index=index,
        fields=fields,
        question_samples=question_ms * 16,
        question_rate_hz=16_000,
    )


def verdict(
    value: bool | int | None, *, strict: bool | int | None = None, reason: str = "", prompt: str = "own"
) -> Verdict:
    return Verdict(
        value=value, strict=strict, reply=f"reply {value}", calls=1, judge="judge", prompt=prompt, reason=reason
    )


def evidence(asked: Item, *, answer_ms: int = 1000, **known: Any) -> Evidence:
    known = {"text": "好", "transcript": "好"} | known
    return Evidence(item=asked, session="s", answer_samples=answer_ms * 24, answer_rate_hz=24_000, **known)
