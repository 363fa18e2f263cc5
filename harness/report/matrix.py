"""The definitions matrix of a summary, every input instant against every output instant, as the page prints it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from harness.report.failure import plain
from harness.report.figure import number


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """shown: the median. name: the metric that this cell defines, if it is one. reason: why it is a dash."""

    shown: str
    name: str = ""
    reason: str = ""


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


def matrix_of(summary: Mapping[str, Any], mode: str) -> Matrix | None:
    """Read `summary.definitions`: input anchor -> output anchor -> {"n", "p50", "reason"}.

    mode: how turns ended; it decides which cells are ttft and first packet.
    """
    raw = summary.get("definitions")
    if not isinstance(raw, Mapping):
        return None
    inner = {str(name): cells for name, cells in raw.items() if isinstance(cells, Mapping)}
    columns = tuple(dict.fromkeys(str(column) for cells in inner.values() for column in cells))
    names = _names(mode)
    rows = tuple(
        (name, tuple(_cell(cells.get(column), names.get((name, column), "")) for column in columns))
        for name, cells in inner.items()
    )
    return Matrix(columns=columns, rows=rows) if columns else None


def _names(mode: str) -> dict[tuple[str, str], str]:
    start = "committed" if mode == "manual" else "speech_sent"
    return {
        (start, "first_text"): "ttft_ms",
        (start, "first_packet"): "first_packet_ms",
        ("speech_end", "first_audible"): "first_audible_ms",
        **({("endpoint", "first_packet"): "think_ms"} if mode == "vad" else {}),
    }


def _cell(raw: Any, name: str) -> Cell:
    found = raw if isinstance(raw, Mapping) else {}
    return Cell(shown=number(found.get("p50"), "ms"), name=name, reason=plain(str(found.get("reason") or "")))
