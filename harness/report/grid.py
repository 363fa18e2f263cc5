"""Tables that fit the terminal: a narrow one loses whole columns, and what is shown is never cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

UNBOUNDED = 10_000

Cell = str | Text
Row = tuple[Sequence[Cell], str]
"""The cells of one row, one a column, and its style."""


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """rank: 0 always stays; of the others the greatest is left out first. left: text, which may go on below itself."""

    heading: str
    rank: int = 0
    left: bool = False


class Fitted(msgspec.Struct, frozen=True, kw_only=True):
    """left_out: headings of the columns that had no room."""

    table: Table
    left_out: tuple[str, ...]


def fit(console: Console, columns: Sequence[Column], rows: Sequence[Row]) -> Fitted:
    """The table with as many columns as the console has room for."""
    kept = list(range(len(columns)))
    table = _table(columns, rows, kept)
    while natural_width(console, table) > console.width:
        spare = max(kept, key=lambda index: columns[index].rank)
        if not columns[spare].rank:
            break
        kept.remove(spare)
        table = _table(columns, rows, kept)
    left_out = tuple(column.heading.replace("\n", " ") for index, column in enumerate(columns) if index not in kept)
    return Fitted(table=table, left_out=left_out)


def natural_width(console: Console, table: Table) -> int:
    """Columns that the table takes when nothing in it is cut or wrapped."""
    return console.measure(table, options=console.options.update(width=UNBOUNDED)).maximum


def plain_table() -> Table:
    """An empty table in the one style that all of ours have: a rule under the headings, two blanks between columns."""
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", show_edge=False)


def print_blocks(console: Console, blocks: Iterable[tuple[Text, Sequence[Text]]]) -> None:
    """What a terminal too narrow for a table gets: a line for each title, with the lines that belong to it below.

    A single line that has room beside its title stands there.
    """
    for title, lines in blocks:
        if len(lines) == 1 and title.cell_len + lines[0].cell_len + 2 <= console.width:
            console.print(Text.assemble(title, "  ", lines[0]))
            continue
        console.print(title, overflow="fold")
        for line in lines:
            if line.plain:
                line.overflow = "fold"
                console.print(Padding(line, (0, 0, 0, 2), expand=False))


def _table(columns: Sequence[Column], rows: Sequence[Row], kept: Sequence[int]) -> Table:
    table = plain_table()
    for index in kept:
        column = columns[index]
        table.add_column(
            column.heading,
            justify="left" if column.left else "right",
            no_wrap=not column.left,
            overflow="fold",
        )
    for cells, style in rows:
        table.add_row(*(_text(cells[index]) for index in kept), style=style)
    return table


def _text(cell: Cell) -> Text:
    """Strings are not markup: square brackets in them are just that."""
    return cell if isinstance(cell, Text) else Text(cell)
