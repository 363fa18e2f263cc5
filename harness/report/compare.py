"""Two runs compared, for a terminal: sentences first, then a row a figure. Computes nothing.

A comparison is the JSON form of `scoring.compare.comparison.Comparison`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from harness.report.compare_sentence import SAID, amount, sentences, warnings
from harness.report.failure import plain
from harness.report.figure import DASH
from harness.report.grid import Column, Row, fit

WORDS = {
    "better": ("better", "green"),
    "worse": ("worse", "red"),
    "higher": ("higher", "yellow"),
    "lower": ("lower", "yellow"),
    "none": ("no difference seen", ""),
    "too_few": ("too few", "dim"),
}
COLUMNS = (
    Column(heading="figure", left=True),
    Column(heading="base", rank=5),
    Column(heading="other", rank=4),
    Column(heading="difference"),
    Column(heading="95 % interval", rank=1),
    Column(heading="n", rank=2),
    Column(heading="could have\nbeen seen", rank=3),
    Column(heading="verdict", left=True),
)
CHANCE_FROM = 5
"""Figures with an interval, from which on chance findings are worth a line."""


def print_compared(console: Console, comparison: Mapping[str, Any], *, every: bool = False) -> None:
    """Print one comparison. every: also the figures that are equal or of little interest in all rows."""
    base, other = (plain(str(comparison[side]["label"])) for side in ("base", "other"))
    console.print(Text(f"{other} against {base}", style="bold", overflow="fold"))
    for line in sentences(comparison):
        console.print(Padding(Text(line, overflow="fold"), (0, 0, 0, 2), expand=False))
    for line in warnings(comparison):
        console.print(Padding(Text(line, style="yellow", overflow="fold"), (0, 0, 0, 2), expand=False))
    shown = [figure for figure in comparison["figures"] if every or _interesting(figure)]
    if not shown:
        return
    console.print()
    fitted = fit(console, COLUMNS, [_row(figure) for figure in shown])
    console.print(fitted.table)
    for line in _notes(comparison, shown, fitted.left_out):
        console.print(Text(line, style="dim", overflow="fold"))


def _interesting(figure: Mapping[str, Any]) -> bool:
    found = figure["difference"]
    moved = any((found["base"], found["other"], found["value"]))
    return bool(moved) and (figure["name"] in SAID or figure["direction"] != "none")


def _row(figure: Mapping[str, Any]) -> Row:
    found, unit = figure["difference"], str(figure["unit"])
    word, style = WORDS[found["verdict"]]
    low_high = DASH
    if found["ci95"] is not None:
        low_high = " to ".join(amount(bound, unit, signed=True, named=False) for bound in found["ci95"])
    n = f"{found['n']}" if found["paired"] else f"{found['n']} unpaired"
    cells = (
        plain(str(figure["name"])),
        amount(found["base"], unit, named=False),
        amount(found["other"], unit, named=False),
        amount(found["value"], unit, signed=True),
        low_high,
        n,
        DASH if found["smallest"] is None else amount(found["smallest"], unit),
        Text(word, style=style),
    )
    return cells, ""


def _notes(comparison: Mapping[str, Any], shown: Sequence[Mapping[str, Any]], left_out: Sequence[str]) -> list[str]:
    found = [figure["difference"] for figure in shown]
    lines = []
    if any(each["paired"] for each in found):
        lines.append(
            "Paired: base and other are p50 (of shares and scores the mean) over the pairs, the difference is that of "
            "a typical pair, so it need not be the difference of both."
        )
    judged = sum(each["ci95"] is not None for each in found)
    if judged >= CHANCE_FROM:
        lines.append(f"{judged} figures are judged; of equal ones about 1 in 20 looks different by chance.")
    if left_out:
        lines.append(f"No room for: {', '.join(left_out)}; --json has everything.")
    return lines
