"""`import intervals FILE`: who speaks when, without sound, from JSON or CSV. All times are seconds.

JSON: {"user": [...], "agent": [...], "end_s": 30.0, "language": "en"}; an interval is [start, end] or an object with
`start`, `end` and, on the user's side, `kind`, `expect`, `category`, `text`, `id`. CSV: a header line with `side`,
`start`, `end` and any of the others. Without `end_s` the recording ends with its last interval, which is then censored.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
from pathlib import Path
from typing import Any, get_args

import msgspec

from harness.core.audio import NS_PER_S
from harness.core.errors import ConfigError, nearest
from scenarios.importers.sessions import Expect, Imported, Interval, Recording, UserSound, write_run
from scenarios.scenario import KINDS_OF_SPEECH

RATE_HZ = 48_000
LONGEST_S = 24 * 3600.0
KINDS = (*KINDS_OF_SPEECH, "noise", "other_speaker")
MARKS = "intervals"
_KEYS = ("start", "end", "kind", "expect", "category", "text", "id")
_TOP = ("user", "agent", "end_s", "language")
UNKNOWN = (
    "intervals only: no sound of either side, no send or arrival stamps",
    f"user instants lie on a grid of 1/{RATE_HZ} s",
)


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """One interval as it was written, and the place that an error about it names."""

    where: str
    start_s: float
    end_s: float
    rest: dict[str, str]


class _Table(msgspec.Struct, frozen=True, kw_only=True):
    user: list[_Row]
    agent: list[_Row]
    end_s: float | None = None
    language: str = ""


def import_intervals(file: Path, out: Path) -> Imported:
    """Write a run directory with one session. Raises ConfigError, one line with file and place, for what is wrong."""
    table = _csv(file) if file.suffix.lower() == ".csv" else _json(file)
    if not table.user and not table.agent:
        raise ConfigError(f"{file}: no intervals")
    last_s = max(row.end_s for row in [*table.user, *table.agent])
    if table.end_s is not None and table.end_s < last_s:
        raise ConfigError(f"{file}: end_s is {table.end_s:g}, an interval ends at {last_s:g}")
    recording = Recording(
        id=file.stem,
        sounds=_sounds(table.user),
        agent=_agent(table.agent),
        end_ns=_ns(last_s if table.end_s is None else table.end_s),
        user_rate_hz=RATE_HZ,
        agent_rate_hz=RATE_HZ,
        files=(file,),
        unknown=UNKNOWN if table.end_s is not None else (*UNKNOWN, "no end_s: the recording ends with an interval"),
        language=table.language,
    )
    return write_run([recording], out, form="intervals", source=file)


def _sounds(rows: list[_Row]) -> tuple[UserSound, ...]:
    sounds: dict[str, UserSound] = {}
    for number, row in enumerate(sorted(rows, key=lambda row: (row.start_s, row.end_s)), start=1):
        name = row.rest.get("id") or f"u{number}"
        if name in sounds:
            raise ConfigError(f"{row.where}: id {name!r} is used twice")
        kind, expect = row.rest.get("kind") or "turn", row.rest.get("expect") or ""
        if kind not in KINDS:
            raise ConfigError(f"{row.where}: kind {kind!r}; {nearest(kind, KINDS)}")
        if expect not in get_args(Expect):
            raise ConfigError(f"{row.where}: expect {expect!r}; {nearest(expect, [e for e in get_args(Expect) if e])}")
        start = round(row.start_s * RATE_HZ)
        sounds[name] = UserSound(
            id=name,
            start=start,
            end=max(start + 1, round(row.end_s * RATE_HZ)),
            kind=kind,
            expect=msgspec.convert(expect, Expect),
            category=row.rest.get("category", ""),
            text=row.rest.get("text", ""),
            marks=MARKS,
        )
    return tuple(sounds.values())


def _agent(rows: list[_Row]) -> tuple[Interval, ...]:
    ordered = sorted(rows, key=lambda row: row.start_s)
    for before, row in itertools.pairwise(ordered):
        if row.start_s < before.end_s:
            raise ConfigError(
                f"{row.where}: the agent already speaks there, from {before.start_s:g} to {before.end_s:g} s"
            )
    return tuple(Interval(_ns(row.start_s), _ns(row.end_s)) for row in ordered)


def _json(file: Path) -> _Table:
    try:
        raw = msgspec.json.decode(file.read_bytes())
    except OSError as exc:
        raise ConfigError(f"{file}: cannot be read ({exc.strerror or exc})") from exc
    except (msgspec.DecodeError, RecursionError) as exc:
        raise ConfigError(f"{file}: not JSON ({exc})") from exc
    if not isinstance(raw, dict):
        raise ConfigError(f'{file}: not an object like {{"user": [[0.5, 2.1]], "agent": [[2.6, 5.0]]}}')
    _check_keys(raw, _TOP, str(file))
    sides: dict[str, list[_Row]] = {}
    for side in ("user", "agent"):
        rows = raw.get(side, [])
        if not isinstance(rows, list):
            raise ConfigError(f"{file}: {side} is not a list of intervals")
        sides[side] = [_of_json(each, f"{file}: {side}[{index}]") for index, each in enumerate(rows)]
    end_s = raw.get("end_s")
    return _Table(
        user=sides["user"],
        agent=sides["agent"],
        end_s=None if end_s is None else _seconds(end_s, "end_s", str(file)),
        language=str(raw.get("language", "")),
    )


def _of_json(raw: Any, where: str) -> _Row:
    if isinstance(raw, list) and len(raw) == 2:
        raw = {"start": raw[0], "end": raw[1]}
    if not isinstance(raw, dict):
        raise ConfigError(f"{where}: an interval is [start, end] or an object with start and end, in seconds")
    _check_keys(raw, _KEYS, where)
    return _row(raw, where)


def _csv(file: Path) -> _Table:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as exc:
        raise ConfigError(f"{file}: cannot be read ({exc.strerror or exc})") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{file}: not UTF-8 text (byte {exc.start})") from exc
    reader = csv.DictReader(io.StringIO(text, newline=""))
    columns = [name.strip() for name in reader.fieldnames or ()]
    reader.fieldnames = columns
    for needed in ("side", "start", "end"):
        if needed not in columns:
            raise ConfigError(f"{file}:1: no column {needed!r}; the first line names side, start, end")
    _check_keys(dict.fromkeys(columns), ("side", *_KEYS), f"{file}:1")
    sides: dict[str, list[_Row]] = {"user": [], "agent": []}
    try:
        for raw in reader:
            where = f"{file}:{reader.line_num}"
            side = (raw.pop("side", None) or "").strip()
            if side not in sides:
                raise ConfigError(f"{where}: side {side!r} is neither user nor agent")
            if None in raw:
                raise ConfigError(f"{where}: more values than columns")
            sides[side].append(_row({key: value.strip() for key, value in raw.items() if value}, where))
    except csv.Error as exc:
        raise ConfigError(f"{file}:{reader.line_num}: {exc}") from exc
    return _Table(user=sides["user"], agent=sides["agent"])


def _row(raw: dict[str, Any], where: str) -> _Row:
    start_s, end_s = (_seconds(raw.get(key), key, where) for key in ("start", "end"))
    if end_s <= start_s:
        raise ConfigError(f"{where}: ends at {end_s:g} s, begins at {start_s:g} s")
    rest = {key: str(value).strip() for key, value in raw.items() if key not in ("start", "end")}
    return _Row(where=where, start_s=start_s, end_s=end_s, rest=rest)


def _seconds(value: Any, name: str, where: str) -> float:
    try:
        seconds = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        seconds = math.nan
    if not 0 <= seconds <= LONGEST_S:
        raise ConfigError(f"{where}: {name} is seconds from the start of the recording, not {value!r}")
    return seconds


def _check_keys(raw: dict[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in raw:
        if key not in known:
            raise ConfigError(f"{where}: unknown key {key!r}; {nearest(key, known)}")


def _ns(seconds: float) -> int:
    return round(seconds * NS_PER_S)
