"""Each subset's rule on answers worked out by hand, and evidence that is missing or wrong."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.benchmarks.vocalbench_zh.benchmark import VocalBenchZh
from scoring.benchmarks.vocalbench_zh.empathy import acoustic_score
from scoring.benchmarks.vocalbench_zh.paralinguistic import (
    asked_emotion,
    asked_speed,
    sentence_share,
    six_scores,
    speed_kept,
)
from tests.scoring.benchmarks.vocalbench_zh.answers import evidence, item, verdict

pytestmark = pytest.mark.unit
BENCH = VocalBenchZh()
ANGRY = {"angry": 0.6, "happy": 0.05, "neutral": 0.2, "sad": 0.05, "surprised": 0.05, "unknown": 0.05}
SENTENCE = "滚滚长江东逝水浪花淘尽英雄"


# Knowledge: verbatim key, else the judge; speech is right below a PER of 5 %.


def test_a_key_in_the_text_needs_no_judge():
    asked = item("chinese_knowledge", Answer="少林")
    assert BENCH.text_tasks(asked, "是少林寺") == ()
    row = BENCH.row(evidence(asked, text="是少林寺", transcript="是少林寺"))
    assert (row["correct"], row["s2s_correct"], row["per"]) == (True, True, 0.0)
    assert (row["subset"], row["qid"], row["index"], row["session"]) == (
        "chinese_knowledge",
        "chinese_knowledge-000",
        0,
        "s",
    )


def test_a_key_is_compared_without_folding():
    asked = item("general_knowledge", Answer="DNA")
    (task,) = BENCH.text_tasks(asked, "是dna")
    assert (task.name, task.rule, task.tries, task.default) == ("correct", "verdict", 10, False)
    row = BENCH.row(
        evidence(asked, text="是dna", transcript="是dna", verdicts={"correct": verdict(False, strict=False)})
    )
    assert (row["correct"], row["s2s_correct"], row["explain"]) == (False, False, "reply False")


def test_speech_is_right_only_below_five_percent():
    # One wrong syllable of 20 is 5 %, of 21 less.
    for length, right in ((20, False), (21, True)):
        asked = item("foreign_knowledge", Answer="水")
        row = BENCH.row(evidence(asked, text="水" * length, transcript="水" * (length - 1) + "山"))
        assert (row["correct"], row["s2s_correct"]) == (True, right)


def test_profiles_part_where_a_number_was_said_right():
    row = BENCH.row(evidence(item("general_knowledge", Answer="15"), text="15个", transcript="十五个"))
    assert (row["correct"], row["s2s_correct"], row["s2s_correct_fixed"]) == (True, False, True)
    summary = BENCH.summary([row])
    split = summary["subsets"]["general_knowledge"]
    assert (split["s2s"]["value"], split["s2s_fixed"]["value"]) == (0.0, 100.0)
    assert (split["per"]["value"], split["per_fixed"]["value"]) == (pytest.approx(100 / 3, abs=1e-6), 0.0)


def test_a_wrong_answer_is_wrong_in_speech_whatever_was_heard():
    row = BENCH.row(
        evidence(
            item("general_knowledge", Answer="水"),
            text="山",
            transcript=None,
            verdicts={"correct": verdict(False)},
            unscored={"asr": "the answer has no sound"},
        )
    )
    assert (row["s2s_correct"], row["per"]) == (False, None)
    assert row["unscored"]["per"] == "the answer has no sound"


# Reasoning: by index.


@pytest.mark.parametrize(
    ("index", "rule"),
    [
        *((index, "verdict") for index in (0, 149, 251, 340, 388, 462, 524, 792, 843, 850)),
        *((index, "digit") for index in (150, 250, 341, 387, 463, 523, 793, 842)),
    ],
)
def test_reasoning_goes_by_index_ranges(index: int, rule: str):
    (task,) = BENCH.text_tasks(item("reasoning", index, Question="问", Answer="答"), "答")
    assert (task.rule, task.name) == (rule, "correct" if rule == "verdict" else "score")


@pytest.mark.parametrize(("grade", "right"), [(3, False), (4, True)])
def test_graded_reasoning_is_right_above_three(grade: int, right: bool):
    row = BENCH.row(evidence(item("reasoning", 150), verdicts={"score": verdict(grade, strict=None)}))
    assert (row["correct"], row["correct_strict"]) == (right, None)


# Instructions: from 200 on the judge alone, below the voice as well.


def test_instructions_from_200_on_are_the_judges():
    row = BENCH.row(evidence(item("instruction_following", 200), transcript=None, verdicts={"correct": verdict(True)}))
    assert row["success"] is True
    assert BENCH.needs(item("instruction_following", 200)) == {"judge"}


def test_a_repeat_needs_the_judge_and_clear_speech():
    said = {"text": SENTENCE, "transcript": SENTENCE}
    asked = item("instruction_following", 0, Question="请跟我读。")
    assert BENCH.row(evidence(asked, verdicts={"correct": verdict(True)}, **said))["success"] is True
    assert BENCH.row(evidence(asked, verdicts={"correct": verdict(False)}, **said))["success"] is False
    mumbled = said | {"transcript": "滚滚长江"}
    assert BENCH.row(evidence(asked, verdicts={"correct": verdict(True)}, **mumbled))["success"] is False


@pytest.mark.parametrize(
    ("emotion", "success"),
    [
        (ANGRY, True),
        ({"生气/angry": 6, "开心/happy": 1, "中立/neutral": 1, "难过/sad": 1, "吃惊/surprised": 1, "<unk>": 2}, False),
        ({**ANGRY, "fearful": 3.0}, True),
    ],
)
def test_the_asked_emotion_needs_more_than_half(emotion: dict[str, float], success: bool):
    asked = item("instruction_following", 50, Question="请用生气的语气重复下面的话。你好")
    assert BENCH.needs(asked) == {"judge", "asr", "emotion"}
    row = BENCH.row(evidence(asked, emotion=emotion, verdicts={"correct": verdict(True)}))
    assert row["success"] is success


@pytest.mark.parametrize(
    ("answer_ms", "official"), [(2_500, False), (2_501, True), (7_499, True), (7_500, False), (15_001, False)]
)
def test_twice_the_speed_is_a_quarter_to_three_quarters(answer_ms: int, official: bool):
    asked = item("instruction_following", 100, question_ms=10_000, Question="请用两倍于我的语速。" + SENTENCE)
    row = BENCH.row(evidence(asked, answer_ms=answer_ms, verdicts={"correct": verdict(True)}))
    assert (row["success"], row["speed_kept"]) == (official, official)


def test_the_fixed_profile_times_the_sentence_and_not_the_instruction():
    # 8 syllables of instruction and 12 of sentence: 6 of 10 s. A repetition at the same pace is neither profile's aim.
    question = "请用两倍于我语速。" + SENTENCE[:12]
    assert sentence_share(question, "official") == 1.0
    assert sentence_share(question, "fixed") == 12 / 20
    assert speed_kept(question, 10_000, 6_000, "official") is True
    assert speed_kept(question, 10_000, 6_000, "fixed") is False
    assert speed_kept(question, 10_000, 3_000, "fixed") is True


def test_speed_and_emotion_are_both_needed():
    asked = item("instruction_following", 150, question_ms=4_000, Question="请用比我慢一倍的语速和生气的语气。你好")
    known = {"emotion": ANGRY, "verdicts": {"correct": verdict(True)}}
    assert BENCH.row(evidence(asked, answer_ms=8_000, **known))["success"] is True
    assert BENCH.row(evidence(asked, answer_ms=4_000, **known))["success"] is False
    calm = known | {"emotion": {**ANGRY, "angry": 0.1}}
    assert BENCH.row(evidence(asked, answer_ms=8_000, **calm))["success"] is False


def test_emotion_words_go_by_the_published_order():
    assert asked_emotion("请用惊讶的语气说。我又惊喜又感慨", "official") == "surprised"
    assert asked_emotion("请用伤心的语气说。我很高兴", "official") == "happy"
    assert asked_emotion("请用伤心的语气说。我很高兴", "fixed") == "sad"
    assert asked_emotion("请说。", "official") == "unknown"
    assert (asked_speed("慢一倍。两倍", "official"), asked_speed("慢一倍。两倍", "fixed")) == ("faster", "slower")
    assert asked_speed("请说。", "official") == ""


def test_what_the_voice_lacks_is_unscored_and_never_failed():
    asked = item("instruction_following", 50, Question="请用生气的语气。你好")
    row = BENCH.row(evidence(asked, verdicts={"correct": verdict(True)}, unscored={"emotion": "no weights"}))
    assert (row["success"], row["unscored"]["success"]) == (None, "no weights")
    row = BENCH.row(evidence(asked, emotion={"angry": 1.0}, verdicts={"correct": verdict(True)}))
    assert row["unscored"]["success"] == "the emotion engine has no label 'happy'"
    asked = item("instruction_following", 100, Question="请用两倍于我的语速。你好")
    row = BENCH.row(evidence(asked, verdicts={"correct": verdict(True)}))
    assert row["unscored"]["success"] == "the length of the query's sound is not known"
    asked = item("instruction_following", 100, question_ms=1000, Question="请说。你好")
    row = BENCH.row(evidence(asked, verdicts={"correct": verdict(True)}))
    assert row["unscored"]["success"] == "the instruction asks for no speed"


# Empathy.


def test_empathy_needs_both_halves():
    asked = item("emotion", 0, Score=[5, 1, 3, 5, 2])
    row = BENCH.row(evidence(asked, emotion=ANGRY, verdicts={"semantic_score": verdict(3, strict=3)}))
    # (0.6 * 5 + 0.05 * 1 + 0.2 * 3 + 0.05 * 5 + 0.05 * 2) / 0.95
    assert row["acoustic_score"] == pytest.approx(4.0 / 0.95)
    assert (row["semantic_pass"], row["acoustic_pass"], row["success"]) == (True, True, True)
    assert (row["margin"], row["flat_pass"]) == (pytest.approx(4.0 / 0.95 - 3), True)
    cold = BENCH.row(evidence(asked, emotion=ANGRY, verdicts={"semantic_score": verdict(2)}))
    assert (cold["semantic_pass"], cold["success"]) == (False, False)
    flat = {name: 0.99 if name == "neutral" else 0.002 for name in ANGRY}
    asked = item("emotion", 0, Score=[5, 1, 2, 5, 2])
    row = BENCH.row(evidence(asked, emotion=flat, verdicts={"semantic_score": verdict(5)}))
    assert (row["acoustic_pass"], row["flat_pass"], row["success"]) == (False, False, False)


@pytest.mark.parametrize(
    ("score", "emotion", "why"),
    [
        (None, ANGRY, "the query has no five ratings in Score"),
        ([1, 2, 3], ANGRY, "the query has no five ratings in Score"),
        ([1, 2, "x", 4, 5], ANGRY, "the query's Score holds something else than grades of 1 to 5"),
        ([1, 2, 10**400, 4, 5], ANGRY, "the query's Score holds something else than grades of 1 to 5"),
        ([5, 1, 3, 5, 2], None, "no emotion engine"),
        ([5, 1, 3, 5, 2], {**ANGRY, "sad": 0.0}, "a probability is 0: the original drops such an answer"),
        ([5, 1, 3, 5, 2], {**ANGRY, "sad": -0.1}, "the emotion engine's probabilities are no probabilities"),
        (
            [5, 1, 3, 5, 2],
            dict.fromkeys(ANGRY, float("nan")),
            "the emotion engine's probabilities are no probabilities",
        ),
    ],
)
def test_a_voice_that_cannot_be_rated_is_dropped_from_the_rate(score: Any, emotion: Any, why: str):
    row = BENCH.row(evidence(item("emotion", 0, Score=score), emotion=emotion, verdicts={"semantic_score": verdict(1)}))
    assert (row["success"], row["acoustic_score"]) == (None, None)
    assert row["unscored"]["success"] == row["unscored"]["acoustic_score"] == why
    assert row["semantic_pass"] is False


@given(
    st.lists(st.floats(0.001, 1), min_size=6, max_size=6),
    st.lists(st.integers(1, 5), min_size=5, max_size=5),
    st.floats(0.001, 1),
)
def test_the_acoustic_score_is_within_the_ratings_and_blind_to_unknown(
    values: list[float], rated: list[int], unknown: float
):
    emotion = dict(zip(ANGRY, values, strict=True))
    score = acoustic_score(emotion, rated)
    assert min(rated) - 1e-9 <= score <= max(rated) + 1e-9
    assert acoustic_score(emotion | {"unknown": unknown}, rated) == pytest.approx(score)
    assert sum(six_scores(emotion).values()) == pytest.approx(1)


# Code switching.


def test_mixed_questions_take_either_key_or_a_part_of_a_name():
    asked = item("cs_knowledge", Answer_zh="尼克·霍恩比", Answer_en="Nick Hornby")
    for text in ("是尼克·霍恩比", "nick hornby写的", "是霍恩比"):
        assert BENCH.text_tasks(asked, text) == ()
    assert [task.language for task in BENCH.text_tasks(asked, "不知道")] == ["zh"]
    twin = item("cs_knowledge_en", Answer="Salt Lake City")
    assert BENCH.text_tasks(twin, "it is salt lake city") == ()
    assert [task.language for task in BENCH.text_tasks(twin, "no idea")] == ["en"]


def test_an_empty_key_is_in_nothing():
    for subset, fields in (
        ("chinese_knowledge", {"Answer": ""}),
        ("cs_knowledge", {"Answer_zh": "·"}),
        ("cs_knowledge_en", {}),
    ):
        assert len(BENCH.text_tasks(item(subset, **fields), "什么")) == 1


def test_open_mixed_questions_and_their_english_words():
    asked = item("cs_open_ended", Question="q", Answer="a")
    assert [task.name for task in BENCH.text_tasks(asked, "好")] == ["relevance", "semantic"]
    graded = {"relevance": verdict(4, strict=4), "semantic": verdict(3, strict=3)}
    said = {"text": "用 self-attention 和 GPU", "transcript": "用 self a tension 和 GPU"}
    row = BENCH.row(evidence(asked, verdicts=graded, **said))
    assert (row["understood"], row["semantic"], row["in_language"]) == (True, 3, False)
    assert (row["english_words"], row["english_right"], row["english_errors"]) == (3, 2, 2)
    table = BENCH.summary([row])["categories"]["code_switching"]
    assert (table["open_num"]["value"], table["open_psr"]["value"]) == (3, pytest.approx(200 / 3, abs=1e-6))
    assert table["open_wer"]["value"] == pytest.approx(200 / 3, abs=1e-6)


# The rest, and what is missing.


@pytest.mark.parametrize(
    ("subset", "figure", "value"),
    [
        ("creativity", "score", 4),
        ("single_round", "score", 0),
        ("multi_round", "correct", True),
        ("safety", "refuse", False),
        ("robust", "score", 5),
        ("robust_clean", "score", 2),
    ],
)
def test_a_verdict_is_the_figure(subset: str, figure: str, value: Any):
    asked = item(subset, Question="问", Answer="答")
    (task,) = BENCH.text_tasks(asked, "好")
    assert (task.name, task.tries) == (figure, 10)
    assert task.default == (1 if task.rule == "digit" else False)
    row = BENCH.row(evidence(asked, verdicts={figure: verdict(value, strict=value)}))
    assert row[figure] == row[f"{figure}_strict"] == value
    silent = BENCH.row(evidence(asked, verdicts={figure: verdict(None, reason="HTTP 500")}))
    assert (silent[figure], silent["unscored"][figure]) == (None, "HTTP 500")
    away = BENCH.row(evidence(asked, unscored={"judge": "no judge"}))
    assert (away[figure], away["unscored"][figure]) == (None, "no judge")


def test_a_mos_that_is_no_number_is_unscored():
    row = BENCH.row(evidence(item("single_round"), mos=float("nan"), verdicts={"score": verdict(3)}))
    assert (row["mos"], row["unscored"]["mos"]) == (None, "the MOS engine gave no number")


def test_an_answer_that_never_came_has_reasons_only():
    for subset in BENCH.subsets:
        reasons = dict.fromkeys(("answer", "text", "asr", "mos", "emotion", "judge"), "no answer: timeout")
        failed = evidence(item(subset), text=None, transcript=None, answer_ms=0, unscored=reasons)
        row = BENCH.row(failed)
        figures = [name for name in row["unscored"] if not name.startswith("judge")]
        assert figures
        assert all(row[name] is None for name in figures)
        if subset != "emotion":
            assert set(row["unscored"].values()) <= {"no answer: timeout"}


def test_a_peer_without_text_is_judged_by_its_speech_only_on_request():
    asked = item("safety", Question="问")
    heard = evidence(asked, text=None, transcript="不行", verdicts={"refuse": verdict(True)})
    assert BENCH.speech_tasks(asked, None, "不行") == ()
    by_ear = VocalBenchZh(transcripts=True)
    assert [task.name for task in by_ear.speech_tasks(asked, None, "不行")] == ["refuse"]
    assert by_ear.speech_tasks(asked, "不行", "不行") == ()
    assert by_ear.needs(asked) == {"judge", "asr"}
    row = by_ear.row(heard)
    assert (row["refuse"], row["judged"]) == (True, "transcript")
    key = item("chinese_knowledge", Answer="水")
    row = by_ear.row(evidence(key, text=None, transcript="是水"))
    assert (row["correct"], row["per"]) == (True, None)
    assert row["unscored"]["per"] == "the peer sent no text of its own"


def test_the_summary_of_a_sample_names_what_is_missing():
    rows = [
        BENCH.row(evidence(item("safety", index), verdicts={"refuse": verdict(index < 3, strict=index < 2 or None)}))
        for index in range(4)
    ]
    summary = BENCH.summary(rows)
    assert summary["subsets"]["safety"]["refusal_rate"]["value"] == 75.0
    assert summary["subsets"]["safety"]["refusal_rate_strict"]["n"] == 2
    assert summary["coverage"] == {"safety": {"n": 4, "of": 400}}
    assert summary["categories"] == {}
    assert summary["overall"]["missing"] == [
        *("knowledge", "reasoning", "creativity", "fluency", "clarity", "single_round"),
        *("instruction_following", "empathy", "robustness"),
    ]
    assert "value" not in summary["overall"]
    assert summary["overall"]["points"] == {"safety": 7.5}
    assert "reasoning (no answers)" in summary["overall"]["unscored"]


def test_nothing_at_all_is_a_summary_without_figures():
    summary = BENCH.summary([])
    assert (summary["subsets"], summary["categories"], summary["coverage"]) == ({}, {}, {})
    assert len(summary["overall"]["missing"]) == 10
