"""A benchmark's scores as the page shows them: `scores.json` of `firstpacket score`. Computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from harness.report.failure import plain
from harness.report.score_table import FEW_BELOW, figure_cells, latency_cells, overall_line, usage_line


class ScoreRow(msgspec.Struct, frozen=True, kw_only=True):
    """cells: name, n, value, interval, unit, remark, as printed in the terminal."""

    cells: tuple[str, ...]
    few: bool
    unscored: bool


class ScoreBlock(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    rows: tuple[ScoreRow, ...]


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """about: engines, stages without one and the judge's cost, a line each."""

    benchmark: str
    answers: int
    failed: int
    not_run: int
    overall: str
    subsets: tuple[ScoreBlock, ...]
    categories: tuple[ScoreBlock, ...]
    latency: tuple[tuple[str, ...], ...]
    about: tuple[str, ...]


def scores_of(summary: Mapping[str, Any] | None) -> Scores | None:
    """Read what `firstpacket score` kept; None where it kept nothing."""
    if not summary:
        return None
    about = [f"{stage}: {plain(str(engine))}" for stage, engine in (summary.get("engines") or {}).items()]
    about += [f"{stage}: unscored, {plain(str(why))}" for stage, why in (summary.get("no_engine") or {}).items()]
    if summary.get("judge_usage"):
        about.append(usage_line(summary["judge_usage"]))
    return Scores(
        benchmark=plain(str(summary.get("benchmark") or "unknown benchmark")),
        answers=int(summary.get("answers") or 0),
        failed=int(summary.get("failed") or 0),
        not_run=int(summary.get("not_run") or 0),
        overall=overall_line(summary.get("overall") or {}),
        subsets=tuple(_blocks(summary.get("subsets") or {})),
        categories=tuple(_blocks(summary.get("categories") or {})),
        latency=tuple(latency_cells(name, figures) for name, figures in (summary.get("latency") or {}).items()),
        about=tuple(about),
    )


def _blocks(tables: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[ScoreBlock]:
    return [
        ScoreBlock(
            name=plain(name).replace("_", " "),
            rows=tuple(
                ScoreRow(
                    cells=figure_cells(label, figure),
                    few=int(figure.get("n") or 0) < FEW_BELOW,
                    unscored=figure.get("value") is None,
                )
                for label, figure in figures.items()
            ),
        )
        for name, figures in tables.items()
    ]
