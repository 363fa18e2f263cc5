"""A run directory: `run.json`, `sessions/`, `noise.jsonl`, `metrics.jsonl`, `summary.json`, `scores.jsonl`,
`report.html`."""

from __future__ import annotations

import contextlib
import errno
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.core.errors import ConfigError, PrerequisiteError, SessionFormatError
from harness.core.session.reader import Session, load_session, session_paths

RUN_SCHEMA = 1
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT} if hasattr(errno, "EDQUOT") else {errno.ENOSPC})
_UNREADABLE = (OSError, ValueError, RecursionError)
"""What reading a damaged file raises; msgspec's errors are ValueErrors."""


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """`run.json`: what was asked for. config: every resolved option that a resumed run must share.

    planned: session ids in the order in which they are started. bench: how the command was called (no secrets).
    """

    schema: int = RUN_SCHEMA
    peer: str
    suite: str
    created: str
    firstpacket: str
    config: dict[str, Any]
    planned: tuple[str, ...] = ()
    calibration: dict[str, Any] | None = None


class RunDirectory:
    """Paths of one run and its small files; sessions are read one at a time.

    What cannot be written is a ConfigError, on a full disk a PrerequisiteError, with what to do.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sessions = path / "sessions"
        self.report = path / "report.html"

    def exists(self) -> bool:
        """Whether there is a `run.json`. Raises ConfigError for a directory that may not be looked into."""
        try:
            return (self.path / "run.json").is_file()
        except OSError as exc:
            raise _not_writable(self.path, exc) from exc

    def info(self) -> RunInfo:
        """Read `run.json`. Raises SessionFormatError."""
        try:
            return msgspec.json.decode((self.path / "run.json").read_bytes(), type=RunInfo)
        except FileNotFoundError as exc:
            inside = sorted(path.parent.name for path in self.path.glob("*/run.json"))
            several = f"; it holds some: {', '.join(inside[:9])}" if inside else ""
            raise SessionFormatError(f"{self.path}: no run.json, so this is not a run directory{several}") from exc
        except _UNREADABLE as exc:
            raise SessionFormatError(f"{self.path}/run.json: {exc}") from exc

    def write_info(self, info: RunInfo) -> None:
        """Make the directory and write `run.json`."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise _not_writable(self.path, exc) from exc
        self.write_json("run.json", info)

    def finished(self) -> list[str]:
        """Ids of the sessions that are whole."""
        return [path.name for path in session_paths(self.sessions)]

    def load(self) -> Iterator[Session]:
        """Every finished session: in planned order where `run.json` gives one, then by name."""
        paths = {path.name: path for path in session_paths(self.sessions)}
        planned = self.info().planned if self.exists() else ()
        ordered = list(dict.fromkeys([*(name for name in planned if name in paths), *paths]))
        return (load_session(paths[name]) for name in ordered)

    def write_json(self, name: str, value: Any) -> None:
        """Write an indented JSON file atomically."""
        self._write(name, json_bytes(value))

    def write_lines(self, name: str, rows: Iterable[Any]) -> None:
        """Write a JSON-lines file atomically."""
        self._write(name, lines_bytes(rows))

    def append_line(self, name: str, row: Any) -> None:
        """Add one line to a JSON-lines file. Raises OSError: whoever adds one beside a measurement goes on without."""
        with (self.path / name).open("ab") as file:
            file.write(msgspec.json.encode(row) + b"\n")

    def read_lines(self, name: str) -> list[dict[str, Any]]:
        """Read a JSON-lines file; empty when there is none. Raises SessionFormatError."""
        path = self.path / name
        try:
            lines = path.read_bytes().splitlines() if path.exists() else []
            return [msgspec.json.decode(line, type=dict[str, Any]) for line in lines]
        except _UNREADABLE as exc:
            raise SessionFormatError(f"{path}: {exc}") from exc

    def read_json(self, name: str) -> dict[str, Any] | None:
        """Read a JSON object; None when there is no such file. Raises SessionFormatError."""
        path = self.path / name
        try:
            return msgspec.json.decode(path.read_bytes(), type=dict[str, Any]) if path.exists() else None
        except _UNREADABLE as exc:
            raise SessionFormatError(f"{path}: {exc}") from exc

    def read_bytes(self, name: str) -> bytes | None:
        """A file as it stands; None when there is none. Raises SessionFormatError."""
        path = self.path / name
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise SessionFormatError(f"{path}: {exc}") from exc

    def _write(self, name: str, data: bytes) -> None:
        path = self.path / name
        temporary = path.with_name(path.name + ".tmp")
        try:
            temporary.write_bytes(data)
            temporary.replace(path)
        except OSError as exc:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise _not_writable(path, exc) from exc


def json_bytes(value: Any) -> bytes:
    """What `write_json` writes."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def lines_bytes(rows: Iterable[Any]) -> bytes:
    """What `write_lines` writes."""
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


def _not_writable(path: Path, exc: OSError) -> ConfigError | PrerequisiteError:
    why = exc.strerror or type(exc).__name__
    if exc.errno in _FULL:
        return PrerequisiteError(f"{path}: cannot be written ({why}): free some space, or choose another --out")
    return ConfigError(f"{path}: cannot be written ({why}): choose another --out, or a directory that you may write to")


SLUG_CHARS, SLUG_BYTES = 60, 200


def slug(text: str) -> str:
    """A name for files and directories: letters and digits of any script, dot, dash and underscore; at most 60
    characters and 200 bytes, no dot or dash at either end.

    >>> slug("ws://host/我的 录音")
    'ws-host-我的-录音'
    """
    name = ""
    for char in unicodedata.normalize("NFC", text):
        if char in "._-" or unicodedata.category(char)[0] in "LN" or (name and unicodedata.category(char)[0] == "M"):
            name += char
        elif not name.endswith("-"):
            name += "-"
    name = name.strip("-.")[:SLUG_CHARS].encode()[:SLUG_BYTES].decode(errors="ignore")
    return name.rstrip("-.") or "peer"
