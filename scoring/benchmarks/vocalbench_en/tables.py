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
    preserved,
    profiled,
    ratio_of_sums,
    share,
    unscored,
    value_of,
)
from scoring.benchmarks.vocalbench_en.subsets import CLEAN, LEVELS, level_of
from scoring.benchmarks.vocalbench_zh.tables import GRADE, grade

Table = dict[str, Figure]
BySubset = Mapping[str, Rows]
_CAP = 100.0
"""A preserve rate counts up to 100 %."""


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
    table["total"] = _sum(table["acoustic_score"], table["semantic_score"])
    for name, group in _groups(rows, "category"):
        table[name] = _sum(mean(group, "acoustic_score", GRADE), mean(group, "semantic_score", GRADE))
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
    table: Table = {"clean_score": mean(list(clean.values()), "score", GRADE)}
    levels: dict[str, list[Mapping[str, Any]]] = {}
    for row in by.get("robust", ()):
        levels.setdefault(level_of(str(row["qid"])), []).append(row)
    for name, level in (*LEVELS.items(), *((level, level) for level in sorted(levels))):
        rows = levels.get(level, [])
        table |= {f"{name}_score": mean(rows, "score", GRADE), f"{name}_pr": _preserve_rate(rows, clean)}
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


def _sum(first: Figure, second: Figure) -> Figure:
    """Two means together; n is the smaller one's. The interval takes them as independent."""
    values = value_of(first), value_of(second)
    if values[0] is None or values[1] is None:
        return unscored(first.get("unscored") or second["unscored"])
    half = average([first, second], "2-10")
    interval = half["ci95"] and [round(2 * end, 6) for end in half["ci95"]]
    return half | {"value": round(values[0] + values[1], 6), "ci95": interval, "n": min(first["n"], second["n"])}


def _clean(by: BySubset) -> dict[int, Mapping[str, Any]]:
    """Number of a robust query to the row of the same query without the condition: those of `single_round`, as
    published; of `robust_clean`, which repeats them, when none was run."""
    number = {index: place for place, index in enumerate(CLEAN)}
    single = {number[row["index"]]: row for row in by.get("single_round", ()) if row["index"] in number}
    return single or {row["index"]: row for row in by.get("robust_clean", ())}


def _preserve_rate(rows: Rows, clean: Mapping[int, Mapping[str, Any]]) -> Figure:
    pairs: dict[int, tuple[float | None, float | None]] = {
        number: (None, row.get("score")) for number, row in clean.items()
    }
    for row in rows:
        number = int(str(row["qid"]).rpartition("-")[2])
        pairs[number] = (row.get("score"), pairs.get(number, (None, None))[1])
    return preserved(pairs, cap=_CAP)
