"""The definitions table of a run as the page shows it: `definitions.json`, where it was kept. Computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from harness.report.definitions import figure, title_of
from harness.report.failure import plain
from harness.report.figure import DASH


class DefinedCell(msgspec.Struct, frozen=True, kw_only=True):
    """reason: why there is no figure, or why events are missing from it."""

    figure: str
    shown: str
    n: int
    missing: bool
    reason: str


class Defined(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    source: str
    says: str
    cells: tuple[DefinedCell, ...]
    notes: tuple[str, ...]


class DefinitionsTable(msgspec.Struct, frozen=True, kw_only=True):
    """sessions: what the figures are over, in words."""

    sessions: str
    rows: tuple[Defined, ...]


def definitions_of(table: Mapping[str, Any] | None) -> DefinitionsTable | None:
    """Read the table that `firstpacket definitions RUN --write` kept; None where there is none."""
    if not table:
        return None
    rows = tuple(
        Defined(
            name=plain(str(row["name"])),
            source=plain(str(row["source"])),
            says=plain(str(row["says"])),
            cells=tuple(_cell(cell) for cell in row["cells"]),
            notes=tuple(plain(str(note)) for note in row["notes"]),
        )
        for row in table["rows"]
    )
    return DefinitionsTable(sessions=title_of(table["sessions"]), rows=rows)


def _cell(cell: Mapping[str, Any]) -> DefinedCell:
    value, name = cell["value"], str(cell["figure"])
    missing = isinstance(value, Mapping)
    reasons = [f"without {count}: {reason}" for reason, count in cell["reasons"].items()]
    return DefinedCell(
        figure=plain(name),
        shown=DASH if missing else figure(name, float(value)),
        n=int(cell["n"]),
        missing=missing,
        reason=plain(str(value["reason"]) if missing else "; ".join(reasons)),
    )
