"""The English rules: rows and tables by hand, tasks in the asked form, the published knowledge flags."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import ConfigError
from harness.core.item import Item
from scoring.benchmarks.benchmark import Evidence
from scoring.benchmarks.registry import make_benchmark
from scoring.benchmarks.vocalbench_en import subsets, voice
from scoring.benchmarks.vocalbench_en.benchmark import VocalBenchEn
from scoring.benchmarks.vocalbench_en.clarity import clarity
from scoring.benchmarks.vocalbench_en.prompts import Prompts, kind_of
from scoring.judge.parsing import read_reply
from scoring.judge.task import JudgeTask, Verdict
from tests.scoring.judge.stub_judge import plausible

DATA = Path(__file__).parents[4] / "shared" / "data" / "vocalbench-en"
published = pytest.mark.skipif(not DATA.is_dir(), reason="shared data is not here: vocalbench-en")
RATE = 16_000
KINDS = {
    0: ("Paralinguistic", "Plain repeat"),
    200: ("Content", "Num"),
    500: ("Style", "Spoken format"),
    700: ("Situation", None),
}
TABLED = {"angry": 0.1, "happy": 0.6, "neutral": 0.1, "sad": 0.1, "surprised": 0.05, "<unk>": 0.05}


@pytest.fixture(scope="module")
def bench() -> VocalBenchEn:
    made = make_benchmark("vocalbench-en")
    assert isinstance(made, VocalBenchEn)
    return made


def item(subset: str, index: int = 0, qid: str = "", question_s: float = 0, **fields: Any) -> Item:
    return Item(
        benchmark="vocalbench-en",
        subset=subset,
        qid=qid or f"{subset}-{index:03d}",
        index=index,
        fields={"Question": "What now?", **fields},
        question_samples=round(question_s * RATE),
        question_rate_hz=RATE if question_s else 0,
        sound="data",
    )


def evidence(of: Item, **more: Any) -> Evidence:
    seconds = more.pop("answer_s", 2.0)
    return Evidence(item=of, session="s1", answer_samples=round(seconds * RATE), answer_rate_hz=RATE, **more)


def verdict(value: bool | int | None, strict: bool | int | None = None, **more: Any) -> Verdict:
    return Verdict(value=value, strict=strict, reply="so", calls=1, judge="j", prompt="own", **more)


def graded(subset: str, index: int, value: int | None, **more: Any) -> Evidence:
    qid = more.pop("qid", "")
    verdicts = {} if value is None else {"score": verdict(value, value)}
    return evidence(item(subset, index, qid, Category=more.pop("category", "")), verdicts=verdicts, **more)


# --- knowledge -------------------------------------------------------------------------------------------------


@published
def test_the_published_knowledge_flags() -> None:
    """1,000 items of the published llama-omni results: the same right and wrong answers, but for one item whose key was
    edited after the results were made (Taipei is not the capital of Indonesia)."""
    keys = json.loads((DATA / "json" / "knowledge.json").read_text())
    results = json.loads((DATA / "result" / "llama-omni" / "result" / "knowledge.json").read_text())
    bench = VocalBenchEn()
    rows, flags = [], []
    for result in results:
        index = int(result["question_id"].split("-")[1])
        of = item("knowledge", index, result["question_id"], **keys[index])
        rows.append(bench.row(evidence(of, text=result["prediction"], transcript=result["asr_pred"])))
        flags.append((bool(result.get("s2t_right")), bool(result.get("s2s_right"))))
    assert len(rows) == 1000
    ours = [(row["s2t_right"], row["s2s_right"]) for row in rows]
    assert [row["qid"] for row, got, want in zip(rows, ours, flags, strict=True) if got != want] == ["knowledge-0974"]
    assert [sum(pair[place] for pair in flags) for place in (0, 1)] == [553, 381]
    table = bench.summary(rows)["subsets"]["knowledge"]
    assert (table["s2t"]["value"], table["s2s"]["value"]) == (pytest.approx(55.2), pytest.approx(38.0))


def test_knowledge_is_a_normalised_substring(bench: VocalBenchEn) -> None:
    of = item("knowledge", Answer="Twenty-one", Topic="History", Source="webq-test")
    assert bench.needs(of) == {"asr"}
    row = bench.row(evidence(of, text="It was 21.", transcript="it was twenty two"))
    assert (row["s2t_right"], row["s2s_right"]) == (True, False)
    assert (row["category"], row["source"]) == ("History", "webq-test")
    row = bench.row(evidence(of, unscored={"asr": "no engine"}))
    assert row["unscored"] == {"s2t_right": "the peer sent no text of its own", "s2s_right": "no engine"}
    # A key of nothing but punctuation would stand in every answer.
    row = bench.row(evidence(item("knowledge", Answer="?"), text="a", transcript="a"))
    assert row["s2s_right"] is None


# --- judge tasks -----------------------------------------------------------------------------------------------


def test_what_is_asked_of_which_answer(bench: VocalBenchEn) -> None:
    assert not bench.text_tasks(item("reasoning"), "text")
    (task,) = bench.speech_tasks(item("reasoning", Answer="4"), "Four!", "It's  FOUR.")
    assert (task.name, task.rule, task.tries, task.default, task.prompt) == ("score", "digit", 1, 1, "own")
    assert [message.role for message in task.messages] == ["system", "user"]
    told = task.messages[1].content
    assert told.splitlines() == ["Question: What now?", "", "  Standard Answer: 4", "", "  Response: it is 4"]
    (task,) = bench.speech_tasks(item("emotion", Question_emo="sad"), None, "oh")
    assert task.name == "semantic_score"
    assert "Question Emotion: sad" in task.messages[1].content
    context = [{"from": "user", "value": "one"}, {"from": "assistant", "value": "two"}]
    (task,) = bench.speech_tasks(item("multi_round", Context=context, Answer="3"), None, "three")
    assert "User: one\nModel: two\n" in task.messages[1].content
    names = [bench.text_tasks(item("safety"), "No.")[0].name, bench.speech_tasks(item("safety"), "No.", "no")[0].name]
    assert names == ["s2t", "s2s"]
    assert not bench.speech_tasks(item("knowledge"), "a", "a")
    assert not bench.text_tasks(item("unheard_of"), "a")


@pytest.mark.parametrize(
    ("index", "stages", "asked"),
    [
        (0, {"asr", "judge"}, "text"),
        (60, {"asr", "emotion"}, ""),
        (120, {"asr"}, ""),
        (170, {"asr", "emotion"}, ""),
        (200, {"judge"}, "text"),
        (499, {"judge"}, "text"),
        (500, {"asr", "judge"}, "speech"),
        (549, {"asr", "judge"}, "speech"),
        (550, {"judge"}, "text"),
        (899, {"judge"}, "text"),
    ],
)
def test_instructions_go_by_their_index(bench: VocalBenchEn, index: int, stages: set[str], asked: str) -> None:
    of = item("instruction_following", index, Category="Format")
    assert bench.needs(of) == stages
    assert bool(bench.text_tasks(of, "a")) == (asked == "text")
    assert bool(bench.speech_tasks(of, "a", "a")) == (asked == "speech")


@published
def test_every_published_item_has_tasks_in_a_form_that_is_asked_for() -> None:
    bench = VocalBenchEn()
    asked = 0
    for subset in (
        "reasoning",
        "creativity",
        "single_round",
        "multi_round",
        "instruction_following",
        "emotion",
        "safety",
    ):
        queries = json.loads((DATA / "json" / f"{subset}.json").read_text())
        assert len(queries) == subsets.SIZES[subset]
        for index, fields in enumerate(queries[::7]):
            of = item(subset, 7 * index, **fields)
            for task in (*bench.text_tasks(of, "an answer"), *bench.speech_tasks(of, "an answer", "an answer")):
                asked += 1
                prompt = "\n".join(message.content for message in task.messages)
                assert read_reply(task, plausible(prompt)).strict is not None, prompt
                assert task.prompt == "own"
        if subset == "instruction_following":
            assert len({kind_of(fields) for fields in queries}) == 13
    assert asked > 400


@published
def test_all_published_categories_have_a_wording_of_their_own() -> None:
    rubrics: dict[str, set[str]] = {}
    prompts = Prompts()
    for fields in json.loads((DATA / "json" / "creativity.json").read_text()):
        task = prompts.grade(item("creativity", **fields), "a")
        rubrics.setdefault(task.messages[0].content, set()).add(fields["Category"])
    for fields in json.loads((DATA / "json" / "instruction_following.json").read_text()):
        task = prompts.followed(item("instruction_following", **fields), "a")
        rubrics.setdefault(task.messages[0].content, set()).add(kind_of(fields))
    assert len(rubrics) == 6 + 13
    assert all(len(kinds) == 1 for kinds in rubrics.values())


def test_prompts_of_the_checkout_win(tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    for name in (
        "reasoning",
        "creativity/poem",
        "creativity/creativity_narrative",
        "instruction/content_num",
        "safety",
    ):
        path = folder / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"theirs: {name}")
    bench = VocalBenchEn(data=tmp_path)

    def source(task: JudgeTask) -> tuple[str, str]:
        return task.prompt, task.messages[0].content

    assert source(bench.speech_tasks(item("reasoning"), None, "a")[0]) == ("prompts/reasoning.txt", "theirs: reasoning")
    poem = bench.speech_tasks(item("creativity", Category="Poem"), None, "a")[0]
    assert source(poem) == ("prompts/creativity/poem.txt", "theirs: creativity/poem")
    story = bench.speech_tasks(item("creativity", Category="Narrative"), None, "a")[0]
    assert story.prompt == "prompts/creativity/creativity_narrative.txt"
    kind: dict[str, Any] = {"Category": "Content", "Sub-category": "Num"}
    numbers = item("instruction_following", 200, **kind)
    assert bench.text_tasks(numbers, "a")[0].prompt == "prompts/instruction/content_num.txt"
    assert bench.text_tasks(item("safety"), "a")[0].messages[0].content == "theirs: safety"
    assert bench.speech_tasks(item("emotion"), None, "a")[0].prompt == "own"
    (folder / "emotion.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"emotion\.txt: this judge prompt cannot be read"):
        VocalBenchEn(data=tmp_path)


# --- instructions ----------------------------------------------------------------------------------------------

SENTENCE = "Repeat with happy emotion at twice my speed. Why did the cat sit on our mat."
SAID = "why did the cat sit on our mat"


def test_the_parts_of_an_instruction() -> None:
    assert voice.said_again(SENTENCE, SAID)
    # 8 words: one wrong is 0.125, two are 0.25.
    assert voice.said_again(SENTENCE, SAID.replace("cat", "hat"))
    assert not voice.said_again(SENTENCE, SAID.replace("cat", "hat").replace("sit", "sat"))
    assert voice.asked_emotion(SENTENCE, "official") == "happy"
    assert voice.asked_emotion("Repeat with joy. I am sad.", "official") == "sad"
    assert voice.asked_emotion("Repeat with joy. I am sad.", "fixed") == "unknown"
    # 8 of 16 words: the sentence takes 5 of 10 s; twice as fast is 1.25 to 3.75 s.
    assert [voice.speed_kept(SENTENCE, 10_000, ms) for ms in (1250, 1251, 3749, 3750)] == [False, True, True, False]
    slow = SENTENCE.replace("twice", "half")
    assert [voice.speed_kept(slow, 10_000, ms) for ms in (7500, 7501, 12_499, 12_500)] == [False, True, True, False]
    assert voice.speed_kept("Repeat this. One half.", 10_000, 5000) is None


@pytest.mark.parametrize(
    ("text", "value", "strict", "success"),
    [
        (SAID, True, True, (1, 1, 1)),
        (SAID, False, False, (0, 0, 0)),
        (SAID, True, None, (1, 1, None)),
        (SAID, -1, None, (-1, 0, None)),
        ("something else", True, True, (0, 1, 0)),
        ("something else", None, None, (0, None, 0)),
        (SAID, None, None, (None, None, None)),
    ],
)
def test_repeating_is_judged_and_compared(
    bench: VocalBenchEn, text: str, value: Any, strict: Any, success: tuple[int | None, ...]
) -> None:
    of = item("instruction_following", 3, Question=SENTENCE, Category="Paralinguistic")
    verdicts = {"followed": verdict(value, strict, reason="" if value is not None else "the judge is gone")}
    row = bench.row(evidence(of, text=text, transcript=SAID, verdicts=verdicts))
    assert (row["success"], row["success_fixed"], row["success_strict"]) == success
    if value is None:
        assert row["unscored"]["followed"] == "the judge is gone"


@pytest.mark.parametrize(
    ("index", "emotion", "answer_s", "success"),
    [
        (60, TABLED, 9.0, 1),
        (60, TABLED | {"happy": 0.1}, 9.0, 0),
        (60, None, 9.0, None),
        (110, None, 2.0, 1),
        (110, None, 9.0, 0),
        (160, TABLED, 2.0, 1),
        (160, TABLED, 9.0, 0),
        (160, None, 9.0, 0),
        (160, None, 2.0, None),
    ],
)
def test_voices_do_as_they_are_asked(
    bench: VocalBenchEn, index: int, emotion: Any, answer_s: float, success: int | None
) -> None:
    of = item("instruction_following", index, question_s=10, Question=SENTENCE, Category="Paralinguistic")
    row = bench.row(evidence(of, text=SAID, transcript="noise", emotion=emotion, answer_s=answer_s))
    assert (row["success"], row["success_strict"]) == (success, success)
    assert row["success_fixed"] == 0  # what was heard is another sentence
    if success is None:
        assert row["unscored"]["success"] == "no emotion engine"


def test_other_instructions_are_the_verdict(bench: VocalBenchEn) -> None:
    for value, strict, expected in ((True, True, (1, 1, 1)), (False, None, (0, 0, None)), (-1, None, (-1, 0, None))):
        of = item("instruction_following", 700, Category="Situation")
        row = bench.row(evidence(of, text="a", verdicts={"followed": verdict(value, strict)}))
        assert (row["success"], row["success_fixed"], row["success_strict"]) == expected
    row = bench.row(evidence(item("instruction_following", 510, Category="Style"), text="a"))
    assert row["unscored"]["success"] == "not transcribed"
    row = bench.row(evidence(item("instruction_following", 210, Category="Content"), transcript="a"))
    assert row["unscored"]["success"] == "the peer sent no text of its own"


def test_an_unreadable_verdict_takes_away_from_the_published_rate(bench: VocalBenchEn) -> None:
    values = (True, True, False, -1)
    rows = [
        bench.row(
            evidence(
                item("instruction_following", 700 + place, Category="Situation"),
                text="a",
                verdicts={"followed": verdict(value, None if value == -1 else value)},
            )
        )
        for place, value in enumerate(values)
    ]
    table = bench.summary(rows)["subsets"]["instruction_following"]
    assert table["following_rate"]["value"] == 25.0  # (1 + 1 + 0 - 1) / 4
    assert table["following_rate_fixed"]["value"] == 50.0
    assert table["following_rate_strict"] | {"value": 66.666667, "n": 3} == table["following_rate_strict"]


# --- emotion, safety, acoustics, robustness ---------------------------------------------------------------------


def test_emotion_is_the_sum_of_two_means(bench: VocalBenchEn) -> None:
    first = item("emotion", 0, Question_emo="happy", Score=[1, 5, 3, 1, 3])
    second = item("emotion", 1, Question_emo="sad", Score=[1, 1, 3, 5, 1])
    rows = [
        bench.row(evidence(first, emotion=TABLED, transcript="a", verdicts={"semantic_score": verdict(4, 4)})),
        bench.row(evidence(second, emotion={**TABLED, "sad": 0}, verdicts={"semantic_score": verdict(3, None)})),
    ]
    # (0.1*1 + 0.6*5 + 0.1*3 + 0.1*1 + 0.05*3) / 0.95
    assert rows[0]["acoustic_score"] == pytest.approx(3.65 / 0.95)
    assert rows[1]["unscored"]["acoustic_score"] == "a probability is 0: the original drops such an answer"
    table = bench.summary(rows)["subsets"]["emotion"]
    assert table["total"]["value"] == pytest.approx(3.65 / 0.95 + 3.5, abs=1e-6)
    assert (table["total"]["n"], table["semantic_score"]["n"]) == (1, 2)
    assert table["semantic_score_strict"]["value"] == 4


@pytest.mark.parametrize(
    ("text", "speech", "refuse", "strict"),
    [(True, True, 1, 1), (True, False, 0, 0), (False, False, 0, 0), (-1, -1, -1, None), (-1, True, 0, None)],
)
def test_safety_counts_differing_verdicts_as_none(
    bench: VocalBenchEn, text: Any, speech: Any, refuse: int, strict: int | None
) -> None:
    verdicts = {name: verdict(v, None if v == -1 else v) for name, v in (("s2t", text), ("s2s", speech))}
    row = bench.row(evidence(item("safety"), text="a", transcript="a", verdicts=verdicts))
    assert (row["refuse"], row["refuse_strict"]) == (refuse, strict)
    assert row["explain"] == "so\nso"


def test_safety_needs_both_verdicts(bench: VocalBenchEn) -> None:
    row = bench.row(evidence(item("safety"), transcript="a", verdicts={"s2s": verdict(True, True)}))
    assert (row["refuse"], row["s2s_refuse"]) == (None, 1)
    assert row["unscored"]["refuse"] == "the peer sent no text of its own"


@pytest.mark.parametrize(
    ("text", "transcript", "official", "fixed"),
    [
        ("Hello, world-wide web!", "hello world wide web", 0, 0),
        ("the second house", "the second house", 1, 0),
        ("the ninth house", "the ninth house", 1, 0),
        ("the 21st house", "the twenty first house", 1, 0),
        ("the second one", "the second one", 2, 0),
        ("a b c d", "a x c", 2, 2),
        ("", "a", 1, 1),
    ],
)
def test_clarity(text: str, transcript: str, official: int, fixed: int) -> None:
    assert clarity(text, transcript, "official").edits == official
    assert clarity(text, transcript, "fixed").edits == fixed


def test_wer_is_pooled(bench: VocalBenchEn) -> None:
    answers = (("a b c d", "a b c d", 4.0), ("the first", "the first", 3.0))
    rows = [
        bench.row(graded("single_round", index, 4, text=text, transcript=heard, mos=mos, category="Guidance"))
        for index, (text, heard, mos) in enumerate(answers)
    ]
    figures = bench.summary(rows)["subsets"]["single_round"]
    assert figures["wer"]["value"] == pytest.approx(100 / 6, abs=1e-6)
    assert figures["wer_fixed"]["value"] == 0
    assert (figures["utmos"]["value"], figures["score"]["value"]) == (3.5, 4)


@published
def test_the_clean_items_are_those_of_the_same_answer() -> None:
    single, clean = (
        json.loads((DATA / "json" / f"{name}.json").read_text()) for name in ("single_round", "robust_clean")
    )
    place = {row["Answer"]: index for index, row in enumerate(single)}
    assert [place[row["Answer"]] for row in clean] == list(subsets.CLEAN)


def test_a_preserve_rate_is_a_capped_ratio_of_means(bench: VocalBenchEn) -> None:
    # Clean: 4 and 2 (an item outside the 100 does not count). White noise: 2 and 1. Clipping is better than clean.
    rows = [
        bench.row(graded("single_round", index, value, transcript="a"))
        for index, value in ((subsets.CLEAN[0], 4), (subsets.CLEAN[1], 2), (1, 5))
    ]
    for level, values in (
        ("robust-white_noise-snr_-5", (2, 1)),
        ("robust-distortion-clipping_0.0001", (5, 4)),
        ("robust-packet_loss-dropping_0.70", (3, 3)),
        ("robust-packet_loss-dropping_70", (3,)),
    ):
        rows += [
            bench.row(graded("robust", 0, v, qid=f"{level}-{n:03d}", transcript="a")) for n, v in enumerate(values)
        ]
    table = bench.summary(rows)["categories"]["robust"]
    assert table["clean_score"]["value"] == 3
    assert (table["white_noise_pr"]["value"], table["white_noise_score"]["value"]) == (50, 1.5)
    assert (table["clipping_pr"]["value"], table["clipping_pr"]["uncapped"]) == (100, 150)
    assert (table["packet_loss_score"]["n"], table["packet_loss_pr"]["value"]) == (3, 100)
    assert "unscored" in table["average_pr"]
    assert table["robust-white_noise-snr_-5_pr"] == table["white_noise_pr"]


def test_robust_clean_stands_in_for_the_single_round(bench: VocalBenchEn) -> None:
    rows = [bench.row(graded("robust_clean", 0, 4)), bench.row(graded("robust", 0, 3, qid="robust-a-b-000"))]
    assert bench.summary(rows)["categories"]["robust"]["robust-a-b_pr"]["value"] == 75


# --- the whole -------------------------------------------------------------------------------------------------


def every_ability(bench: VocalBenchEn, *, without: str = "") -> dict[str, Any]:
    """A summary whose figures are whole numbers."""
    said = {"followed": verdict(True, True)}
    refused = {"s2t": verdict(True, True), "s2s": verdict(True, True)}
    felt = {"semantic_score": verdict(3, 3)}
    even = item("emotion", Question_emo="sad", Score=[3, 3, 3, 3, 3])
    answers = [
        evidence(item("knowledge", Answer="4", Topic="Art"), text="4", transcript="four"),
        graded("reasoning", 0, 4, category="Math"),
        graded("creativity", 0, 3, category="Poem"),
        graded("single_round", subsets.CLEAN[0], 4, text="a b", transcript="a b", mos=4.5),
        evidence(item("instruction_following", 700, Category="Situation"), text="a", verdicts=said),
        evidence(even, emotion=TABLED, verdicts=felt),
        evidence(item("safety"), text="no", transcript="no", verdicts=refused),
        *(graded("robust", 0, 2, qid=f"{level}-000") for level in subsets.LEVELS.values()),
    ]
    return bench.summary([bench.row(answer) for answer in answers if answer.item.subset != without])


def test_the_overall_by_hand(bench: VocalBenchEn) -> None:
    summary = every_ability(bench)
    # 10 knowledge + 2*4 + 2*3 + 4.5 + 10 clarity + 2*4 + 10 instructions + 6 emotion + 10 safety + 6*2.5*2/4
    assert summary["overall"]["value"] == pytest.approx(10 + 8 + 6 + 4.5 + 10 + 8 + 10 + 6 + 10 + 7.5)
    assert summary["abilities"]["robust_pr_pct"]["value"] == 50
    assert summary["coverage"]["robust"] == {"n": 1, "of": 3600}
    assert summary["own_wording"] == [
        *("creativity", "emotion", "instruction_following", "reasoning", "robust", "safety", "single_round")
    ]


@pytest.mark.parametrize(
    ("without", "part"),
    [("knowledge", "knowledge"), ("emotion", "empathy"), ("robust", "robustness"), ("safety", "safety")],
)
def test_a_missing_part_is_named(bench: VocalBenchEn, without: str, part: str) -> None:
    overall = every_ability(bench, without=without)["overall"]
    assert overall["missing"] == [part]
    assert part in overall["unscored"]


def test_a_failed_answer_has_a_reason_for_everything(bench: VocalBenchEn) -> None:
    why = "no answer: the peer hung up"
    gone = dict.fromkeys(("answer", "text", "asr", "mos", "emotion", "judge"), why)
    for subset in subsets.SIZES:
        for index in (0, 60, 110, 160, 510, 700):
            of = item(subset, index, Answer="x", Score=[1, 2, 3, 4, 5], Category="Format")
            row = bench.row(Evidence(item=of, session="s", unscored=gone))
            assert row["unscored"]
            assert set(row["unscored"].values()) == {why}
            assert all(row[name] is None for name in row["unscored"])
    assert bench.row(evidence(item("unheard_of")))["unscored"] == {}
