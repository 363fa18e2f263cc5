"""Tables 6 to 15 of the paper through the aggregation, from rows with the published counts; rows that cannot be are
named (inconsistencies.csv)."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scoring.benchmarks.vocalbench_zh import tables
from scoring.benchmarks.vocalbench_zh.subsets import (
    CREATIVITY,
    INSTRUCTIONS,
    KNOWLEDGE,
    MULTI_ROUND,
    REASONING,
    ROBUST_USED,
    SIZES,
    Group,
)

GOLDEN = Path(__file__).parents[5] / "shared" / "golden"
pytestmark = [
    pytest.mark.unit,
    pytest.mark.skipif(not GOLDEN.is_dir(), reason="shared data is not here: golden tables"),
]
Row = dict[str, Any]


def _table(name: str) -> list[dict[str, str]]:
    with (GOLDEN / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _whole(printed: str, n: int) -> int:
    return round(float(printed) * n / 100)


def _right(name: str, hits: int, n: int, start: int = 0) -> list[Row]:
    return [{"index": start + number, name: number < hits} for number in range(n)]


def _graded(name: str, total: int, n: int, start: int = 0) -> list[Row]:
    low, extra = divmod(total, n)
    return [{"index": start + number, name: low + (number < extra)} for number in range(n)]


def _same(figure: Mapping[str, Any], printed: str) -> bool:
    """Whether a figure, rounded as it is printed, is what is printed; half a last digit and float noise."""
    digits = len(printed.partition(".")[2])
    return abs(figure["value"] - float(printed)) <= 0.5 * 10**-digits + 1e-9


def _wrong(found: tables.Table, row: Mapping[str, str], columns: Mapping[str, str]) -> list[str]:
    """Columns of a printed row that the figures do not give."""
    return [column for column, figure in columns.items() if row[column] and not _same(found[figure], row[column])]


def test_sizes_are_the_published_ones():
    assert sum(size for name, size in SIZES.items() if name != "robust_clean") == 11_115
    for groups, name in ((REASONING, "reasoning"), (CREATIVITY, "creativity"), (MULTI_ROUND, "multi_round")):
        assert groups[-1].stop == SIZES[name]
    assert INSTRUCTIONS[-1].stop == SIZES["instruction_following"]


def test_table_6_knowledge():
    for row in _table("table6"):
        by = {}
        for subset in KNOWLEDGE:
            split = subset.partition("_")[0]
            rows = _right("correct", _whole(row[f"{split}_s2t_pct"], 1000), 1000)
            for number, hits in enumerate(_right("s2s_correct", _whole(row[f"{split}_s2s_pct"], 1000), 1000)):
                rows[number] |= hits
            by[subset] = rows
        columns = {
            f"{split}_{figure}_pct": f"{name}_{figure}"
            for split, name in (*((each, each) for each in ("chinese", "foreign", "general")), ("avg", "average"))
            for figure in ("s2t", "s2s")
        }
        assert _wrong(tables.knowledge(by), row, columns) == []


def test_table_6_pools_error_rates():
    by = {
        "chinese_knowledge": [{"index": 0, "per_edits": 1, "per_syllables": 10}],
        "foreign_knowledge": [{"index": 0, "per_edits": 0, "per_syllables": 90}],
    }
    found = tables.knowledge(by)
    assert (found["chinese_per"]["value"], found["average_per"]["value"]) == (10.0, 1.0)
    # The printed average is the mean of the splits in one row of fifteen only, and always within their range.
    off = 0
    for row in _table("table6"):
        splits = [float(row[f"{split}_per_pct"]) for split in ("chinese", "foreign", "general")]
        assert min(splits) <= float(row["avg_per_pct"]) <= max(splits)
        off += abs(sum(splits) / 3 - float(row["avg_per_pct"])) > 0.0006
    assert off == 14


def test_table_7_reasoning():
    for row in _table("table7"):
        rows: list[Row] = []
        for group in REASONING:
            size = group.stop - group.start
            rows += _right("correct", _whole(row[group.name], size), size, group.start)
        columns = {name: name for name in row if name != "model"}
        assert _wrong(tables.reasoning({"reasoning": rows}), row, columns) == []


def test_table_8_creativity_and_the_row_that_lacks_an_item():
    wrong = {}
    for row in _table("table8"):
        rows: list[Row] = []
        for group in CREATIVITY:
            size = group.stop - group.start
            rows += _graded("score", round(float(row[group.name]) * size), size, group.start)
        columns = {name: name for name in row if name != "model"}
        wrong[row["model"]] = _wrong(tables.creativity({"creativity": rows}), row, columns)
        if row["model"] == "Kimi-Audio":
            short = [one for one in rows if one["index"] < 225] + _graded("score", 39, 14, 225)
            short.append({"index": 239, "score": None, "unscored": {"score": "lost"}})
            found = tables.creativity({"creativity": short})
            assert _wrong(found, row, columns) == []
            assert (found["total"]["n"], found["total"]["missing"]) == (239, 1)
    assert {model: names for model, names in wrong.items() if names} == {"Kimi-Audio": ["modern_poem_writing", "total"]}


def test_table_9_multi_round():
    for row in _table("table9"):
        rows: list[Row] = []
        for group in MULTI_ROUND:
            size = group.stop - group.start
            rows += _right("correct", _whole(row[group.name], size), size, group.start)
        columns = {name: name for name in row if name != "model"}
        assert _wrong(tables.multi_round({"multi_round": rows}), row, columns) == []


def test_table_10_gives_table_11():
    counts = {row["model"]: row for row in _table("table10")}
    whole = (Group("situation", 700, 800), Group("format", 800, 900), Group("mandarin_specific", 900, 1000))
    for row in _table("table11"):
        rows: list[Row] = []
        for group in INSTRUCTIONS[:14]:
            rows += _right("success", int(counts[row["model"]][group.name]), 50, group.start)
        for group in whole:
            rows += _right("success", int(row[f"{group.name}_pct"]), 100, group.start)
        found = tables.instruction_following({"instruction_following": rows})
        columns = {name: name.removesuffix("_pct") for name in row if name != "model"}
        assert _wrong(found, row, columns) == []
        assert found["sub_repeat"]["value"] == 2 * int(counts[row["model"]]["repeat"])


def _empathy(row: Mapping[str, str], n: int) -> tables.Table:
    rows = _graded("semantic_score", round(float(row["semantic_score"]) * 500), 500)
    named = {"semantic_pass": ("semantic", 500), "acoustic_pass": ("acoustic", n), "success": ("overall", n)}
    for name, (column, size) in named.items():
        for number, hit in enumerate(_right(name, _whole(row[f"{column}_eer_pct"], size), size)):
            rows[number] |= hit
    for one in rows[:n]:
        one["acoustic_score"] = float(row["acoustic_score"])
    return tables.empathy({"emotion": rows})


def test_table_12_empathy_and_the_rows_with_fewer_voices():
    short = {"VocalNet-ML": 497, "Baichuan-Omni-1.5": 499, "Cascade (Qwen3-8B)": 499}
    wrong = {}
    for row in _table("table12"):
        columns = {name: name.removesuffix("_pct") for name in row if name != "model"}
        wrong[row["model"]] = _wrong(_empathy(row, 500), row, columns)
        assert _wrong(_empathy(row, short.get(row["model"], 500)), row, columns) == []
    both = ["acoustic_eer_pct", "overall_eer_pct"]
    assert {model: names for model, names in wrong.items() if names} == {
        "VocalNet-ML": both[:1],
        "Baichuan-Omni-1.5": both,
        "Cascade (Qwen3-8B)": both,
    }


def _words(rows: list[Row], row: Mapping[str, str], kind: str) -> None:
    number = int(row[f"{kind}_num"])
    rows[0] |= {"english_words": number, "english_heard": number}
    rows[0]["english_right"] = _whole(row[f"{kind}_psr_pct"], number)
    rows[0]["english_errors"] = _whole(row[f"{kind}_wer_pct"], number)


def test_table_13_code_switching():
    wrong = {}
    for row in _table("table13"):
        mixed = _right("correct", _whole(row["know_cs_acc_pct"], 362), 362)
        for number, spoken in enumerate(_right("in_language", _whole(row["know_lsa_pct"], 362), 362)):
            mixed[number] |= spoken
        english = _right("correct", _whole(row["know_en_acc_pct"], 362), 362)
        opened = _graded("semantic", round(float(row["open_generation_score"]) * 200), 200)
        for number, hit in enumerate(_right("understood", _whole(row["open_understanding_pct"], 200), 200)):
            opened[number] |= hit
        _words(mixed, row, "know")
        _words(opened, row, "open")
        found = tables.code_switching({"cs_knowledge": mixed, "cs_knowledge_en": english, "cs_open_ended": opened})
        columns = {
            name: name.removesuffix("_pct").removesuffix("_score") for name in row if name not in ("model", "note")
        }
        wrong[row["model"]] = _wrong(found, row, columns)
    assert {model: names for model, names in wrong.items() if names} == {"Kimi-Audio": ["open_psr_pct"]}


def test_table_14_real_time_factor():
    for row in _table("table14"):
        # Any split of the totals over answers gives the same ratio of sums.
        made, spoken = float(row["generation_time_s"]), float(row["response_duration_s"])
        rows = [
            {"generation_s": made * 0.7, "answer_s": spoken * 0.1},
            {"generation_s": made * 0.3, "answer_s": spoken * 0.9},
            {"generation_s": None, "answer_s": 3.0},
        ]
        assert _same(tables.rtf(rows), row["rtf"])
        assert tables.rtf(rows)["n"] == 2


def _robust(row: Mapping[str, str], sizes: Mapping[str, int]) -> tables.Table:
    clean = _graded("score", round(float(row["clean_score"]) * 100), 100)
    single = [one | {"index": 2 * one["index"]} for one in clean] + [{"index": 1, "score": 5}]
    noisy: list[Row] = []
    for name, level in ROBUST_USED.items():
        n = sizes.get(name, 100)
        rows = _graded("score", round(float(row[f"{name}_score"]) * n), n)
        noisy += [one | {"qid": f"{level}-{one['index']:03d}"} for one in rows]
    return tables.robustness({"single_round": single, "robust": noisy})


def test_table_15_robustness_and_the_row_that_lacks_answers():
    wrong = {}
    for row in _table("table15"):
        columns = {"clean_score": "clean_score", "avg_pr_pct": "average_pr"}
        columns |= {
            f"{name}_{kind}": f"{name}_{kind.removesuffix('_pct')}" for name in ROBUST_USED for kind in ("score",)
        }
        # Rates above 100 are printed, yet count as 100.
        columns |= {f"{name}_pr_pct": f"{name}_pr" for name in ROBUST_USED}
        found = _robust(row, {})
        wrong[row["model"]] = _wrong(_uncapped(found), row, columns)
        if row["model"] == "Kimi-Audio":
            found = _robust(row, {"white_noise": 99, "reverberation": 98})
            assert _wrong(found, row, columns) == []
        if row["model"] == "Baichuan-Omni-1.5":
            assert found["white_noise_pr"] == found["white_noise_pr"] | {"value": 100.0, "uncapped": 105.509642}
    assert {model: names for model, names in wrong.items() if names} == {
        "Kimi-Audio": ["avg_pr_pct", "white_noise_pr_pct", "reverberation_pr_pct"]
    }


def _uncapped(found: tables.Table) -> tables.Table:
    return {name: figure | {"value": figure.get("uncapped", figure.get("value"))} for name, figure in found.items()}


def test_clean_queries_stand_in_when_single_round_was_not_run():
    noisy = [{"index": 0, "qid": f"{ROBUST_USED['clipping']}-000", "score": 2}]
    clean = [{"index": 0, "score": 4}, {"index": 1, "score": 5}]
    found = tables.robustness({"robust_clean": clean, "robust": noisy})
    assert found["clipping_pr"]["value"] == pytest.approx(100 * 2 / 4.5, abs=1e-6)
    assert found["white_noise_pr"]["unscored"] == "no answers under the condition"
    assert "unscored" in found["average_pr"]
