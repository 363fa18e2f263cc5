"""Latency of the same answers, by subset: what a published quality table lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scoring.pipeline.answers import ItemAnswer
from scoring.stats import Sample, describe

FIGURES = {"ttft_ms": "ms", "first_packet_ms": "ms", "first_audible_ms": "ms", "rtf": "ratio"}
"""Timing metrics shown, with their units (`scoring/timing/METRICS.md`)."""
ALL = "all"


def latency_by_subset(answers: Iterable[ItemAnswer]) -> dict[str, dict[str, Any]]:
    """Subset (and `all`) to figure to n, percentiles, mean and intervals; of `rtf` also `of_sums`, total generation by
    total length, as published tables give it. A figure that no answer has is `{"n": 0, "unscored": reason}`."""
    groups: dict[str, list[ItemAnswer]] = {ALL: []}
    for answer in answers:
        groups[ALL].append(answer)
        groups.setdefault(answer.item.subset, []).append(answer)
    return {subset: _figures(group) for subset, group in groups.items()}


def _figures(group: list[ItemAnswer]) -> dict[str, Any]:
    rows = [answer.timing for answer in group]
    figures: dict[str, Any] = {name: _figure(name, rows) for name in FIGURES}
    made = [row for row in rows if row["generation_s"] is not None and row["response_s"]]
    if made and figures["rtf"].get("n"):
        spoken_s = sum(row["response_s"] for row in made)
        figures["rtf"]["of_sums"] = round(sum(row["generation_s"] for row in made) / spoken_s, 6)
    return figures


def _figure(name: str, rows: list[Mapping[str, Any]] | list[dict[str, Any]]) -> dict[str, Any]:
    had = [(row[name], row["query"]) for row in rows if row[name] is not None]
    if not had:
        reasons = sorted({str(row["reasons"].get(name, "")) for row in rows} - {""})
        return {"n": 0, "unscored": "; ".join(reasons[:2]) or "no answer has it"}
    sample = Sample(
        values=tuple(value for value, _ in had),
        clusters=tuple(query for _, query in had),
        failed=sum(bool(row["failed"]) for row in rows),
    )
    return {"unit": FIGURES[name], **describe(sample, digits=6 if name == "rtf" else 3)}
