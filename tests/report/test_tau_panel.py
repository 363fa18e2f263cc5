"""tau-voice's panel in a terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from harness.report.tau_panel import print_tau_panel

pytestmark = pytest.mark.unit


def figures(latency: float | None, n: int) -> dict[str, Any]:
    return {"L_R_s": {"value": latency, "n": n}, "R_R": {"value": 1.0, "n": n}}


def printed(panels: list[tuple[str, dict[str, Any]]], *, colours: bool = False) -> list[str]:
    system = "standard" if colours else None
    console = Console(file=io.StringIO(), width=80, force_terminal=colours, color_system=system)
    print_tau_panel(console, panels)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def test_a_row_each_with_n_below() -> None:
    lines = [line.split() for line in printed([("pooled", figures(1.175, 12)), ("a", figures(None, 0))])]
    assert ["tau-voice", "L_R_s", "R_R"] in lines
    assert lines[lines.index(["pooled", "1.175", "1.000"]) + 1] == ["n", "12", "n", "12"]
    assert lines[lines.index(["a", "–", "1.000"]) + 1] == ["n", "0", "n", "0"]


def test_thin_figures_are_grey_and_said_so() -> None:
    lines = printed([("many", figures(1.0, 10)), ("few", figures(2.0, 9))], colours=True)
    assert "\x1b[2m" not in next(line for line in lines if "many" in line)
    assert "\x1b[2m" in next(line for line in lines if "few" in line)
    assert "n below 10" in lines[-1]
    assert "n below 10" not in "".join(printed([("many", figures(1.0, 10))]))
