"""What the page shows of turns: charts, the scale of the small bars, every turn in a line. Computes no metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from harness.report.anchor import LATENCIES
from harness.report.failure import message_of, plain
from harness.report.figure import ANSWERED, Figure, figures, number

CHARTED = ("first_audible_ms", "first_packet_ms", "ttft_ms")
LISTED = (
    ("first_audible_ms", "first audible", "ms"),
    ("first_packet_ms", "first packet", "ms"),
    ("ttft_ms", "TTFT", "ms"),
    ("rtf", "RTF", ""),
    ("stall_ms", "stalls", "ms"),
    ("own_error_ms", "own error", "ms"),
)
"""Columns of the list of turns: (metric, heading, unit)."""
MOST_ROWS = 300
"""Turns listed on one page."""


class Ranges(msgspec.Struct, frozen=True, kw_only=True):
    """The common scale of the small bars beside the latencies."""

    top: int

    def of(self, figure: Figure) -> dict[str, Any] | None:
        """Positions in percent of the scale: median, p95 (p90, else median) and the interval."""
        if figure.metric.name not in LATENCIES or figure.p50 is None:
            return None
        high = next(value for value in (figure.p95, figure.p90, figure.p50) if value is not None)
        interval = figure.intervals.get("p50")
        return {
            "p50": self._percent(figure.p50),
            "high": self._percent(high),
            "low_ci": self._percent(interval[0]) if interval else None,
            "width_ci": max(0.6, self._percent(interval[1]) - self._percent(interval[0])) if interval else 0,
        }

    def _percent(self, value: float) -> float:
        return round(min(100.0, max(0.0, 100 * value / self.top)), 2)


class TurnRow(msgspec.Struct, frozen=True, kw_only=True):
    """One turn as printed. view: its place among the page's views, None where it is not drawn. values: as `LISTED`."""

    session: str
    query: str
    status: str
    bad: bool
    values: tuple[str, ...]
    notes: str
    view: int | None


def turn_rows(rows: Sequence[Mapping[str, Any]], views: Mapping[tuple[str, Any], int]) -> list[TurnRow]:
    """The first `MOST_ROWS` turns, warm-ups left out. views: (session, turn) to the place of its view."""
    return [
        TurnRow(
            session=plain(str(row.get("session") or "")),
            query=plain(str(row.get("query") or "")),
            status=plain(str(row.get("status") or "")),
            bad=row.get("status") not in ANSWERED,
            values=tuple(number(row.get(name), unit) for name, _, unit in LISTED),
            notes="; ".join(note for note in (message_of(row), "tainted" if row.get("tainted") else "") if note),
            view=views.get((str(row.get("session")), row.get("turn"))),
        )
        for row in rows[:MOST_ROWS]
    ]


def charts_of(rows: Sequence[dict[str, Any]], metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each row's value of the charted metrics, for the distributions."""
    charts = []
    for figure in figures({name: metrics[name] for name in CHARTED if name in metrics}):
        name = figure.metric.name
        values = [row.get(name) if row.get("status") in ANSWERED else None for row in rows]
        if any(value is not None for value in values):
            charts.append({"name": name, "label": figure.metric.label, "p50": figure.p50, "values": values})
    return charts


def turns_of(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the dots stand for: columns over the rows, queries by index in order of appearance."""
    queries = sorted({str(row.get("query") or "") for row in rows})
    index = {query: number for number, query in enumerate(queries)}
    return {
        "queries": [plain(query) for query in queries],
        "turns": {
            "query": [index[str(row.get("query") or "")] for row in rows],
            "session": [str(row.get("session") or "") for row in rows],
            "failed": [1 if row.get("failed", row.get("status") != "ok") else 0 for row in rows],
            "tainted": [1 if row.get("tainted") else 0 for row in rows],
        },
    }


def ranges_of(found: Sequence[Figure]) -> Ranges | None:
    """A scale to a round number above the greatest p95 among the latencies; None when there are none."""
    tops = [v for f in found if f.metric.name in LATENCIES for v in (f.p50, f.p90, f.p95) if v is not None and v > 0]
    if not tops:
        return None
    step = 10 ** max(0, len(str(int(max(tops)))) - 2) * 5
    return Ranges(top=int(-(-max(tops) // step) * step))
