"""tau-voice's panel in a terminal: a row for the pooled events, then one for each trajectory. Computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.report.failure import plain
from harness.report.figure import DASH
from harness.report.grid import Column, Row, fit

HIDDEN_BELOW = 10
"""tau-voice's leaderboard hides figures over fewer events."""
POOLED = "pooled"


def print_tau_panel(console: Console, panels: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Print the figures, each with its number of events below it.

    panels: (name, {symbol: {"value": float or None, "n": int}}), all with the same symbols.
    """
    symbols = list(panels[0][1])
    columns = [Column(heading="tau-voice", left=True), *(Column(heading=symbol) for symbol in symbols)]
    rows: list[Row] = [((plain(name), *(_cell(each[symbol]) for symbol in symbols)), "") for name, each in panels]
    console.print(fit(console, columns, rows).table)
    if any(0 < figures[symbol]["n"] < HIDDEN_BELOW for _, figures in panels for symbol in symbols):
        console.print(Text(f"Grey: n below {HIDDEN_BELOW}; tau-voice's leaderboard hides these.", style="dim"))


def _cell(figure: Mapping[str, Any]) -> Text:
    value, n = figure["value"], int(figure["n"])
    shown = DASH if value is None else f"{value:.3f}"
    return Text(f"{shown}\nn {n}", style="dim" if n < HIDDEN_BELOW else "")
