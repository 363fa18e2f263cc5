"""Several peers of one interleaved run beside each other: a row a metric, a column a peer. Computes no metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.report.failure import plain
from harness.report.figure import DASH, Figure, figures
from harness.report.grid import natural_width, plain_table
from harness.report.overview import overview

COMPARED = ("first_audible_ms", "first_packet_ms", "ttft_ms", "endpoint_ms", "rtf")
LEAST_LABEL = 12
"""Narrowest that a column gets for the sake of its peer's name; longer names go on below themselves."""

Peer = tuple[str, dict[str, Figure]]


def print_comparison(console: Console, summaries: list[tuple[str, dict[str, Any]]]) -> None:
    """Print p50 and its 95 % interval of each peer, then each peer's turns by status.

    summaries: (label, `summary.json`), in the order to show. Peers without room beside the others follow in a table
    of their own.
    """
    peers = [(plain(label), _figures(summary)) for label, summary in summaries]
    names = [name for name in COMPARED if any(name in found for _, found in peers)]
    if names:
        console.print(Text("Side by side: p50 and its 95 % interval", style="bold"))
    rest = peers if names else []
    while rest:
        count, table = _widest(console, names, rest)
        console.print(table)
        rest = rest[count:]
        if rest:
            console.print()
    for label, summary in summaries:
        _print_statuses(console, plain(label), summary)


def _figures(summary: dict[str, Any]) -> dict[str, Figure]:
    found = figures(summary.get("metrics") or {})
    return {figure.metric.name: figure for figure in found if figure.n and figure.metric.name in COMPARED}


def _widest(console: Console, names: Sequence[str], peers: Sequence[Peer]) -> tuple[int, Table]:
    """As many of the peers as fit, and their table: the interval beside the p50 where there is room, else below it."""
    for count in range(len(peers), 0, -1):
        for joint in (" ", "\n"):
            table = _table(console, names, peers[:count], joint)
            if natural_width(console, table) <= console.width:
                return count, table
    return 1, _table(console, names, peers[:1], "\n")


def _table(console: Console, names: Sequence[str], peers: Sequence[Peer], joint: str) -> Table:
    cells = [[_cell(found.get(name), joint) for name in names] for _, found in peers]
    widths = [max([LEAST_LABEL, *(cell_len(line) for cell in column for line in cell.split("\n"))]) for column in cells]
    spare = console.width - max(map(len, names)) - sum(width + 2 for width in widths)
    for index, (label, _) in enumerate(peers):
        more = min(max(0, spare), max(0, cell_len(label) - widths[index]))
        widths[index] += more
        spare -= more
    table = plain_table()
    table.add_column("metric", no_wrap=True)
    for (label, _), width in zip(peers, widths, strict=True):
        table.add_column(_broken(label, width), justify="right", width=width, overflow="fold")
    for index, name in enumerate(names):
        table.add_row(name, *(Text(column[index]) for column in cells))
    return table


def _cell(figure: Figure | None, joint: str) -> str:
    if figure is None:
        return DASH
    p50 = figure.show(figure.p50)
    return p50 if "p50" not in figure.intervals else f"{p50}{joint}({figure.interval()})"


def _broken(label: str, width: int) -> Text:
    """The label in lines of at most `width`, broken after a separator where one is near."""
    lines = [""]
    for piece in _pieces(label):
        if lines[-1] and cell_len(lines[-1] + piece) > width:
            lines.append("")
        lines[-1] += piece
    return Text("\n".join(line.strip() for line in lines))


def _pieces(label: str) -> list[str]:
    pieces = [""]
    for character in label:
        pieces[-1] += character
        if character in "-_/:.?&= ":
            pieces.append("")
    return [piece for piece in pieces if piece]


def _print_statuses(console: Console, label: str, summary: dict[str, Any]) -> None:
    seen = overview(summary, [])
    line = Text(label, style="bold", overflow="fold")
    line.append(f": {seen.turns} turns", style="not bold")
    for index, (status, count) in enumerate(seen.statuses):
        line.append(", " if index else ": ", style="not bold")
        line.append(f"{count} {status}", style="not bold green" if status == "ok" else "not bold red")
    console.print(line)
