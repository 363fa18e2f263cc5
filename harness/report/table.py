"""The terminal summary: what was measured, the figures with their n and intervals, failures, and why a dash is one.

Everything printed stands in `summary.json` and `metrics.jsonl`. A narrow terminal gets fewer columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.report.failure import FailureGroup, failure_groups, plain
from harness.report.figure import DASH, P95_NEEDS, P99_NEEDS, Figure, StageFigure, figures, run_rtfs, stage_figures
from harness.report.grid import Column, Fitted, Row, fit
from harness.report.overview import Overview, overview

MOST_GROUPS = 8
INTERVAL = "95 % of p50"
METRIC_COLUMNS = (
    Column(heading="metric", left=True),
    Column(heading="n", rank=1),
    Column(heading="p50"),
    Column(heading=INTERVAL, rank=3),
    Column(heading="p90", rank=4),
    Column(heading="p95", rank=2),
    Column(heading="mean", rank=5),
)
STAGE_COLUMNS = (
    Column(heading="stage", left=True),
    Column(heading="n", rank=1),
    Column(heading="p50"),
    Column(heading="p90", rank=2),
    Column(heading="step p50"),
)
EVERYONE_COLUMNS = (
    Column(heading="metric", left=True),
    Column(heading="p50"),
    Column(heading="p90", rank=2),
    Column(heading="p95", rank=1),
)


def print_summary(
    console: Console,
    summary: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    *,
    notes: Sequence[str] = (),
    report: Path | None = None,
) -> None:
    """Print one run. notes: lines that a reader must know; report: the page's path, printed last."""
    seen = overview(summary, rows)
    failures = failure_groups(rows)
    causes_first = seen.mostly_failed and bool(failures)
    found = figures(summary.get("metrics") or {})
    answered = any(figure.n and figure.metric.headline for figure in found)
    _print_status(console, seen)
    if causes_first:
        _print_failures(console, failures)
        console.print()
    for text, fine in seen.verdicts:
        console.print(Text(text, style="dim" if fine else "yellow"))
    if causes_first:
        # Units are kept up with, or not, whether or not anybody answered.
        found = [figure for figure in found if figure.n and (answered or figure.metric.name.startswith("unit_"))]
    elif not answered:
        console.print(Text("No turn gave a latency.", style="bold"))
    _print_figures(console, found)
    for rtf in run_rtfs(summary):
        console.print(Text(f"{rtf}."))
    for line in dash_reasons(found, rows):
        console.print(Text(line, style="dim"))
    _print_stages(console, stage_figures(summary))
    for title, metrics in apart(summary):
        latencies = [figure for figure in figures(metrics) if figure.n and figure.metric.headline]
        if latencies:
            console.print(Text(f"\n{title}", style="bold"))
            console.print(_metric_table(console, latencies).table)
    if seen.failed and answered and everyone(found):
        timeout = f" (timeout {summary['timeout_s']:g} s)" if summary.get("timeout_s") else ""
        console.print(Text(f"\nFailed turns counted as infinitely late{timeout}", style="bold"))
        console.print(_everyone_table(console, everyone(found)))
    if failures and not causes_first:
        console.print()
        _print_failures(console, failures)
    for note in [*seen.notes, *map(plain, notes)]:
        console.print(Text(f"Note: {note}", style="yellow"))
    if report is not None:
        console.print(Text(f"\nReport: {report}"), soft_wrap=True)


def dash_reasons(found: Sequence[Figure], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why figures in the table are missing: too few turns, or the scorer's own reasons, commonest first."""
    lines = []
    short = [figure for figure in found if 0 < figure.n < P95_NEEDS and figure.p95 is None]
    if short:
        lines.append(f"{DASH} in p95: it needs n >= {P95_NEEDS} (p99: n >= {P99_NEEDS}).")
    if any(figure.n and "p50" not in figure.intervals for figure in found):
        lines.append(f"{DASH} in the interval: too few queries to resample.")
    absent: dict[str, list[str]] = {}
    for figure in found:
        if not figure.n:
            absent.setdefault(_reason(figure.metric.name, rows), []).append(figure.metric.name)
    lines += [f"No {', '.join(names)}: {reason}." for reason, names in absent.items()]
    return lines


def everyone(found: Sequence[Figure]) -> list[Figure]:
    """The latencies whose percentiles are worth giving over all turns, failed ones included."""
    return [figure for figure in found if figure.everyone and figure.metric.headline and figure.metric.unit == "ms"]


def _reason(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """The reason that most rows give for having no such figure."""
    said = Counter(plain(str(reason)) for row in rows if (reason := (row.get("reasons") or {}).get(name)))
    return said.most_common(1)[0][0] if said else "no turn has it"


def apart(summary: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Groups of turns whose figures the summary gives apart, with a title each."""
    titles = {
        "first_turns": "First turns of their sessions",
        "later_turns": "Later turns",
        "untainted": "Without the turns that the harness disturbed",
    }
    parts = [(title, summary.get(key)) for key, title in titles.items()]
    languages = summary.get("languages")
    if isinstance(languages, Mapping) and len(languages) > 1:
        parts += [(f"Language {language}", group) for language, group in languages.items()]
    groups = []
    for title, group in parts:
        if isinstance(group, Mapping):
            metrics, turns = group.get("metrics", group), group.get("turns")
            if isinstance(metrics, Mapping) and metrics:
                groups.append((f"{title} ({turns} turns)" if turns is not None else title, metrics))
    return groups


def _print_status(console: Console, seen: Overview) -> None:
    line = Text()
    line.append(seen.peer, style="bold")
    if seen.mode:
        line.append(f"  {seen.mode}", style="cyan")
    line.append(f"  {seen.turns} turns: ")
    for index, (status, count) in enumerate(seen.statuses):
        line.append(", " if index else "")
        line.append(f"{count} {status}", style="green" if status == "ok" else "red")
    console.print(line)


def _print_figures(console: Console, found: Sequence[Figure]) -> None:
    if not any(figure.n for figure in found):
        return
    fitted = _metric_table(console, found)
    console.print(fitted.table)
    if fitted.left_out:
        line = f"No room for {', '.join(fitted.left_out)} at this width; summary.json and the report have all."
        console.print(Text(line, style="dim"))


def _metric_table(console: Console, found: Sequence[Figure]) -> Fitted:
    columns: Sequence[Column] = METRIC_COLUMNS
    if not any(figure.intervals for figure in found):
        columns = [column for column in columns if column.heading != INTERVAL]
    rows: list[Row] = []
    for figure in found:
        if figure.metric.detail or not (figure.n or figure.metric.headline):
            continue
        p50, p90, p95, mean = map(figure.show, (figure.p50, figure.p90, figure.p95, figure.mean))
        cells = {"metric": figure.metric.name, "n": str(figure.n), "p50": p50, "p90": p90, "p95": p95, "mean": mean}
        cells[INTERVAL] = figure.interval()
        style = "dim" if not figure.n else "bold" if figure.metric.headline else ""
        rows.append(([cells[column.heading] for column in columns], style))
    return fit(console, columns, rows)


def _print_stages(console: Console, found: Sequence[StageFigure]) -> None:
    if not found:
        return
    console.print(Text("\nStages of the model, ms after the user's speech ended", style="bold"))
    rows: list[Row] = [([each.name, str(each.n), each.at_p50, each.at_p90, each.step_p50], "") for each in found]
    console.print(fit(console, STAGE_COLUMNS, rows).table)


def _everyone_table(console: Console, found: Sequence[Figure]) -> Table:
    rows: list[Row] = [
        ([figure.metric.name, *(figure.show_everyone(name) for name in ("p50", "p90", "p95"))], "") for figure in found
    ]
    return fit(console, EVERYONE_COLUMNS, rows).table


def _print_failures(console: Console, groups: Sequence[FailureGroup]) -> None:
    console.print(Text("Turns without a proper answer", style="bold"))
    for group in groups[:MOST_GROUPS]:
        head = Text(f"{number_of(group.count)} ", style="red")
        head.append(group.status, style="bold red")
        where = ", ".join(group.sessions[:3]) + (" …" if len(group.sessions) > 3 else "")
        head.append(f"  {plain(where)}", style="dim")
        console.print(head)
        if group.message:
            console.print(Padding(Text(group.message), (0, 0, 0, 6), expand=False))
    rest = sum(group.count for group in groups[MOST_GROUPS:])
    if rest:
        console.print(Text(f"and {rest} more with other messages: see metrics.jsonl", style="dim"))


def number_of(count: int) -> str:
    return f"{count:>4} ×"
