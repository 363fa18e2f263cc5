"""The tables of the paper (6 to 15) from rows, figure by figure.

A judge's strict reading stands beside its figure as `<figure>_strict` when it gives another one, the fixed profile as
`<figure>_fixed`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scoring.benchmarks.figures import (
    Figure,
    Rows,
    average,
    count,
    mean,
    paired,
    preserved,
    profiled,
    ratio_of_sums,
    share,
    unscored,
    value_of,
)
from scoring.benchmarks.vocalbench_zh.subsets import (
    CREATIVITY,
    CULTURE,
    INSTRUCTION_KINDS,
    INSTRUCTIONS,
    KNOWLEDGE,
    MULTI_ROUND,
    QUERY_EMOTIONS,
    REASONING,
    ROBUST_USED,
    Group,
)

Table = dict[str, Figure]
BySubset = Mapping[str, Rows]
Clean = Sequence[tuple[int, Mapping[str, Any]]]
"""Number of a robust query, and a row of the same query without the condition."""
GRADE = "1-5"
_CAP = 100.0
"""A preserve rate counts up to 100 %."""


def knowledge(by: BySubset) -> Table:
    """Table 6: text (S2T) and speech (S2S) accuracy and PER of each split; accuracies averaged, PER pooled."""
    table: Table = {}
    for subset in KNOWLEDGE:
        rows, split = by.get(subset, ()), subset.partition("_")[0]
        table |= _shares(f"{split}_s2t", rows, "correct", strict=True)
        table |= _shares(f"{split}_s2s", rows, "s2s_correct", fixed=True, strict=True)
        table |= per(rows, f"{split}_per")
    splits = [subset.partition("_")[0] for subset in KNOWLEDGE]
    for figure in ("s2t", "s2s"):
        names = [f"{split}_{figure}" for split in splits]
        table |= _averages(f"average_{figure}", names, table)
    return table | per([row for subset in KNOWLEDGE for row in by.get(subset, ())], "average_per")


def reasoning(by: BySubset) -> Table:
    """Table 7: accuracy by category; base, culture and all pooled."""
    rows = by.get("reasoning", ())
    base = [group.name for group in REASONING if group.name not in (*CULTURE, "math")]
    table = _by_group(rows, REASONING, "correct")
    for name, members in (("base_total", base), ("culture_total", CULTURE)):
        inside = [row for group in REASONING if group.name in members for row in _inside(rows, group)]
        table |= _shares(name, inside, "correct", strict=True)
    return table | _shares("total", rows, "correct", strict=True)


def creativity(by: BySubset) -> Table:
    """Table 8: mean grade by category and of all items."""
    rows = by.get("creativity", ())
    table: Table = {}
    for group in CREATIVITY:
        table |= grade(group.name, _inside(rows, group), "score")
    return table | grade("total", rows, "score")


def multi_round(by: BySubset) -> Table:
    """Table 9."""
    rows = by.get("multi_round", ())
    return _by_group(rows, MULTI_ROUND, "correct") | _shares("total", rows, "correct", strict=True)


def instruction_following(by: BySubset) -> Table:
    """Tables 10 and 11: following rate by sub-category (`sub_<name>`), category and in all."""
    rows = by.get("instruction_following", ())
    table: Table = {}
    for group in (*INSTRUCTIONS[:-3], *INSTRUCTION_KINDS):
        name = group.name if group in INSTRUCTION_KINDS else f"sub_{group.name}"
        table |= _shares(name, _inside(rows, group), "success", fixed=True, strict=True)
    return table | _shares("total", rows, "success", fixed=True, strict=True)


def empathy(by: BySubset) -> Table:
    """Table 12, and how near to the threshold the voices are.

    acoustic_margin: mean of |a - 3|; flat_voice_eer: the acoustic rate of a voice that is neutral throughout.
    """
    rows = by.get("emotion", ())
    both = [row for row in rows if row.get("acoustic_score") is not None]
    table = grade("semantic_score", rows, "semantic_score")
    table |= _shares("semantic_eer", rows, "semantic_pass", strict=True)
    table["acoustic_score"] = mean(rows, "acoustic_score", GRADE)
    table["acoustic_eer"] = share(rows, "acoustic_pass")
    table["acoustic_margin"] = mean(rows, "margin", "grades")
    table["flat_voice_eer"] = share(both, "flat_pass")
    table["overall_score"] = two_halves(table["semantic_score"], table["acoustic_score"])
    table |= _shares("overall_eer", rows, "success", strict=True)
    for group in QUERY_EMOTIONS:
        table |= _shares(f"{group.name}_eer", _inside(rows, group), "success", strict=True)
    return table


def code_switching(by: BySubset) -> Table:
    """Table 13 (CS3-Bench): mixed questions beside their English twins, and the English words of the answers."""
    mixed, english, open_ended = (by.get(name, ()) for name in ("cs_knowledge", "cs_knowledge_en", "cs_open_ended"))
    table = _shares("know_cs_acc", mixed, "correct", strict=True)
    table |= _shares("know_en_acc", english, "correct", strict=True)
    table["know_pr"] = _preserved_accuracy(mixed, english, table)
    table |= {f"know_{name}": figure for name, figure in english_words(mixed).items()}
    table["know_lsa"] = share(mixed, "in_language")
    table |= _shares("open_understanding", open_ended, "understood", strict=True)
    table |= grade("open_generation", open_ended, "semantic")
    table |= {f"open_{name}": figure for name, figure in english_words(open_ended).items()}
    return table | {"open_lsa": share(open_ended, "in_language")}


def robustness(by: BySubset) -> Table:
    """Table 15: mean grade and preserve rate of the six conditions that count, their average, then of all levels."""
    clean = _clean(by)
    table: Table = {"clean_score": mean([row for _, row in clean], "score", GRADE)}
    levels: dict[str, list[Mapping[str, Any]]] = {}
    for row in by.get("robust", ()):
        levels.setdefault(str(row["qid"]).rpartition("-")[0], []).append(row)
    for name, level in ROBUST_USED.items():
        table |= under_condition(name, levels.get(level, []), clean)
    table["average_pr"] = average([table[f"{name}_pr"] for name in ROBUST_USED], "%")
    for level, rows in sorted(levels.items()):
        table |= under_condition(level, rows, clean)
    return table


def english_words(rows: Rows) -> Table:
    """num: English words in the texts; psr: share of them said right; wer: their errors over their number."""
    return {
        "num": count(rows, "english_words", "words"),
        "psr": ratio_of_sums(rows, "english_right", "english_heard", "%", 100),
        "wer": ratio_of_sums(rows, "english_errors", "english_heard", "%", 100),
    }


def per(rows: Rows, name: str = "per") -> Table:
    """Pooled PER in percent, by both profiles when they differ."""
    official, fixed = (
        ratio_of_sums(rows, f"per{suffix}_edits", f"per{suffix}_syllables", "%", 100) for suffix in ("", "_fixed")
    )
    return profiled(name, official, fixed, "fixed")


def grade(name: str, rows: Rows, key: str) -> Table:
    """Mean grade, by both readings of the judge when they differ."""
    return profiled(name, mean(rows, key, GRADE), mean(rows, f"{key}_strict", GRADE), "strict")


def rtf(rows: Rows) -> Figure:
    """Table 14: total generation time over total length of the answers; above 1 is slower than speech."""
    return ratio_of_sums(rows, "generation_s", "answer_s", "ratio")


def _shares(name: str, rows: Rows, key: str, *, fixed: bool = False, strict: bool = False) -> Table:
    official = share(rows, key)
    table = {name: official}
    for profile, wanted in (("fixed", fixed), ("strict", strict)):
        if wanted:
            table |= profiled(name, official, share(rows, f"{key}_{profile}"), profile)
    return table


def _averages(name: str, names: Sequence[str], table: Table) -> Table:
    """Averages of what is in the table, and of the other readings where one of them differs."""
    found: Table = {name: average([table[each] for each in names], "%")}
    for profile in ("fixed", "strict"):
        if any(f"{each}_{profile}" in table for each in names):
            others = [table.get(f"{each}_{profile}", table[each]) for each in names]
            found |= profiled(name, found[name], average(others, "%"), profile)
    return found


def _by_group(rows: Rows, groups: Sequence[Group], key: str) -> Table:
    table: Table = {}
    for group in groups:
        table |= _shares(group.name, _inside(rows, group), key, strict=True)
    return table


def _inside(rows: Rows, group: Group) -> Rows:
    return [row for row in rows if row["index"] in group]


def two_halves(first: Figure, second: Figure) -> Figure:
    """Two halves together; n is the smaller one's."""
    halves = [value_of(figure) for figure in (first, second)]
    if halves[0] is None or halves[1] is None:
        return unscored(first.get("unscored") or second["unscored"])
    figure = average([first, second], "2-10")
    interval = figure["ci95"] and [2 * end for end in figure["ci95"]]
    return figure | {"value": round(halves[0] + halves[1], 6), "ci95": interval, "n": min(first["n"], second["n"])}


def _preserved_accuracy(mixed: Rows, english: Rows, table: Table) -> Figure:
    """100 * mixed / English accuracy; the paper divides the percentages after rounding them to two decimals."""
    figure = preserved(
        paired(*([(row["index"], _number(row.get("correct"))) for row in rows] for rows in (mixed, english)))
    )
    above, under = (value_of(table[name]) for name in ("know_cs_acc", "know_en_acc"))
    if "unscored" in figure or above is None or under is None:
        return figure
    return figure | {"value": round(100 * round(above, 2) / round(under, 2), 6)}


def _number(value: bool | None) -> float | None:
    return None if value is None else float(value)


def _clean(by: BySubset) -> Clean:
    """Number of a robust query, and a row of the same query without the condition.

    The even items of `single_round`, as published; `robust_clean`, which repeats them, when none was run.
    """
    even = [(row["index"] // 2, row) for row in by.get("single_round", ()) if row["index"] % 2 == 0]
    return even or [(row["index"], row) for row in by.get("robust_clean", ())]


def under_condition(name: str, rows: Rows, clean: Clean) -> Table:
    """Mean grade of `rows`, all of one condition and level, and their preserve rate. clean: rows without it."""
    pairs = paired(
        ((int(str(row["qid"]).rpartition("-")[2]), row.get("score")) for row in rows),
        ((number, row.get("score")) for number, row in clean),
    )
    return {f"{name}_score": mean(rows, "score", GRADE), f"{name}_pr": preserved(pairs, cap=_CAP)}
