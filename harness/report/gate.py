"""Limits that a run must keep, for continuous integration: each is met, or missed with a reason."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec
from rich.console import Console
from rich.text import Text

from harness.core.errors import ConfigError, nearest
from harness.report.compare_sentence import LEAST_CLUSTERS, amount
from harness.report.failure import plain
from harness.report.figure import number
from harness.report.gate_figures import Figures, Name, find
from harness.report.grid import Column, fit

Kind = Literal["max", "min", "max-regression"]
SIGNS: dict[Kind, str] = {"max": "<=", "min": ">=", "max-regression": "worse by <="}
REGRESSED = {"p50": "p50", "median": "p50", "p95": "p95", "mean": "mean", "rate": "mean"}
"""Statistics that may be compared with a baseline, by the names that limits give them."""
PREFIX = {"timing": "", "duplex": "duplex.", "scores": "scores."}


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """`figure` is a name as `gate_figures` has them."""

    kind: Kind
    figure: str
    bound: float

    def __str__(self) -> str:
        return f"{self.figure} {SIGNS[self.kind]} {self.bound:g}"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A limit and what became of it. value: None where the run has none, which misses the limit. said: why, or what
    stands behind the value."""

    limit: Limit
    met: bool
    value: float | None = None
    said: str = ""


def parse_limits(kind: Kind, texts: Iterable[str]) -> list[Limit]:
    """`NAME=NUMBER` each. Raises ConfigError."""
    found = []
    for text in texts:
        name, equals, bound = text.partition("=")
        try:
            number_ = float(bound)
        except ValueError:
            number_ = math.nan
        if not name or not equals or not math.isfinite(number_):
            raise ConfigError(f"--{kind} {text}: write METRIC.STATISTIC=NUMBER, such as first_packet_ms.p95=800")
        found.append(Limit(kind=kind, figure=name.strip(), bound=number_))
    return found


def check(limit: Limit, figures: Figures) -> Check:
    """A limit of the run's own figure. Raises ConfigError for a name that no figure has."""
    name = find(figures, limit.figure)
    value = figures[name]
    if isinstance(value, str):
        return Check(limit=limit, met=False, said=plain(value))
    n = figures.get(Name(name.metric, "n"))
    met = value <= limit.bound if limit.kind == "max" else value >= limit.bound
    return Check(
        limit=limit, met=met, value=value, said=f"n {n:g}" if isinstance(n, float) and name.statistic != "n" else ""
    )


def check_regression(limit: Limit, comparison: Mapping[str, Any], declared: Iterable[Name] = ()) -> Check:
    """A limit of how much worse the run is than its baseline. comparison: JSON form of the run against the baseline.
    declared: figures that exist, whether both runs have them or not.

    Raises ConfigError for a name that no figure has, and for a figure of which neither way is better.
    """
    figure, statistic = _compared(limit.figure, comparison, declared)
    if figure is None:
        return Check(limit=limit, met=False, said="not in both runs")
    found = figure["difference"]
    if figure["direction"] == "none":
        raise ConfigError(f"{limit.figure}: neither more nor less of it is better, so it cannot become worse")
    behind = f"{found['n']} {'pairs' if found['paired'] else 'values, unpaired'}"
    if found["clusters"] < LEAST_CLUSTERS:
        return Check(
            limit=limit, met=False, said=f"{behind} from {found['clusters']} queries; {LEAST_CLUSTERS} are needed"
        )
    change = found["statistics"][statistic]
    if change["value"] is None:
        return Check(limit=limit, met=False, said=f"n {found['n']} is too small for {statistic}")
    sign = 1 if figure["direction"] == "lower" else -1
    low, high = sorted(sign * bound for bound in change["ci95"])
    interval = " to ".join(amount(bound, str(figure["unit"]), signed=True, named=False) for bound in (low, high))
    value = sign * change["value"]
    return Check(limit=limit, met=value <= limit.bound, value=value, said=f"95 % interval {interval}, {behind}")


def _compared(
    text: str, comparison: Mapping[str, Any], declared: Iterable[Name]
) -> tuple[Mapping[str, Any] | None, str]:
    """The figure that a limit names (None: not in both runs), and its statistic."""
    figures = {f"{PREFIX[each['scorer']]}{each['name']}": each for each in comparison["figures"]}
    known = [*figures, *(name.metric for name in declared)]
    name, _, statistic = text.rpartition(".")
    if name not in known:
        said = f"add a statistic, such as {text}.p50" if text in known else nearest(name or text, set(known))
        raise ConfigError(f"--max-regression {text}: no figure is called so; {said}")
    if statistic not in REGRESSED:
        raise ConfigError(f"--max-regression {text}: not compared with a baseline; {nearest(statistic, REGRESSED)}")
    return figures.get(name), REGRESSED[statistic]


def print_checks(console: Console, checks: list[Check]) -> None:
    """A row a limit, then how many were missed."""
    columns = (
        Column(heading="limit", left=True),
        Column(heading="value"),
        Column(heading="", left=True),
        Column(heading="behind it", left=True),
    )
    rows = [
        (
            (
                str(each.limit),
                _shown(each),
                Text("met" if each.met else "MISSED", style="green" if each.met else "bold red"),
                each.said,
            ),
            "",
        )
        for each in checks
    ]
    console.print(fit(console, columns, rows).table)
    missed = sum(not each.met for each in checks)
    many = "limit" if len(checks) == 1 else "limits"
    console.print(
        Text(f"{missed} of {len(checks)} {many} missed" if missed else f"{len(checks)} {many} met", style="bold")
    )


def _shown(check: Check) -> str:
    if check.value is not None and check.value.is_integer():
        return f"{check.value:,.0f}"
    figure = check.limit.figure
    return number(check.value, "ms" if "_ms." in figure else "s" if "_s." in figure else "")
