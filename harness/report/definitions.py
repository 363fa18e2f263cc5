"""One recording under the definitions of other harnesses, side by side in a terminal. Computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from harness.report.failure import plain
from harness.report.figure import DASH, number
from harness.report.grid import Column, Row, fit

COLUMNS = (
    Column(heading="definition", left=True),
    Column(heading="figure", left=True),
    Column(heading="value"),
    Column(heading="n"),
)
NAMED = 3
"""Sessions that the title names."""


def print_definitions(console: Console, table: Mapping[str, Any]) -> None:
    """Print every figure with its n, then a sentence a definition: what it measures, why it differs, what it lacks.

    table: sessions, and rows of name, source, says, cells (figure, value, n, reasons) and notes; a value is a number or
    {"reason": why there is none}.
    """
    console.print(Text(title_of(table["sessions"]), style="bold", overflow="fold"))
    rows = [row for definition in table["rows"] for row in _rows(definition)]
    console.print(fit(console, COLUMNS, rows).table)
    for definition in table["rows"]:
        console.print()
        _print_sentences(console, definition)


def title_of(sessions: Sequence[str]) -> str:
    """What a table is over, in words."""
    names = ", ".join(plain(name) for name in sessions[:NAMED])
    if len(sessions) == 1:
        return names
    more = f" and {len(sessions) - NAMED} more" if len(sessions) > NAMED else ""
    return f"{len(sessions)} sessions pooled: {names}{more}"


def _rows(definition: Mapping[str, Any]) -> list[Row]:
    rows: list[Row] = []
    for cell in definition["cells"]:
        name = "" if rows else plain(str(definition["name"]))
        value = cell["value"]
        missing = isinstance(value, Mapping)
        shown = DASH if missing else figure(str(cell["figure"]), float(value))
        rows.append(((name, str(cell["figure"]), shown, str(cell["n"])), "dim" if missing else ""))
    return rows


def _print_sentences(console: Console, definition: Mapping[str, Any]) -> None:
    title = Text(plain(str(definition["name"])), style="bold", overflow="fold")
    title.append(f"  {plain(str(definition['source']))}", style="not bold dim")
    console.print(title)
    lines = [Text(str(definition["says"]))]
    missing: dict[str, list[str]] = {}
    for cell in definition["cells"]:
        if isinstance(cell["value"], Mapping):
            missing.setdefault(str(cell["value"]["reason"]), []).append(str(cell["figure"]))
            continue
        for reason, count in cell["reasons"].items():
            missing.setdefault(f"without {count}: {reason}", []).append(str(cell["figure"]))
    lines += [Text(f"{', '.join(figures)}: {plain(reason)}.", style="dim") for reason, figures in missing.items()]
    lines += [Text(f"{plain(str(note))}.", style="dim") for note in definition["notes"]]
    for line in lines:
        line.overflow = "fold"
        console.print(Padding(line, (0, 0, 0, 2), expand=False))


def figure(name: str, value: float) -> str:
    """A figure with the unit that its name ends in.

    >>> figure("latency_ms", 412.34), figure("v15_stop_s", 0.5778), figure("R_R", 0.875), figure("per_s", 0.11)
    ('412.3 ms', '0.578 s', '0.875', '0.110 a second')
    """
    if name.endswith("_ms"):
        return f"{number(value, 'ms')} ms"
    if name.endswith("per_s"):
        return f"{value:.3f} a second"
    return f"{value:.3f} s" if name.endswith("_s") else number(value)
