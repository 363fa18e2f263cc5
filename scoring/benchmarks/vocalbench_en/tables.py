"""The benchmark's figures from rows, broken down by category.

A judge's strict reading stands beside its figure as `<figure>_strict` when it gives another one, the fixed profile as
`<figure>_fixed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scoring.benchmarks.figures import (
    Figure,
    Rows,
    average,
    mean,
    profiled,
    ratio_of_sums,
    share,
)
from scoring.benchmarks.vocalbench_en.subsets import CLEAN, LEVELS, level_of
from scoring.benchmarks.vocalbench_zh.tables import GRADE, Clean, grade, two_halves, under_condition

Table = dict[str, Figure]
BySubset = Mapping[str, Rows]


def knowledge(by: BySubset) -> Table:
    """Share of answers that hold the key, in speech (S2S, the headline) and in text; S2S by topic and source."""
    rows = by.get("knowledge", ())
    table = {"s2s": share(rows, "s2s_right"), "s2t": share(rows, "s2t_right")}
    for key in ("category", "source"):
        table |= {f"s2s_{name}": share(group, "s2s_right") for name, group in _groups(rows, key)}
    return table


def grades(by: BySubset, subset: str) -> Table:
    """Mean grade in all and by category."""
    rows = by.get(subset, ())
    table = grade("total", rows, "score")
    for name, group in _groups(rows, "category"):
        table |= grade(name, group, "score")
    return table


def instruction_following(by: BySubset) -> Table:
    """Following rate in all and by kind of instruction; official, strict and fixed."""
    rows = by.get("instruction_following", ())
    table = _rates("total", rows, "success", "fixed", "strict")
    for name, group in _groups(rows, "category"):
        table |= _rates(name, group, "success", "fixed", "strict")
    return table


def emotion(by: BySubset) -> Table:
    """Mean acoustic score, mean grade of the words, and their sum (2 to 10), in all and by the query's emotion."""
    rows = by.get("emotion", ())
    table: Table = {"acoustic_score": mean(rows, "acoustic_score", GRADE)}
    table |= grade("semantic_score", rows, "semantic_score")
    table["total"] = two_halves(table["acoustic_score"], table["semantic_score"])
    for name, group in _groups(rows, "category"):
        table[name] = two_halves(mean(group, "acoustic_score", GRADE), mean(group, "semantic_score", GRADE))
    return table


def safety(by: BySubset) -> Table:
    """Refusal rate, where differing verdicts on text and speech count as none; each alone beside it."""
    rows = by.get("safety", ())
    table = _rates("refusal_rate", rows, "refuse", "strict")
    return table | {f"{name}_refusal_rate": mean(rows, f"{name}_refuse", "%", 100) for name in ("s2t", "s2s")}


def acoustics(by: BySubset) -> Table:
    """Of the single-round set: UTMOS and WER (pooled)."""
    rows = by.get("single_round", ())
    official, fixed = (
        ratio_of_sums(rows, f"wer{suffix}_edits", f"wer{suffix}_words", "%", 100) for suffix in ("", "_fixed")
    )
    return {"utmos": mean(rows, "mos", GRADE)} | profiled("wer", official, fixed, "fixed")


def robustness(by: BySubset) -> Table:
    """Mean grade and preserve rate of the six conditions that count, their average, then of all levels."""
    clean = _clean(by)
    table: Table = {"clean_score": mean([row for _, row in clean], "score", GRADE)}
    levels: dict[str, list[Mapping[str, Any]]] = {}
    for row in by.get("robust", ()):
        levels.setdefault(level_of(str(row["qid"])), []).append(row)
    for name, prefix in (*LEVELS.items(), *((prefix, prefix) for prefix in sorted(levels))):
        table |= under_condition(name, levels.get(prefix, []), clean)
    return table | {"average_pr": average([table[f"{name}_pr"] for name in LEVELS], "%")}


def _rates(name: str, rows: Rows, key: str, *profiles: str) -> Table:
    """A rate whose rows may hold -1."""
    official = mean(rows, key, "%", 100)
    table = {name: official}
    for profile in profiles:
        table |= profiled(name, official, mean(rows, f"{key}_{profile}", "%", 100), profile)
    return table


def _groups(rows: Rows, key: str) -> list[tuple[str, Rows]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row.get(key):
            found.setdefault(str(row[key]), []).append(row)
    return sorted(found.items())


def _clean(by: BySubset) -> Clean:
    """Number of a robust query, and a row of the same query without the condition: those of `single_round`, as
    published; of `robust_clean`, which repeats them, when none was run."""
    number = {index: place for place, index in enumerate(CLEAN)}
    single = [(number[row["index"]], row) for row in by.get("single_round", ()) if row["index"] in number]
    return single or [(row["index"], row) for row in by.get("robust_clean", ())]
