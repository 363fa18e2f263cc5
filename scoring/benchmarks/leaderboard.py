"""A scored run beside a benchmark's published rows, column by column marked comparable or not, and why.

A column is comparable when what it rests on is what the authors used: the ASR, judge, quality and emotion models, the
judge's wording, all published items with their own sound, the model's own text. Latency never is: other hardware.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from harness.core.errors import ConfigError
from scoring.benchmarks.benchmark import Stage
from scoring.benchmarks.figures import value_of
from scoring.benchmarks.overall import CONDITIONS, ROBUST_COLUMN, formula_of, overall, rows_of

TOLERANCE = 0.00105
"""Largest difference between a printed overall and its formula that rounding explains."""
_SMALLER = ("turbo", "distil")
"""Parts of the names of cut-down models, whose names hold the big one's (`whisper-large-v3-turbo`)."""
_SIX = tuple(f"{condition}_pr_pct" for condition in CONDITIONS)


class Official(NamedTuple):
    """What the published values rest on. engines: stage to parts that the engine's name must hold and a name for
    people. columns: stage to the columns that rest on it; judge: all others but `latency_rtf`. subsets: column to the
    subsets that it is made of."""

    file: str
    engines: Mapping[Stage, tuple[tuple[str, ...], str]]
    columns: Mapping[Stage, tuple[str, ...]]
    subsets: Mapping[str, tuple[str, ...]]


_SHARED = {
    "creativity_score": ("creativity",),
    "fluency_utmos": ("single_round",),
    "single_round_score": ("single_round",),
    "if_fr_pct": ("instruction_following",),
    "safety_rr_pct": ("safety",),
    ROBUST_COLUMN: ("robust", "single_round"),
}
OFFICIAL: dict[str, Official] = {
    "vocalbench-zh": Official(
        file="vocalbench_zh.csv",
        engines={
            "asr": (("whisper", "largev3"), "Whisper large-v3"),
            "judge": (("qwenmax20250125",), "qwen-max-2025-01-25"),
            "mos": (("utmos22", "ood"), "the OOD model of UTMOS22, whose weights are not to be had any more"),
            "emotion": (("emotion2vecpluslarge",), "emotion2vec_plus_large"),
        },
        columns={
            "asr": ("clarity_per_pct", "if_fr_pct"),
            "mos": ("fluency_utmos",),
            "emotion": ("if_fr_pct", "ee_eer_pct"),
        },
        subsets={
            **_SHARED,
            "knowledge_acc_pct": ("chinese_knowledge", "foreign_knowledge", "general_knowledge"),
            "reasoning_acc_pct": ("reasoning",),
            "clarity_per_pct": ("single_round",),
            "multi_round_acc_pct": ("multi_round",),
            "ee_eer_pct": ("emotion",),
            "cs_pr_pct": ("cs_knowledge", "cs_knowledge_en"),
            "latency_rtf": ("single_round",),
        },
    ),
    "vocalbench-en": Official(
        file="vocalbench_en.csv",
        engines={
            "asr": (("whisper", "largev3"), "Whisper large-v3"),
            "judge": (("qwenmax",), "qwen-max"),
            "mos": (("utmos22",), "UTMOS22 strong"),
            "emotion": (("emotion2vecpluslarge",), "emotion2vec_plus_large"),
        },
        columns={
            "asr": (
                *("knowledge_acc_pct", "reasoning_score", "creativity_score", "clarity_wer_pct", "single_round_score"),
                *("multi_round_score", "if_fr_pct", "ee_score", "safety_rr_pct", ROBUST_COLUMN),
            ),
            "mos": ("fluency_utmos",),
            "emotion": ("if_fr_pct", "ee_score"),
        },
        subsets={
            **_SHARED,
            "knowledge_acc_pct": ("knowledge",),
            "reasoning_score": ("reasoning",),
            "clarity_wer_pct": ("single_round",),
            "multi_round_score": ("multi_round",),
            "ee_score": ("emotion",),
            "latency_rtf": ("single_round",),
        },
    ),
}
_UNJUDGED = {
    "vocalbench-zh": ("fluency_utmos", "clarity_per_pct", "latency_rtf"),
    "vocalbench-en": ("knowledge_acc_pct", "fluency_utmos", "clarity_wer_pct", "latency_rtf"),
}


def leaderboard(benchmark: str, summary: Mapping[str, Any], label: str = "this run") -> dict[str, Any]:
    """The board, best overall first, the run among the rows (`published` false); without an overall it stands last.

    summary: as kept by scoring; its `abilities` hold the published columns, `own_wording` the subsets whose judge was
    asked in our own words. Gives `columns`, `source`, `rows` (each
    `model`, `published`, `values`, `overall`, and for published ones `formula` and `consistent`), `comparable` (of the
    columns that carry weight, all), `reasons` (`column`, `why`) and `inconsistent` (models whose printed overall is
    not what the formula gives). Raises ConfigError for a benchmark without published rows, and for a summary of another
    form.
    """
    formula_of(benchmark)
    _check_form(summary)
    official = OFFICIAL[benchmark]
    published, source = published_rows(benchmark)
    columns = [name for name in next(iter(published.values())) if name not in ("overall", *_SIX)]
    rows = [_published(benchmark, model, values, columns) for model, values in published.items()]
    abilities: Mapping[str, Any] = summary.get("abilities") or {}
    values = {name: value_of(abilities.get(name)) for name in columns}
    score = value_of(summary.get("overall"))
    rows.append({"model": label, "published": False, "values": values, "overall": score})
    rows.sort(key=lambda row: (row["overall"] is None, -(row["overall"] or 0)))
    found = _reasons(benchmark, official, summary, columns)
    weighted = {part.column for part in formula_of(benchmark).parts.values()} | {ROBUST_COLUMN}
    return {
        "benchmark": benchmark,
        "source": source,
        "columns": columns,
        "rows": rows,
        "comparable": not any(reason["column"] in weighted for reason in found),
        "comparable_columns": [name for name in columns if name not in {reason["column"] for reason in found}],
        "reasons": found,
        "inconsistent": [row["model"] for row in rows if row["published"] and not row["consistent"]],
    }


def _check_form(summary: Mapping[str, Any]) -> None:
    """Raises ConfigError for what an older version or another hand wrote."""
    nested = {name: summary.get(name) or {} for name in ("abilities", "coverage", "overall", "engines", "query_sound")}
    for name, value in nested.items():
        inner = value.values() if name in ("abilities", "coverage") and isinstance(value, Mapping) else ()
        if not isinstance(value, Mapping) or not all(isinstance(each, Mapping) for each in inner):
            raise ConfigError(f"scores.json: its {name} are not as this version writes them; score the run again")


def published_rows(benchmark: str) -> tuple[dict[str, dict[str, float | None]], str]:
    """Model to columns, and the source line. Raises ConfigError for a benchmark without published rows."""
    formula_of(benchmark)
    with resources.as_file(resources.files("scoring.benchmarks") / "published" / OFFICIAL[benchmark].file) as path:
        source = Path(path).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        return dict(rows_of(path, benchmark)), source


def _published(benchmark: str, model: str, values: Mapping[str, float | None], columns: list[str]) -> dict[str, Any]:
    formula, printed = overall(benchmark, values).value, values["overall"]
    consistent = formula is not None and printed is not None and abs(formula - printed) <= TOLERANCE
    return {
        "model": model,
        "published": True,
        "values": {name: values[name] for name in columns},
        "overall": printed,
        "formula": None if formula is None else round(formula, 4),
        "consistent": consistent,
    }


def _reasons(
    benchmark: str, official: Official, summary: Mapping[str, Any], columns: list[str]
) -> list[dict[str, str]]:
    """Why columns are not comparable; several reasons for one are possible."""
    judged = tuple(name for name in columns if name not in _UNJUDGED[benchmark])
    found: list[tuple[str, str]] = []
    engines: Mapping[str, str] = summary.get("engines") or {}
    for stage, (parts, name) in official.engines.items():
        used, affected = engines.get(stage, ""), judged if stage == "judge" else official.columns[stage]
        plain = _plain(used)
        if used and (not all(part in plain for part in parts) or any(part in plain for part in _SMALLER)):
            found += [(column, f"{stage}: {used}; published: {name}") for column in affected]
        if "random" in used:
            found += [(column, f"{stage}: random weights, the figure means nothing") for column in affected]
    own = summary.get("own_wording") or ()
    asked_by_us = [name for name in judged if any(subset in own for subset in official.subsets[name])]
    found += [(column, "the judge was asked in our own words") for column in asked_by_us]
    if "transcript" in (summary.get("judged") or ()):
        found += [(column, "what was heard was judged, the peer sent no text of its own") for column in judged]
    coverage: Mapping[str, Mapping[str, int]] = summary.get("coverage") or {}
    for column, subsets in official.subsets.items():
        for subset in subsets:
            have = coverage.get(subset, {"n": 0, "of": 0})
            if 0 < have["n"] < have["of"]:
                found.append((column, f"{subset}: {have['n']} of {have['of']} items"))
    sound: Mapping[str, list[str]] = summary.get("query_sound") or {}
    for column, subsets in official.subsets.items():
        strange = sorted({kind for subset in subsets for kind in sound.get(subset, ()) if kind != "data"})
        if strange:
            found.append((column, f"the queries' sound is {' and '.join(strange)}, not the published one"))
    abilities: Mapping[str, Mapping[str, Any]] = summary.get("abilities") or {}
    for column in columns:
        figure = abilities.get(column) or {"unscored": "not scored"}
        if "unscored" in figure:
            found.append((column, f"no figure: {figure['unscored']}"))
        elif figure.get("missing"):
            found.append((column, f"{figure['missing']} answers have no figure: {figure['why']}"))
    found.append(("latency_rtf", "measured on other hardware"))
    return [{"column": column, "why": why} for column, why in dict.fromkeys(found) if column in columns]


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
