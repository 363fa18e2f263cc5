"""The duplex panels of several peers beside each other: a row a metric over all events, a column a peer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.report.duplex_panel import FEW_BELOW, figure
from harness.report.failure import plain
from harness.report.figure import DASH
from harness.report.side_by_side import Beside, print_side_by_side

ALL = "all"
"""The category of the panel that holds every event."""
TITLE = "Side by side, all events: figure, 95 % interval, n"


def print_duplex_comparison(console: Console, summaries: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Print the peers' cells over all events, then a line for what makes them hard to compare.

    summaries: (label, summary of the duplex scorer), in the order to show.
    """
    cells = [{cell["metric"]: cell for cell in summary["panel"] if cell["category"] == ALL} for _, summary in summaries]
    names = {name: cell["header"] for found in cells for name, cell in found.items()}
    if not names:
        return
    columns = []
    for (label, summary), found in zip(summaries, cells, strict=True):
        few = frozenset(index for index, name in enumerate(names) if name in found and found[name]["few"])
        counts = ((str(summary["events"]),), (str(summary["unplaced"]),))
        columns.append(Beside(plain(label), (*(_cell(found.get(name)) for name in names), *counts), few))
    console.print(Text(TITLE, style="bold"))
    print_side_by_side(console, [*map(plain, names.values()), "events", "events not placed"], columns)
    if any(column.dim for column in columns):
        console.print(Text(f"Grey: n below {FEW_BELOW}, too few to say much.", style="dim"))
    versions = [summary.get("metric_versions") for _, summary in summaries]
    if any(each != versions[0] for each in versions):
        console.print(Text("Not comparable: the peers were scored by different versions of metrics.", style="yellow"))


def _cell(cell: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Figure, interval, n."""
    if cell is None:
        return (DASH,)
    unit, ci95 = str(cell["unit"]), cell.get("ci95")
    value = figure(cell["value"], unit)
    if ci95 is None:
        return (value, f"n {cell['n']}")
    low, high = (figure(bound, unit).partition(" ")[0] for bound in ci95)  # the unit stands beside the figure
    return (value, f"({low} to {high})", f"n {cell['n']}")
