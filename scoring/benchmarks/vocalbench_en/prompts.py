"""The questions to the judge, subset by subset.

What is told, the form of reply, tries and default are the benchmark's (`utils/qwenmax_eval.py` of snapshot 5e9cce0):
the rubric as system message, question and answer as user message. The rubric's wording is the checkout's where it has
one, else ours, and `JudgeTask.prompt` says which.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.core.errors import ConfigError
from harness.core.item import Item
from scoring.benchmarks.summary import OWN
from scoring.benchmarks.vocalbench_en import wording
from scoring.judge.task import JudgeTask, Message

TAG_TRIES, GRADE_TRIES = 10, 1
"""A grade has one try: the original returns within its loop."""
NO_TAG, NO_GRADE = -1, 1
"""What an unreadable reply counts."""
REFUSAL_TAGS = ("[Succeed Refusal]", "[Failed Refusal]")
FOLLOWED_TAGS = ("[Yes]", "[No]")


class Prompts:
    """Rubrics of the checkout `data`; None for our own wording only. Raises ConfigError for one that is there and
    cannot be read."""

    def __init__(self, data: Path | None = None) -> None:
        self._folder = None if data is None else data / "prompts"
        self._known = {name: self._read(name, own) for name, own in _own().items()}

    def grade(self, item: Item, response: str) -> JudgeTask:
        """1 to 5 for an item of any graded subset."""
        fields, subset = item.fields, item.subset
        told: dict[str, Any] = {}
        if subset == "multi_round":
            told["Context"] = _history(fields)
        told["Question"] = fields.get("Question")
        if subset in ("reasoning", "multi_round"):
            told["Standard Answer"] = fields.get("Answer")
        if subset == "emotion":
            told["Question Emotion"] = fields.get("Question_emo")
        name = "robust" if subset.startswith("robust") else subset
        if subset == "creativity":
            name = f"creativity/{_stem(fields.get('Category'))}"
        return self._task("semantic_score" if subset == "emotion" else "score", name, told, response)

    def followed(self, item: Item, response: str) -> JudgeTask:
        """Whether the instruction was followed."""
        told = {"Question": item.fields.get("Question")}
        return self._task("followed", f"instruction/{kind_of(item.fields)}", told, response, tags=FOLLOWED_TAGS)

    def refused(self, name: str, item: Item, response: str) -> JudgeTask:
        """Whether the request was refused. name: of the task."""
        return self._task(name, "safety", {"Question": item.fields.get("Question")}, response, tags=REFUSAL_TAGS)

    def _task(
        self,
        name: str,
        rubric: str,
        told: Mapping[str, Any],
        response: str,
        tags: tuple[str, str] | None = None,
    ) -> JudgeTask:
        text, source = self._known.get(rubric) or self._read(rubric, _plain(rubric))
        lines = [f"{label}: {value}" for label, value in told.items()]
        return JudgeTask(
            name=name,
            messages=(
                Message(role="system", content=text),
                Message(role="user", content="\n\n  ".join([*lines, f"Response: {response}"])),
            ),
            rule="tag" if tags else "digit",
            language="en",
            tries=TAG_TRIES if tags else GRADE_TRIES,
            default=NO_TAG if tags else NO_GRADE,
            prompt=source,
            tags=tags or FOLLOWED_TAGS,
        )

    def _read(self, name: str, own: str) -> tuple[str, str]:
        """Text and provenance of a rubric."""
        if self._folder is None:
            return own, OWN
        for stem in (name, name.replace("creativity/", "creativity/creativity_")):
            path = self._folder / f"{stem}.txt"
            try:
                return path.read_text(encoding="utf-8"), f"prompts/{stem}.txt"
            except FileNotFoundError:
                continue
            except (OSError, UnicodeDecodeError) as exc:
                raise ConfigError(f"{path}: this judge prompt cannot be read ({exc})") from exc
        return own, OWN


def kind_of(fields: Mapping[str, Any]) -> str:
    """The kind of an instruction, as its rubric's file is called: `content_num`, `situation`."""
    category = _stem(fields.get("Category"))
    return f"{category}_{_stem(fields.get('Sub-category'))}" if category in ("content", "style") else category


def _own() -> dict[str, str]:
    found = {f"creativity/{name}": text + wording.GRADE for name, text in wording.CREATIVE.items()}
    found |= {f"instruction/{name}": _followed(text) for name, text in wording.CRITERIA.items()}
    graded = {
        "reasoning": wording.REASONING,
        "single_round": wording.SINGLE_ROUND,
        "robust": wording.SINGLE_ROUND,
        "multi_round": wording.MULTI_ROUND,
        "emotion": wording.EMOTION,
    }
    return found | {name: text + wording.GRADE for name, text in graded.items()} | {"safety": wording.REFUSED}


def _plain(rubric: str) -> str:
    """For a category that the benchmark does not have."""
    return _followed("") if rubric.startswith("instruction/") else wording.SINGLE_ROUND + wording.GRADE


def _followed(criterion: str) -> str:
    return f"{wording.FOLLOWED}\n{criterion}".rstrip() + wording.TAGGED


def _stem(name: object) -> str:
    return str(name or "").lower().replace(" ", "_").replace("/", "_")


def _history(fields: Mapping[str, Any]) -> str:
    names = {"user": "User", "assistant": "Model"}
    turns = fields.get("Context") or []
    return "\n " + "".join(f"{names[turn['from']]}: {turn['value']}\n" for turn in turns if turn["from"] in names)
