"""The duplex panel in a terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from harness.report.duplex_panel import print_panel

pytestmark = pytest.mark.unit


def cell(header: str, value: float | None, unit: str = "ms", **more: Any) -> dict[str, Any]:
    return {
        "category": "all",
        "metric": header,
        "header": header,
        "unit": unit,
        "statistic": {"ms": "median", "flag": "rate"}.get(unit, unit),
        "n": 12,
        "value": value,
        "ci95": None,
        "few": False,
        "censored": 0,
        "inexact": 0,
        **more,
    }


CELLS = [
    cell("response latency", 412.34, ci95=[380.0, 466.25]),
    cell("yields", 0.8333, "flag", few=True, n=6),
    cell("response latency", -120.0, category="user_interruption", censored=2),
]


def printed(cells: list[dict[str, Any]], width: int = 110, *, colours: bool = False) -> str:
    system = "standard" if colours else None
    console = Console(file=io.StringIO(), width=width, force_terminal=colours, color_system=system)
    print_panel(console, cells)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_a_block_a_category_a_row_a_metric() -> None:
    lines = [line.split("  ") for line in printed(CELLS).splitlines()]
    words = [[word.strip() for word in line if word.strip()] for line in lines]
    assert ["all"] in words
    assert ["user interruption"] in words
    assert ["response latency", "12", "412.3 ms", "380.0 ms to 466.2 ms", "median"] in words
    assert ["yields", "6", "83.3 %", "–", "rate"] in words
    assert ["response latency", "12", "-120.0 ms", "–", "median", "2"] in words


def test_thin_cells_are_grey_and_said_so() -> None:
    shown = printed(CELLS, colours=True)
    thin = next(line for line in shown.splitlines() if "yields" in line)
    assert "\x1b[2m" in thin
    assert "\x1b[2m" not in next(line for line in shown.splitlines() if "412.3" in line)
    assert "n below 10" in shown
    assert "n below 10" not in printed(CELLS[:1])


def test_what_is_in_no_figure_is_explained_only_where_it_occurs() -> None:
    assert "censored: events" in printed(CELLS)
    assert "inexact: events" not in printed(CELLS)
    assert "inexact: events" in printed([cell("overlap", 3.0, inexact=1)])


def test_a_narrow_terminal_loses_columns_and_says_so() -> None:
    shown = printed(CELLS, width=50)
    assert max(cell_len(line) for line in shown.splitlines()) <= 50
    assert "412.3 ms" in shown
    assert "380.0" not in shown
    assert "No room for" in shown


def test_no_cells() -> None:
    assert "nothing to show" in printed([])
