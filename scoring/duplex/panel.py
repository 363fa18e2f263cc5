"""The panel: for each category and metric n, a rate or a median, and an interval by session-cluster bootstrap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from scoring.duplex.metric import Metric
from scoring.duplex.metrics import METRICS
from scoring.stats import RESAMPLES, SEED, Sample, describe, intervals, percentile

ALL = "all"
FEW_BELOW = 10
"""Cells with a smaller n are flagged `few`: shown in grey and said to be thin."""
BIN_MS = 200
_DIGITS = {"ms": 3, "flag": 6, "count": 6}

Row = Mapping[str, Any]


def panel(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Cells, by category (`all` first, then by name) and metric; categories in which nothing is known of a metric
    have no cell of it. Warm-up sessions are in none.

    A cell: category, metric, header, unit, statistic (`median`, `rate`, `mean`, `per_min`), n, value, ci95 (or None
    with fewer than two sessions), few, censored (events whose outcome listening did not see: in no figure), inexact
    (events left out as their cue's offset was not the planned one).
    """
    counted = [row for row in rows if not row.get("warmup")]
    names = sorted({str(row["category"]) for row in counted if row["category"]})
    cells: list[dict[str, Any]] = []
    for category in (ALL, *(name for name in names if name != ALL)):
        chosen = counted if category == ALL else [row for row in counted if row["category"] == category]
        found = [_cell(category, metric, chosen) for metric in METRICS]
        found.append(_backchannel_rate(category, chosen))
        cells += [cell for cell in found if cell["n"] or cell["censored"] or cell["inexact"]]
    return cells


def offsets(rows: Iterable[Row]) -> dict[str, Any]:
    """The distribution of floor transfer offsets: figures as in any summary, and a histogram of 200 ms bins as pairs
    (beginning of the bin in ms, count)."""
    rows = [row for row in rows if not row.get("warmup") and row["fto_ms"] is not None]
    values = [row["fto_ms"] for row in rows]
    bins, counts = np.unique(np.floor_divide(np.asarray(values, dtype=np.float64), BIN_MS), return_counts=True)
    sample = Sample(values=tuple(values), clusters=tuple(row["session"] for row in rows))
    described = describe(sample)
    del described["percentiles_all"]
    pairs = [[int(b) * BIN_MS, int(n)] for b, n in zip(bins, counts, strict=True)]
    return {**described, "negative": sum(value < 0 for value in values), "bin_ms": BIN_MS, "histogram": pairs}


def _cell(category: str, metric: Metric, rows: Sequence[Row]) -> dict[str, Any]:
    known = [row for row in rows if row[metric.name] is not None]
    exact = [row for row in known if row["offset_exact"] or not metric.offset_sensitive]
    values = tuple(float(row[metric.name]) for row in exact)
    digits = _DIGITS[metric.unit]
    value: float | None = None
    ci95: list[float] | None = None
    if values:
        value = round(percentile(values, 0.5) if metric.statistic == "median" else float(np.mean(values)), digits)
        spread = intervals(Sample(values=values, clusters=tuple(row["session"] for row in exact)), digits=digits)
        ci95 = spread["p50" if metric.statistic == "median" else "mean"]
    return {
        "category": category,
        "metric": metric.name,
        "header": metric.header,
        "unit": metric.unit,
        "statistic": metric.statistic,
        "n": len(values),
        "value": value,
        "ci95": ci95,
        "few": len(values) < FEW_BELOW,
        "censored": sum(metric.name in row["censored"] for row in rows),
        "inexact": len(known) - len(exact),
    }


def _backchannel_rate(category: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Agent backchannels a minute of the user's turns: sum over sum."""
    known = [row for row in rows if row["agent_backchannels"] is not None]
    totals: dict[str, tuple[float, float]] = {}
    for row in known:
        count, minutes = totals.get(row["session"], (0.0, 0.0))
        spoken = (row["end_ms"] - row["start_ms"]) / 60_000
        totals[row["session"]] = (count + row["agent_backchannels"], minutes + spoken)
    pairs = np.asarray(list(totals.values()), dtype=np.float64).reshape(-1, 2)
    value = float(pairs[:, 0].sum() / pairs[:, 1].sum()) if len(pairs) else None
    ci95: list[float] | None = None
    if len(pairs) > 1:
        drawn = np.random.RandomState(SEED).randint(0, len(pairs), size=(RESAMPLES, len(pairs)))
        sums = pairs[drawn].sum(axis=1)
        rates = sums[:, 0] / sums[:, 1]
        ci95 = [round(percentile(rates, q), 6) for q in (0.025, 0.975)]
    return {
        "category": category,
        "metric": "agent_backchannels_per_min",
        "header": "agent backchannels a minute",
        "unit": "per_min",
        "statistic": "per_min",
        "n": len(known),
        "value": None if value is None else round(value, 6),
        "ci95": ci95,
        "few": len(known) < FEW_BELOW,
        "censored": 0,
        "inexact": 0,
    }
