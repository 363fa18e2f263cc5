"""What the summaries of all benchmarks have in common: the overall score, what rows rest on, how complete they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scoring.benchmarks.figures import Figure, Rows, value_of
from scoring.benchmarks.overall import formula_of, overall

OWN = "own"
"""`prompt` of a row whose judge was asked in our own words."""
Table = Mapping[str, Figure]


def by_subset(rows: Rows, subsets: Iterable[str]) -> dict[str, list[Mapping[str, Any]]]:
    """The rows of each subset, which may be none."""
    found: dict[str, list[Mapping[str, Any]]] = {subset: [] for subset in subsets}
    for row in rows:
        if row["subset"] in found:
            found[row["subset"]].append(row)
    return found


def picked(table: Table, name: str, called: str) -> dict[str, Figure]:
    """A figure and its other readings, renamed."""
    wanted = {name: called} | {f"{name}_{profile}": f"{called}_{profile}" for profile in ("fixed", "strict")}
    return {new: table[old] for old, new in wanted.items() if old in table}


def overall_score(benchmark: str, columns: Table) -> dict[str, Any]:
    """The official overall; `fixed` beside it when the fixed profile gives another. columns: of the leaderboard."""
    official, fixed = (_formula(benchmark, columns, profile) for profile in ("", "_fixed"))
    return official if fixed == official else official | {"fixed": fixed}


def provenance(rows: Rows, by: Mapping[str, Rows], sizes: Mapping[str, int]) -> dict[str, Any]:
    """coverage: items and published items of each subset. query_sound: where its queries' sound came from. engines:
    stage to those that any row names. own_wording: subsets with prompts of ours. prompts: all that were used."""
    return {
        "coverage": {
            subset: {"n": len({row["index"] for row in by[subset]}), "of": size}
            for subset, size in sizes.items()
            if by[subset]
        },
        "query_sound": {subset: _distinct(row.get("sound") for row in by[subset]) for subset in sizes if by[subset]},
        "engines": _engines(rows),
        "own_wording": _distinct(row["subset"] for row in rows if row.get("prompt") == OWN),
        "prompts": _distinct(row.get("prompt") for row in rows),
    }


def _formula(benchmark: str, columns: Table, profile: str) -> dict[str, Any]:
    values = {name: value_of(columns.get(f"{name}{profile}", figure)) for name, figure in columns.items()}
    found = overall(benchmark, values)
    points = {name: round(value, 6) for name, value in found.points.items()}
    if found.value is not None:
        return {"value": round(found.value, 6), "points": points}
    parts = formula_of(benchmark).parts
    why = {name: columns[parts[name].column]["unscored"] for name in found.missing if name in parts}
    said = "; ".join(f"{name} ({why[name]})" if name in why else name for name in found.missing)
    return {"unscored": f"parts are missing: {said}", "missing": list(found.missing), "points": points}


def _distinct(values: Iterable[Any]) -> list[str]:
    return sorted({str(value) for value in values if value})


def _engines(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    names: dict[str, set[str]] = {}
    for row in rows:
        for stage, name in (row.get("engines") or {}).items():
            names.setdefault(stage, set()).add(name)
    return {stage: ", ".join(sorted(found)) for stage, found in sorted(names.items())}
