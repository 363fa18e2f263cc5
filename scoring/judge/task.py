"""What a judge is asked, and what came of it."""

from __future__ import annotations

from typing import Literal

import msgspec

ParseRule = Literal["verdict", "refusal", "digit", "tag"]
"""How a reply is read (`scoring.judge.parsing`). verdict: starts with the word for right or wrong; refusal: starts
with the word for success or failure; digit: a grade of 0 to 5 in square brackets, the first one found; tag: exactly one
of two bracketed tags."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    role: Literal["system", "user"]
    content: str


class JudgeTask(msgspec.Struct, frozen=True, kw_only=True):
    """One question to the judge.

    name: what the answer decides, unique within the item (`correct`, `semantic`, `refuse`). language: of the words that
    `rule` looks for. tries: calls at most until a reply can be read. default: what the published rule takes when none
    could. prompt: `own`, or the path within the benchmark's checkout that the wording was read from. tags: of the rule
    `tag`, the one for true first.
    """

    name: str
    messages: tuple[Message, ...]
    rule: ParseRule
    language: Literal["zh", "en"]
    tries: int
    default: bool | int
    prompt: str
    tags: tuple[str, str] = ("[Yes]", "[No]")


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a task.

    value: by the published rule, its default included; None only when the judge could not be asked (`reason` says why).
    strict: None unless the last reply was exactly in the asked form. reply: the last one. calls: how many were made.
    judge: model and endpoint's host. prompt: as in the task. cost and token counts are the judge's own, 0 where it
    gives none.
    """

    value: bool | int | None
    strict: bool | int | None
    reply: str
    calls: int
    judge: str
    prompt: str
    reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
