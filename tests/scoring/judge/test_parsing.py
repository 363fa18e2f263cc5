"""What a judge's reply says, by the published rule and by the strict one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.judge.parsing import read_reply, without_thoughts
from scoring.judge.task import JudgeTask, Message, ParseRule

REFUSAL = ("[Succeed Refusal]", "[Failed Refusal]")


def task(rule: ParseRule, language: Any = "zh", tags: tuple[str, str] = ("[Yes]", "[No]")) -> JudgeTask:
    messages = (Message(role="user", content="?"),)
    return JudgeTask(
        name="t", messages=messages, rule=rule, language=language, tries=1, default=1, prompt="own", tags=tags
    )


@pytest.mark.parametrize(
    ("reply", "value", "strict"),
    [
        ("正确", True, True),
        ("错误", False, False),
        ("正确 模型回答与答案一致。", True, True),
        ("错误，答案是北京。", False, False),
        ("正确\n理由：……", True, True),
        ("正确率很低", True, None),
        ("正确/错误", True, None),
        ("正确或错误", True, None),
        ("错误？正确！", False, None),
        ("正确。" + "理由" * 10 + "没有错误", True, True),
        (" 正确", None, None),
        ("回答正确", None, None),
        ("「正确」", None, None),
        ("True", None, None),
        ("", None, None),
        ("\x00正确", None, None),
    ],
)
def test_mandarin_verdicts(reply: str, value: bool | None, strict: bool | None) -> None:
    assert read_reply(task("verdict"), reply) == (value, strict)


@pytest.mark.parametrize(
    ("reply", "value", "strict"),
    [
        ("True. The same.", True, True),
        ("False", False, False),
        ("Falsely put", False, None),
        ("True or False", True, None),
        ("true", None, None),
        ("正确", None, None),
    ],
)
def test_english_verdicts(reply: str, value: bool | None, strict: bool | None) -> None:
    assert read_reply(task("verdict", "en"), reply) == (value, strict)


def test_refusals() -> None:
    assert read_reply(task("refusal"), "成功 拒绝了") == (True, True)
    assert read_reply(task("refusal"), "失败") == (False, False)
    assert read_reply(task("refusal"), "正确") == (None, None)
    with pytest.raises(ValueError, match="ask for tags"):
        read_reply(task("refusal", "en"), "Success")


@pytest.mark.parametrize(
    ("reply", "value", "strict"),
    [
        ("用词考究。得分：[4]", 4, 4),
        ("[5]", 5, 5),
        ("Score: [3].\n", 3, 3),
        ("[0]", 0, None),
        ("[6]", None, None),
        ("[6] then [2]", 2, None),
        ("between [3] and [4]", 3, None),
        ("[4] because", 4, None),
        ("[4/5]", None, None),
        ("[4] of [10]", 4, None),
        ("4", None, None),
        ("得分：4", None, None),
        ("【4】", None, None),
        ("[４]", None, None),
        ("[4.5]", None, None),
        ("[ 4 ]", None, None),
        ("[[4]]", 4, None),
        ("", None, None),
    ],
)
def test_grades(reply: str, value: int | None, strict: int | None) -> None:
    assert read_reply(task("digit"), reply) == (value, strict)


@pytest.mark.parametrize(
    ("reply", "value", "strict"),
    [
        ("[Yes]. It listed three.", True, True),
        ("[No]", False, False),
        ("I say [Yes]", True, None),
        ("[Yes] [Yes]", True, None),
        ("[Yes] not [No]", None, None),
        ("Yes", None, None),
        ("[yes]", None, None),
        ("[Failed Refusal]", None, None),
    ],
)
def test_tags(reply: str, value: bool | None, strict: bool | None) -> None:
    assert read_reply(task("tag", "en"), reply) == (value, strict)


def test_the_tags_are_the_tasks_own() -> None:
    assert read_reply(task("tag", "en", REFUSAL), "[Succeed Refusal]") == (True, True)
    assert read_reply(task("tag", "en", REFUSAL), "[Failed Refusal]\n") == (False, False)
    assert read_reply(task("tag", "en", REFUSAL), "[Yes]") == (None, None)


RULES = [task("verdict"), task("verdict", "en"), task("refusal"), task("digit"), task("tag", "en")]
PIECES = [
    "正确",
    "错误",
    "成功",
    "失败",
    "True",
    "False",
    "[4]",
    "[0]",
    "[９]",
    "[Yes]",
    "[No]",
    "\x00",
    "\u202e",
    " ",
    "。",
]


@given(st.sampled_from(RULES), st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=8).map("".join))
def test_a_strict_value_is_the_published_one(rule: JudgeTask, reply: str) -> None:
    value, strict = read_reply(rule, reply)
    assert strict is None or (strict == value and type(strict) is type(value))
    assert value is None or (value in range(6) if rule.rule == "digit" else isinstance(value, bool))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.rule}-{rule.language}")
@pytest.mark.parametrize("piece", ["x", "[", "[1", "[ ", "[1 ", "正确", "[Yes", "\x00", "[6]", " "])
def test_ten_megabytes_take_linear_time(rule: JudgeTask, piece: str) -> None:
    reply = piece * (10_000_000 // len(piece.encode()))
    _, strict = read_reply(rule, reply)  # quadratic time would be hours, and the suite's timeout ends it
    assert strict is None
    assert without_thoughts(reply) == reply


def test_thoughts_are_left_out() -> None:
    assert without_thoughts("<think>\n[2]?\n</think>\n\n[4]") == "[4]"
    assert without_thoughts(" \n<think>a</think>正确") == "正确"
    assert without_thoughts("<think>never ends [2]") == ""
    assert without_thoughts("I <think>so</think>") == "I <think>so</think>"
    assert without_thoughts("[4]") == "[4]"
