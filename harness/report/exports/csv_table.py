"""Rows as CSV (RFC 4180, UTF-8), safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io

from harness.report.exports.rows import Flat, Scalar

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Beginnings, full-width ones too, that make a spreadsheet run a cell; a peer's words may have them, after blanks
(OWASP, CSV injection)."""


def csv_text(flat: Flat) -> str:
    """A heading and a line a row; a missing figure is an empty cell. Texts lose their control characters, and those
    that a spreadsheet would take for a formula get an apostrophe before them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(flat.columns)
    writer.writerows([_cell(row.get(name)) for name in flat.columns] for row in flat.rows)
    return out.getvalue()


def _cell(value: Scalar) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return repr(value)
    text = "".join(char for char in value if char.isprintable() or char == "\n")
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text
