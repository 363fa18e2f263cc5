"""The definitions matrix of a summary, every input instant against every output instant, as the page prints it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from harness.report.figure import number


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """shown: the median. name: the metric that this cell defines, if it is one."""

    shown: str
    name: str = ""


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


def matrix_of(summary: Mapping[str, Any]) -> Matrix | None:
    """Read `summary.definitions`: input anchor -> output anchor -> figure (or a bare median)."""
    raw = summary.get("definitions")
    if not isinstance(raw, Mapping) or not raw:
        return None
    inner = {str(name): cells for name, cells in raw.items() if isinstance(cells, Mapping)}
    columns = tuple(dict.fromkeys(str(column) for cells in inner.values() for column in cells))
    rows = tuple((name, tuple(_cell(cells.get(column)) for column in columns)) for name, cells in inner.items())
    return Matrix(columns=columns, rows=rows) if columns else None


def _cell(raw: Any) -> Cell:
    if isinstance(raw, Mapping):
        return Cell(shown=number(raw.get("p50"), "ms"), name=str(raw.get("metric") or ""))
    return Cell(shown=number(raw, "ms") if isinstance(raw, int | float) else number(None))
