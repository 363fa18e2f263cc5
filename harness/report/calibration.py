"""The calibration figures as a terminal table."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from harness.report.figure import DASH, P99_NEEDS
from harness.report.grid import Column, Row, fit

COLOURS = {"met": "green", "missed": "red", "host noise": "yellow", "too few": "yellow"}
COLUMNS = (
    Column(heading="scenario", left=True),
    Column(heading="n", rank=3),
    Column(heading="error\np50"),
    Column(heading="error\np99"),
    Column(heading="error\nmax", rank=2),
    Column(heading="late\np50", rank=7),
    Column(heading="late\np99", rank=1),
    Column(heading="early\nsends", rank=5),
    Column(heading="sends", rank=6),
    Column(heading="loop\nlag p99", rank=8),
    Column(heading="host\np99", rank=4),
    Column(heading="verdict"),
)
VERDICTS = {
    "host noise": "host noise: the sentinel beside it was late as well (p99 above 0.4 ms), so the machine was busy",
    "too few": f"too few: a p99 needs n >= {P99_NEEDS}, so there is no verdict; --samples takes more",
}


def print_calibration(console: Console, figures: dict[str, Any]) -> None:
    """Print one row a scenario with its goals below it, and what the host did meanwhile."""
    console.print(Text("The stopwatch's own error, ms", style="bold"))
    rows: list[Row] = []
    for row in figures["rows"]:
        rows += [_figures(row), _goals(row["goal"])]
    fitted = fit(console, COLUMNS, rows)
    console.print(fitted.table)
    if fitted.left_out:
        line = f"No room for {', '.join(fitted.left_out)} at this width; --json has all."
        console.print(Text(line, style="dim"))
    verdicts = dict.fromkeys(row["verdict"] for row in figures["rows"])
    for line in (VERDICTS[verdict] for verdict in verdicts if verdict in VERDICTS):
        console.print(Text(f"{line}."))
    console.print(
        Text(
            "error: of the reported first-packet latency. late: a chunk's start after its planned instant. "
            "host: how late a sentinel process woke meanwhile."
        )
    )
    console.print(f"Drift over {figures['drift_chunks']} chunks on the virtual clock: {figures['drift_ns']} ns.")


def _figures(row: dict[str, Any]) -> Row:
    verdict = row["verdict"]
    cells = (
        row["name"],
        str(row["n"]),
        *(_ms(row[name]) for name in ("error_p50", "error_p99", "error_max", "late_p50", "late_p99")),
        str(row["early_sends"]),
        str(row["sends"]),
        _ms(row["loop_lag_p99"]),
        _ms(row["host"]["p99_ms"]),
        Text(verdict, style=COLOURS.get(verdict, "")),
    )
    return cells, ""


def _goals(goal: dict[str, float]) -> Row:
    shown = {name: f"{bound:g}" for name, bound in goal.items()}
    error_p50, error_p99, late_p99 = (shown.get(name, "") for name in ("error_p50", "error_p99", "late_p99"))
    return ("  at most", "", error_p50, error_p99, "", "", late_p99, "0", "", "", "", ""), "dim"


def _ms(value: float | None) -> str:
    return DASH if value is None else f"{value:,.3f}"
