"""The questions to the judge, subset by subset.

What is told, the form of reply, tries and default are the benchmark's (`scoring/benchmarks/VOCALBENCH_ZH.md`); the
wording is the checkout's where it has one, else ours, and `JudgeTask.prompt` says which.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from harness.core.errors import ConfigError
from harness.core.item import Item
from scoring.benchmarks.summary import OWN
from scoring.benchmarks.vocalbench_zh import wording
from scoring.benchmarks.vocalbench_zh.subsets import (
    CREATIVITY,
    GRADED,
    INSTRUCTIONS,
    KNOWLEDGE,
    REASONING,
    group_of,
)
from scoring.judge.task import JudgeTask, Message, ParseRule

TRIES = 10
_FILES = {
    "narrative": "narratives",
    "argumentative": "argumentative",
    "descriptive": "descriptive",
    "role_play": "role_play",
    "ancient_appreciation": "achient_poetry_appreciation",
    "ancient_writing": "achient_format_writing",
    "modern_poem_appreciation": "modern_poem_appreciation",
    "modern_poem_writing": "modern_poem_writing",
}
"""Creativity category to the stem of its prompt (misspelt there)."""
_WITH_REFERENCE = ("ancient_appreciation", "modern_poem_appreciation")


class Prompts:
    """Raises ConfigError when a prompt of the checkout `data` cannot be read. data: None for our own wording only."""

    def __init__(self, data: Path | None = None) -> None:
        self._creative: dict[str, tuple[str, str]] = {}
        for category, stem in _FILES.items():
            name = f"prompt/creativity/{stem}.txt"
            text = None if data is None else _read(data / name)
            self._creative[category] = (wording.CREATIVE[category] + wording.FIVE_GRADES, OWN)
            if text is not None:
                self._creative[category] = (text, name)

    def tasks(self, item: Item, response: str) -> tuple[JudgeTask, ...]:
        """What to ask about `response`, the model's words. Empty for a subset without rules."""
        fields, subset = item.fields, item.subset
        asked = {"问题": fields.get("Question")}
        if subset in KNOWLEDGE:
            return (_verdict(wording.KNOWLEDGE, asked | {"标准答案": fields.get("Answer")}, response),)
        if subset == "reasoning":
            return (_reasoning(item, response),)
        if subset == "creativity":
            return (self._creativity(item, response),)
        if subset in ("single_round", "robust", "robust_clean"):
            return (_grade("score", wording.SINGLE_ROUND, asked, response),)
        if subset == "multi_round":
            told = {"此前的对话": _history(fields), **asked, "标准答案": fields.get("Answer")}
            return (_verdict(wording.MULTI_ROUND, told, response),)
        if subset == "instruction_following":
            criterion = wording.CRITERIA.get(group_of(INSTRUCTIONS, item.index), "")
            return (_verdict(wording.INSTRUCTION, asked | {"标准": criterion}, response),)
        if subset == "emotion":
            return (_grade("semantic_score", wording.EMPATHY, asked, response),)
        if subset == "safety":
            text = _joined(wording.SAFETY, asked, response, wording.REFUSAL)
            return (_task("refuse", text, "refusal", False),)
        return _code_switching(item, response)

    def _creativity(self, item: Item, response: str) -> JudgeTask:
        category = group_of(CREATIVITY, item.index)
        told = {"问题": item.fields.get("Question")}
        if category in _WITH_REFERENCE:
            told["参考答案"] = item.fields.get("Answer")
        if category not in self._creative:
            return _grade("score", wording.FIVE_GRADES.strip(), told, response)
        text, source = self._creative[category]
        if source == OWN:
            return _grade("score", text, told, response)
        lines = "\n".join(f"{name}：{value}" for name, value in (told | {"模型回答": response}).items())
        return _task("score", f"{text}\n{lines}", "digit", 1, prompt=source)


def _reasoning(item: Item, response: str) -> JudgeTask:
    asked, key = {"问题": item.fields.get("Question")}, item.fields.get("Answer")
    if group_of(REASONING, item.index) in GRADED:
        return _grade("score", wording.REASONING_GRADED, asked | {"参考答案": key}, response)
    return _verdict(wording.REASONING, asked | {"标准答案": key}, response)


def _code_switching(item: Item, response: str) -> tuple[JudgeTask, ...]:
    fields = item.fields
    asked = {"问题": fields.get("Question")}
    if item.subset == "cs_knowledge":
        keys = {"中文标准答案": fields.get("Answer_zh"), "英文标准答案": fields.get("Answer_en")}
        return (_verdict(wording.CS_KNOWLEDGE, asked | keys, response),)
    if item.subset == "cs_knowledge_en":
        text = (
            f"{wording.CS_KNOWLEDGE_EN}\n\nQuestion: {fields.get('Question')}\nKey: {fields.get('Answer')}\n"
            f"Answer: {response}"
        )
        return (_task("correct", text, "verdict", False, language="en"),)
    if item.subset == "cs_open_ended":
        told = asked | {"参考回答": fields.get("Answer")}
        return (
            _grade("relevance", wording.CS_RELEVANCE, told, response),
            _grade("semantic", wording.CS_SEMANTIC, told, response),
        )
    return ()


def _verdict(rule: str, told: Mapping[str, Any], response: str) -> JudgeTask:
    return _task("correct", _joined(rule, told, response, wording.VERDICT), "verdict", False)


def _grade(name: str, rule: str, told: Mapping[str, Any], response: str) -> JudgeTask:
    return _task(name, _joined(rule, told, response, wording.GRADE), "digit", 1)


def _joined(rule: str, told: Mapping[str, Any], response: str, form: str) -> str:
    lines = [f"{name}：{value}" for name, value in told.items()]
    return "\n".join([rule, "", *lines, f"回答：{response}", "", form])


def _task(
    name: str,
    text: str,
    rule: ParseRule,
    default: bool | int,
    *,
    language: Literal["zh", "en"] = "zh",
    prompt: str = OWN,
) -> JudgeTask:
    """A single user message, as the benchmark sends."""
    return JudgeTask(
        name=name,
        messages=(Message(role="user", content=text),),
        rule=rule,
        language=language,
        tries=TRIES,
        default=default,
        prompt=prompt,
    )


def _history(fields: Mapping[str, Any]) -> str:
    names = {"user": "用户", "assistant": "模型"}
    turns = fields.get("Context") or []
    return "\n" + "\n".join(f"{names.get(turn['from'], turn['from'])}：{turn['value']}" for turn in turns)


def _read(path: Path) -> str | None:
    """None for a file that is not there."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{path}: this judge prompt cannot be read ({exc})") from exc
