"""The definitions matrix: every input anchor against every output instant, so that no definition hides behind a name.

cell[start][end] = end - start in ms, to 0.001, or None where either is missing. Rows carry their anchors, so a matrix
is made from a row alone. `connect` and `stream_start` are no start of any metric here: their rows show what a clock
that begins there would report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from scoring.stats import percentile
from scoring.timing.anchors import INPUT, OUTPUT
from scoring.timing.metric import ns_to_ms


def turn_matrix(row: Mapping[str, Any]) -> dict[str, dict[str, float | None]]:
    """The matrix of one row of `metrics.jsonl`."""
    anchors = row["anchors"]
    return {start: {end: _cell(anchors.get(start), anchors.get(end)) for end in OUTPUT} for start in INPUT}


def matrix_reasons(row: Mapping[str, Any]) -> dict[str, str]:
    """Why anchors of one row are missing, by anchor."""
    return {name: row["reasons"].get(name, "") for name in INPUT + OUTPUT if row["anchors"].get(name) is None}


def run_matrix(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Medians over rows: cell[start][end] = {"n", "p50"}, and the commonest `reason` where n is 0."""
    matrices, reasons = [], []
    for row in rows:
        matrices.append(turn_matrix(row))
        reasons.append(matrix_reasons(row))
    return {start: {end: _median(matrices, reasons, start, end) for end in OUTPUT} for start in INPUT}


def _cell(start_ns: int | None, end_ns: int | None) -> float | None:
    return None if start_ns is None or end_ns is None else ns_to_ms(end_ns - start_ns)


def _median(
    matrices: list[dict[str, dict[str, float | None]]], reasons: list[dict[str, str]], start: str, end: str
) -> dict[str, Any]:
    values = [value for matrix in matrices if (value := matrix[start][end]) is not None]
    if values:
        return {"n": len(values), "p50": round(percentile(values, 0.5), 3)}
    said = Counter(reason.get(start) or reason.get(end) or "" for reason in reasons)
    return {"n": 0, "p50": None, "reason": min(said, key=lambda text: (-said[text], text)) if said else "no turns"}
