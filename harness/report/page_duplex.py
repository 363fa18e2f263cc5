"""Conversations as the page shows them: the duplex panel, its main figures, what every event came to. Computes nothing.

From `duplex.json` and `duplex.jsonl`; the histogram lives in `page_histogram`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from harness.core.run_directory import RunDirectory
from harness.report.duplex_panel import NOTES, STATISTICS, figure
from harness.report.failure import plain
from harness.report.page_events import EventRow, event_rows
from harness.report.page_histogram import Histogram, histogram_of

ALL = "all"
HEADLINE = ("response_latency_ms", "stop_ms", "yielded", "false_stop")
MOST_EVENTS = 500
"""Events listed on one page."""


class PanelRow(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of the panel as printed. censored, inexact: counts, empty for none."""

    header: str
    figure: str
    n: int
    interval: str
    statistic: str
    censored: str
    inexact: str
    few: bool


class Block(msgspec.Struct, frozen=True, kw_only=True):
    category: str
    rows: tuple[PanelRow, ...]


class Duplex(msgspec.Struct, frozen=True, kw_only=True):
    """legend: a line for each thing in the panel that needs one. cut: not every event is listed."""

    sessions: int
    events: int
    unplaced: int
    headline: tuple[PanelRow, ...]
    blocks: tuple[Block, ...]
    legend: tuple[str, ...]
    histogram: Histogram | None
    rows: tuple[EventRow, ...]
    cut: bool


def duplex_of(
    run: RunDirectory,
    summary: Mapping[str, Any] | None,
    rows: Sequence[Mapping[str, Any]],
    views: Mapping[str, int] | None = None,
) -> Duplex | None:
    """Read what the duplex scorer kept; None where it kept nothing. views: session to the place of its view."""
    if not summary:
        return None
    panel: Sequence[Mapping[str, Any]] = summary.get("panel") or ()
    counted = [row for row in rows if not row.get("warmup")]
    overall = {cell["metric"]: cell for cell in panel if cell["category"] == ALL}
    return Duplex(
        sessions=int(summary.get("sessions") or 0),
        events=int(summary.get("events") or 0),
        unplaced=int(summary.get("unplaced") or 0),
        headline=tuple(_row(overall[name]) for name in HEADLINE if name in overall and overall[name]["n"]),
        blocks=tuple(
            Block(category=_category(str(category)), rows=tuple(_row(cell) for cell in cells))
            for category, cells in groupby(panel, key=lambda cell: cell["category"])
        ),
        legend=tuple(line for key, line in NOTES.items() if any(cell.get(key) for cell in panel)),
        histogram=histogram_of(summary.get("fto") or {}),
        rows=tuple(event_rows(run, counted[:MOST_EVENTS], views)),
        cut=len(counted) > MOST_EVENTS,
    )


def _category(name: str) -> str:
    return "all events" if name == ALL else plain(name).replace("_", " ")


def _row(cell: Mapping[str, Any]) -> PanelRow:
    unit, ci95, statistic = str(cell["unit"]), cell.get("ci95"), str(cell["statistic"])
    return PanelRow(
        header=plain(str(cell["header"])),
        figure=figure(cell["value"], unit),
        n=int(cell["n"]),
        interval="" if ci95 is None else f"{figure(ci95[0], unit)} to {figure(ci95[1], unit)}",
        statistic=STATISTICS.get(statistic, statistic),
        censored=str(cell.get("censored") or ""),
        inexact=str(cell.get("inexact") or ""),
        few=bool(cell["few"]),
    )
