"""Where what is computed differs from what stands in a run directory.

Equal means the same bytes: what would be written is what stands on disk. The comparison of values only says where.
"""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from harness.core.errors import SessionFormatError
from harness.core.run_directory import RunDirectory, json_bytes, lines_bytes
from harness.core.scorer import Scored

LINE_CHARS = 160
"""Longest line about one difference."""
_WHERE_CHARS, _SAID_CHARS, _NAMED = 64, 92, 3
_short = reprlib.Repr()
_short.maxlevel, _short.maxdict, _short.maxlist, _short.maxstring, _short.maxother = 2, 2, 2, 34, 34


class Kept(msgspec.Struct, frozen=True):
    """Files of a run directory in which a scorer's figures stand."""

    rows: str
    summary: str


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that came out otherwise than it stands on disk. said: how, in a few words."""

    where: str
    said: str

    def line(self) -> str:
        """For a person, at most `LINE_CHARS` characters."""
        return f"{_cut(self.where, _WHERE_CHARS)}: {_cut(self.said, _SAID_CHARS)}"


def differences_in(run: RunDirectory, scored: Scored, kept: Kept) -> list[Difference]:
    """What differs between `scored` and the files `kept`; empty means the same bytes."""
    return [*_rows(run, scored, kept.rows), *_summary(run, scored, kept.summary)]


def _rows(run: RunDirectory, scored: Scored, name: str) -> list[Difference]:
    stored, now = run.read_bytes(name), lines_bytes(scored.rows)
    if stored == now:
        return []
    if stored is None:
        return [Difference(where=name, said=f"is missing, {len(scored.rows)} rows computed")]
    try:
        rows = run.read_lines(name)
    except SessionFormatError:
        return [Difference(where=name, said="cannot be read")]
    computed = _plain(scored.rows)
    before, after = _sessions(rows), _sessions(computed)
    found: list[Difference] = []
    if before == after:
        _compare(rows, computed, name, found)
    else:
        found = [Difference(where=name, said=said) for said in _other_rows(before, after)]
    return found or [_bytes_differ(name, stored, now)]


def _summary(run: RunDirectory, scored: Scored, name: str) -> list[Difference]:
    stored, now = run.read_bytes(name), json_bytes(scored.summary)
    if stored == now:
        return []
    if stored is None:
        return [Difference(where=name, said="is missing")]
    try:
        summary = run.read_json(name)
    except SessionFormatError:
        return [Difference(where=name, said="cannot be read")]
    found: list[Difference] = []
    _compare(summary, _plain(scored.summary), name, found)
    return found or [_bytes_differ(name, stored, now)]


def _plain(value: Any) -> Any:
    """As it would be read back from disk."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _sessions(rows: list[dict[str, Any]]) -> list[str]:
    """The session id of each row."""
    return [str(row.get("session")) for row in rows]


def _other_rows(before: list[str], after: list[str]) -> Iterator[str]:
    """How the rows' sessions differ: how many, and which are not there any more or new."""
    yield f"{len(before)} rows stored, {len(after)} computed"
    known, made = Counter(before), Counter(after)
    missing, new = [name for name in known if name not in made], [name for name in made if name not in known]
    if missing:
        yield f"not computed any more: {_names(missing)}"
    if new:
        yield f"not stored: {_names(new)}"
    other = [name for name in known if name in made and known[name] != made[name]]
    if other:
        yield f"another number of rows: {_names(other)}"
    if not (missing or new or other):
        yield "the same sessions in another order"


def _names(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(_cut(repr(name)[1:-1], 20) for name in names[:_NAMED]) + more


def _compare(stored: Any, now: Any, where: str, found: list[Difference]) -> None:
    """Collect where two values from JSON differ; 1, 1.0 and true are three values, 0.0 and -0.0 two."""
    if isinstance(stored, dict) and isinstance(now, dict):
        for key in [*stored, *(key for key in now if key not in stored)]:
            place = f"{where}.{key if key.isprintable() else repr(key)}"
            if key not in now:
                found.append(Difference(where=place, said=f"stored {_short.repr(stored[key])}, not computed"))
            elif key not in stored:
                found.append(Difference(where=place, said=f"not stored, computed {_short.repr(now[key])}"))
            else:
                _compare(stored[key], now[key], place, found)
    elif isinstance(stored, list) and isinstance(now, list):
        if len(stored) != len(now):
            found.append(Difference(where=where, said=f"{len(stored)} items stored, {len(now)} computed"))
            return
        for index, (old, new) in enumerate(zip(stored, now, strict=True)):
            _compare(old, new, f"{where}[{index}]", found)
    elif type(stored) is not type(now) or stored != now or repr(stored) != repr(now):
        found.append(Difference(where=where, said=f"stored {_short.repr(stored)}, computed {_short.repr(now)}"))


def _bytes_differ(name: str, stored: bytes, now: bytes) -> Difference:
    """The values are the same, the bytes are not: another order of keys, another way of writing a number."""
    common = min(len(stored), len(now))
    at = next((index for index in range(common) if stored[index] != now[index]), common)
    line = stored.count(b"\n", 0, at) + 1
    return Difference(where=name, said=f"the same values in other bytes, from line {line} (byte {at}) on")


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 3] + "..."
