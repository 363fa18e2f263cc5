"""The duplex panel as a terminal table: a block a category, a row a metric. Computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.report.failure import plain
from harness.report.figure import DASH, number
from harness.report.grid import Column, Row, fit

COLUMNS = (
    Column(heading="event and metric", left=True),
    Column(heading="n"),
    Column(heading="figure"),
    Column(heading="95 % interval", rank=1),
    Column(heading="statistic", rank=4, left=True),
    Column(heading="censored", rank=2),
    Column(heading="inexact", rank=3),
)
FEW_BELOW = 10
"""What `few` in a cell means."""
NOTES = {
    "few": f"Grey: n below {FEW_BELOW}, too few to say much.",
    "censored": "censored: events whose outcome the recording does not show; in no figure.",
    "inexact": "inexact: events left out, as their cue did not fall where it was planned.",
}
STATISTICS = {"per_min": "a minute"}


def print_panel(console: Console, cells: Sequence[Mapping[str, Any]]) -> None:
    """Print the cells that `summary.panel` of the duplex scorer holds, then a line for each thing that needs one.

    cells: in order, those of a category together; keys category, metric, header, unit, statistic, n, value, ci95, few,
    censored, inexact.
    """
    if not cells:
        console.print(Text("No events of a conversation in this run: nothing to show.", style="yellow"))
        return
    rows: list[Row] = []
    category = None
    for cell in cells:
        if cell["category"] != category:
            category = cell["category"]
            rows.append(((plain(str(category)).replace("_", " "), *[""] * (len(COLUMNS) - 1)), "bold"))
        rows.append(_row(cell))
    fitted = fit(console, COLUMNS, rows)
    console.print(fitted.table)
    if fitted.left_out:
        console.print(Text(f"No room for {', '.join(fitted.left_out)} at this width; --json has all.", style="dim"))
    for key, line in NOTES.items():
        if any(cell.get(key) for cell in cells):
            console.print(Text(line, style="dim"))


def print_title(console: Console, peer: str, summary: Mapping[str, Any]) -> None:
    """Whose panel follows, and over how much: one line above it."""
    title = Text(plain(peer), style="bold", overflow="fold")
    title.append(f": {_many(summary['sessions'], 'session')}, {_many(summary['events'], 'event')}", style="not bold")
    console.print(title)


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _row(cell: Mapping[str, Any]) -> Row:
    unit = str(cell["unit"])
    ci95 = cell.get("ci95")
    shown = (
        f"  {plain(str(cell['header']))}",
        str(cell["n"]),
        figure(cell["value"], unit),
        DASH if ci95 is None else f"{figure(ci95[0], unit)} to {figure(ci95[1], unit)}",
        STATISTICS.get(str(cell["statistic"]), str(cell["statistic"])),
        str(cell.get("censored") or ""),
        str(cell.get("inexact") or ""),
    )
    return shown, "dim" if cell["few"] else ""


def figure(value: float | None, unit: str) -> str:
    """One figure with its unit; flags are rates in per cent.

    >>> figure(0.8333, "flag"), figure(412.34, "ms"), figure(None, "ms")
    ('83.3 %', '412.3 ms', '–')
    """
    if value is None:
        return DASH
    if unit == "flag":
        return f"{value * 100:.1f} %"
    return f"{number(value, unit)} ms" if unit == "ms" else f"{value:.2f}"
