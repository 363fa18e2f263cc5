"""Several peers beside each other in a terminal: a row a figure, a column a peer, as many columns as there is room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.report.grid import natural_width, plain_table

LEAST_LABEL = 12
"""Narrowest that a column gets for the sake of its peer's name; longer names go on below themselves."""
JOINTS = (" ", "\n")
"""What parts of a cell stand beside each other where there is room, else below."""


class Beside(NamedTuple):
    """A column. cells: one a row, each in parts (a figure, its interval). dim: rows that are grey."""

    label: str
    cells: tuple[tuple[str, ...], ...]
    dim: frozenset[int] = frozenset()


def print_side_by_side(console: Console, rows: Sequence[str], columns: Sequence[Beside]) -> None:
    """Print the columns; those without room beside the others follow in a table of their own."""
    rest = columns
    while rest:
        count, table = _widest(console, rows, rest)
        console.print(table)
        rest = rest[count:]
        if rest:
            console.print()


def _widest(console: Console, rows: Sequence[str], columns: Sequence[Beside]) -> tuple[int, Table]:
    """As many of the columns as fit, and their table."""
    for count in range(len(columns), 0, -1):
        for joint in JOINTS:
            table = _table(console, rows, columns[:count], joint)
            if natural_width(console, table) <= console.width:
                return count, table
    return 1, _table(console, rows, columns[:1], JOINTS[-1])


def _table(console: Console, rows: Sequence[str], columns: Sequence[Beside], joint: str) -> Table:
    cells = [[joint.join(parts) for parts in column.cells] for column in columns]
    widths = [max([LEAST_LABEL, *(cell_len(line) for cell in column for line in cell.split("\n"))]) for column in cells]
    spare = console.width - max(map(cell_len, rows)) - sum(width + 2 for width in widths)
    for index, column in enumerate(columns):
        more = min(max(0, spare), max(0, cell_len(column.label) - widths[index]))
        widths[index] += more
        spare -= more
    table = plain_table()
    table.add_column("metric", no_wrap=True)
    for column, width in zip(columns, widths, strict=True):
        table.add_column(_broken(column.label, width), justify="right", width=width, overflow="fold")
    for index, name in enumerate(rows):
        shown = (
            Text(texts[index], style="dim" if index in column.dim else "")
            for column, texts in zip(columns, cells, strict=True)
        )
        table.add_row(name, *shown)
    return table


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
