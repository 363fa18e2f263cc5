"""Rows of JSON files as the benchmarks and their users write them: one array, or one object a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from harness.core.errors import ConfigError

Row = dict[str, Any]


class Placed(NamedTuple):
    """A row, and the words for where it stands: `line 3`, `entry 7`."""

    place: str
    row: Row


def read_rows(path: Path) -> list[Placed]:
    """Every row of a file. Raises ConfigError, one line: no file, half-written, no objects, not UTF-8."""
    data = read_bytes(path)
    if not data.strip():
        raise ConfigError(f"{path}: empty file")
    found = _array(path, data) if data.lstrip()[:1] == b"[" else _lines(path, data)
    if not found:
        raise ConfigError(f"{path}: an empty list")
    for place, row in found:
        if not isinstance(row, dict):
            raise ConfigError(f"{path}, {place}: a {type(row).__name__}, not an object")
    return found


def read_bytes(path: Path) -> bytes:
    """A file whole, without a byte order mark. Raises ConfigError."""
    try:
        return path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read ({exc.strerror or exc})") from exc


def _array(path: Path, data: bytes) -> list[Placed]:
    rows = _decode(path, "", data)
    return [Placed(f"entry {number}", row) for number, row in enumerate(rows, start=1)]


def _lines(path: Path, data: bytes) -> list[Placed]:
    return [
        Placed(f"line {number}", _decode(path, f", line {number}", line))
        for number, line in enumerate(data.split(b"\n"), start=1)
        if line.strip()
    ]


def _decode(path: Path, place: str, data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        said = str(exc)
        what = "half-written, its end is missing" if "truncated" in said else f"no JSON ({said})"
        raise ConfigError(f"{path}{place}: {what}: fetch or write it again") from exc
