"""A run among the published rows: its place, and which columns may be compared."""

from __future__ import annotations

from typing import Any

import pytest

from harness.core.errors import ConfigError
from scoring.benchmarks.leaderboard import leaderboard
from scoring.benchmarks.overall import FORMULAS, OTHER_COLUMNS

pytestmark = pytest.mark.unit
AS_PUBLISHED = {
    "asr": "transformers whisper-large-v3",
    "judge": "qwen-max-2025-01-25 at example.com",
    "mos": "utmos22-ood",
    "emotion": "emotion2vec_plus_large",
}


def _summary(value: float | None = 60.0, **changes: Any) -> dict[str, Any]:
    columns = [part.column for part in FORMULAS["vocalbench-zh"].parts.values()]
    columns += ["robust_pr_pct", *(name for name in OTHER_COLUMNS if name != "overall")]
    figures = {name: {"value": 50.0, "n": 10} for name in columns}
    overall = {"value": value} if value is not None else {"unscored": "parts are missing", "missing": ["safety"]}
    return {"abilities": figures, "overall": overall, "engines": AS_PUBLISHED} | changes


def _why(board: dict[str, Any], column: str) -> list[str]:
    return [reason["why"] for reason in board["reasons"] if reason["column"] == column]


def test_a_run_stands_where_its_overall_puts_it():
    board = leaderboard("vocalbench-zh", _summary(60.0), "mine")
    models = [row["model"] for row in board["rows"]]
    assert models[models.index("mine") - 1 : models.index("mine") + 2] == ["VocalNet-ML", "mine", "VocalNet2-1.7B"]
    assert [row["model"] for row in board["rows"] if not row["published"]] == ["mine"]
    assert len(models) == 16
    assert board["inconsistent"] == ["Qwen3-Omni"]
    assert next(row["formula"] for row in board["rows"] if row["model"] == "Qwen3-Omni") == pytest.approx(
        78.3846, abs=2e-4
    )


def test_a_run_without_an_overall_stands_last():
    board = leaderboard("vocalbench-zh", _summary(None))
    assert board["rows"][-1]["model"] == "this run"
    assert board["rows"][-1]["overall"] is None


def test_what_is_done_as_published_is_comparable_but_for_latency():
    board = leaderboard("vocalbench-zh", _summary())
    assert board["comparable"] is True
    assert board["reasons"] == [{"column": "latency_rtf", "why": "measured on other hardware"}]


@pytest.mark.parametrize(
    ("changes", "column", "why"),
    [
        (
            {"engines": AS_PUBLISHED | {"asr": "whisper-base"}},
            "clarity_per_pct",
            "asr: whisper-base; published: Whisper",
        ),
        ({"engines": AS_PUBLISHED | {"judge": "gpt-4o"}}, "safety_rr_pct", "judge: gpt-4o; published: qwen-max"),
        ({"engines": AS_PUBLISHED | {"mos": "utmos22"}}, "fluency_utmos", "mos: utmos22; published: the OOD model"),
        ({"engines": AS_PUBLISHED | {"emotion": "emotion2vec_plus_large, weights: random"}}, "ee_eer_pct", "random"),
        ({"own_wording": ["safety"]}, "safety_rr_pct", "our own words"),
        ({"judged": ["text", "transcript"]}, "reasoning_acc_pct", "what was heard was judged"),
        (
            {"coverage": {"foreign_knowledge": {"n": 9, "of": 1000}}},
            "knowledge_acc_pct",
            "foreign_knowledge: 9 of 1000",
        ),
        ({"engines": AS_PUBLISHED | {"asr": "faster-whisper whisper-large-v3-turbo"}}, "if_fr_pct", "large-v3-turbo"),
        ({"query_sound": {"creativity": ["data", "synthesized"]}}, "creativity_score", "sound is synthesized"),
        ({"abilities": {}}, "if_fr_pct", "not scored"),
    ],
)
def test_every_departure_is_named_at_its_column(changes: dict[str, Any], column: str, why: str):
    board = leaderboard("vocalbench-zh", _summary(**changes))
    assert any(why in reason for reason in _why(board, column))
    assert column not in board["comparable_columns"]
    assert board["comparable"] is False


def test_a_departure_leaves_other_columns_alone():
    board = leaderboard("vocalbench-zh", _summary(own_wording=["safety"]))
    assert _why(board, "reasoning_acc_pct") == []
    assert "reasoning_acc_pct" in board["comparable_columns"]
    board = leaderboard("vocalbench-zh", _summary(query_sound={"robust": ["generated"], "safety": ["data"]}))
    assert [reason["column"] for reason in board["reasons"]] == ["robust_pr_pct", "latency_rtf"]
    rate = {"value": 50.0, "n": 9, "missing": 1, "why": "judge away"}
    lacking = _summary()
    lacking["abilities"] |= {"safety_rr_pct": rate}
    assert _why(leaderboard("vocalbench-zh", lacking), "safety_rr_pct") == ["1 answers have no figure: judge away"]


@pytest.mark.parametrize("changes", [{"abilities": 3}, {"abilities": {"x": 1}}, {"query_sound": ["data"]}])
def test_a_summary_of_another_form_is_told(changes: dict[str, Any]):
    with pytest.raises(ConfigError, match="score the run again"):
        leaderboard("vocalbench-zh", _summary(**changes))


def test_english_rows_and_unknown_benchmarks():
    assert leaderboard("vocalbench-en", {})["inconsistent"] == ["Kimi-Audio"]
    with pytest.raises(ConfigError, match="vocalbench-zh"):
        leaderboard("vocalbench", {})
