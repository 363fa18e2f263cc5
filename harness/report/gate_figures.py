"""Every figure of a run by the name that a limit gives it: `metric.statistic`, or why it has no value.

`first_packet_ms.p95`: of the turns that were answered; `first_packet_ms.p95_all`: failed turns count as infinite.
`failed`, `turns`, ...: counts of the run. `duplex.stop_ms.median`: of the conversations' panel over all events,
`duplex.<category>.stop_ms.median` of one category. `scores.overall.value`, `scores.<ability>.value`,
`scores.<subset>.<figure>.value`: of a benchmark. Each has `.n` as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from harness.core.errors import ConfigError, nearest
from harness.core.weights_mark import MARK
from harness.report.figure import P95_NEEDS, P99_NEEDS

STATISTICS = ("n", "p50", "p90", "p95", "p99", "mean", "min", "max")
WITH_FAILED = "_all"
COUNTS = ("turns", "failed", "sessions", "missing_sessions", "early_turns", "late_packets")
OWN_COUNTS = ("tainted", "dropped", "early_sends", "late_sends")
"""Counts of the harness's own troubles."""
COUNT = "count"
ABSENT = "nothing in this run shows it"
_NEEDS = {"p95": P95_NEEDS, "p99": P99_NEEDS}

Value = float | str
"""A figure, or the reason why there is none."""


class Name(NamedTuple):
    """A figure of a run; `str()` is what a limit calls it."""

    metric: str
    statistic: str

    def __str__(self) -> str:
        return self.metric if self.statistic == COUNT else f"{self.metric}.{self.statistic}"


Figures = dict[Name, Value]


def gate_figures(
    timing: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    duplex: Mapping[str, Any],
    scores: Mapping[str, Any],
    declared: Iterable[Name] = (),
) -> Figures:
    """Read the summaries (empty: that scorer has nothing to say). rows: of the turns, for reasons. declared: figures
    that exist, whether this run has them or not."""
    found: Figures = dict.fromkeys(declared, ABSENT)
    for name, raw in (timing.get("metrics") or {}).items():
        found |= _timing(name, raw, rows)
    for name in COUNTS:
        if name in timing:
            found[Name(name, COUNT)] = float(timing[name])
    harness = timing.get("harness") or {}
    for name in OWN_COUNTS:
        if name in harness:
            found[Name(name, COUNT)] = float(harness[name])
    for cell in duplex.get("panel") or ():
        found |= _cell(cell)
    return found | _scores(scores)


def find(figures: Mapping[Name, Any], text: str) -> Name:
    """The name that `text` means. Raises ConfigError with the nearest right one."""
    names = {str(name): name for name in figures} | {f"{name.metric}.{name.statistic}": name for name in figures}
    if text in names:
        return names[text]
    metric, _, statistic = text.rpartition(".")
    statistics = [name.statistic for name in figures if name.metric == metric]
    if statistics:
        raise ConfigError(
            f"{text}: {metric} has no {statistic or 'statistic of this name'}; {nearest(statistic, statistics)}"
        )
    whole = [name.statistic for name in figures if name.metric == text]
    if whole:
        one = next((each for each in whole if each != "n"), "n")
        raise ConfigError(f"{text}: add a statistic, such as {text}.{one}; known: {', '.join(whole)}")
    metrics = dict.fromkeys(name.metric for name in figures)
    raise ConfigError(f"{text}: no figure of this run is called so; {nearest(metric or text, metrics)}")


def _timing(name: str, raw: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Figures:
    n = int(raw.get("n") or 0)
    found: Figures = {}
    for statistic in STATISTICS:
        value = raw.get(statistic)
        found[Name(name, statistic)] = float(value) if value is not None else _why(name, statistic, n, rows)
    everyone = raw.get("percentiles_all") or {}
    for statistic, value in everyone.items():
        if statistic == "n":
            continue
        if isinstance(value, str):
            value = f"falls on a failed turn ({value})"
        elif value is None:
            value = _why(name, statistic, int(everyone.get("n") or 0), rows)
        found[Name(name, f"{statistic}{WITH_FAILED}")] = value
    return found


def _why(name: str, statistic: str, n: int, rows: Iterable[Mapping[str, Any]]) -> str:
    if n:
        return f"n {n} is too small: {statistic} needs {_NEEDS.get(statistic, 1)}"
    reasons = Counter(
        str((row.get("reasons") or {}).get(name) or (row.get("reasons") or {}).get("status") or row.get("status"))
        for row in rows
        if not row.get("warmup")
    )
    return f"no turn has it: {reasons.most_common(1)[0][0]}" if reasons else "the run has no turns"


def _cell(cell: Mapping[str, Any]) -> Figures:
    category = str(cell["category"])
    metric = f"duplex.{cell['metric']}" if category == "all" else f"duplex.{category}.{cell['metric']}"
    value: Value = "no event shows it" if cell["value"] is None else float(cell["value"])
    return {Name(metric, str(cell["statistic"])): value, Name(metric, "n"): float(cell["n"])}


def _scores(scores: Mapping[str, Any]) -> Figures:
    engines = scores.get("engines") or {}
    random = [str(name) for name in engines.values() if MARK in str(name)]
    tables = {f"scores.{name}": figure for name, figure in (scores.get("abilities") or {}).items()}
    for subset, table in (scores.get("subsets") or {}).items():
        tables |= {f"scores.{subset}.{name}": figure for name, figure in table.items()}
    if "overall" in scores:
        tables["scores.overall"] = scores["overall"]
    found: Figures = {}
    for name, figure in tables.items():
        if not isinstance(figure, Mapping):
            continue
        value: Value = str(figure["unscored"]) if "unscored" in figure else float(figure["value"])
        found[Name(name, "value")] = f"rests on random weights ({random[0]})" if random else value
        if "n" in figure:
            found[Name(name, "n")] = float(figure["n"])
    return found
