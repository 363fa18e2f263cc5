"""A run directory: `run.json`, `sessions/`, `noise.jsonl`, `metrics.jsonl`, `summary.json`, `scores.jsonl`,
`report.html`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.core.errors import SessionFormatError
from harness.core.session.reader import Session, load_session, session_paths

RUN_SCHEMA = 1


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
    """Paths of one run and its small files; sessions are read one at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sessions = path / "sessions"
        self.report = path / "report.html"

    def exists(self) -> bool:
        return (self.path / "run.json").is_file()

    def info(self) -> RunInfo:
        """Read `run.json`. Raises SessionFormatError."""
        try:
            return msgspec.json.decode((self.path / "run.json").read_bytes(), type=RunInfo)
        except FileNotFoundError as exc:
            raise SessionFormatError(f"{self.path}: no run.json, so this is not a run directory") from exc
        except (OSError, msgspec.DecodeError) as exc:
            raise SessionFormatError(f"{self.path}/run.json: {exc}") from exc

    def write_info(self, info: RunInfo) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
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
        self._write(name, msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")

    def write_lines(self, name: str, rows: Iterable[Any]) -> None:
        """Write a JSON-lines file atomically."""
        self._write(name, b"".join(msgspec.json.encode(row) + b"\n" for row in rows))

    def append_line(self, name: str, row: Any) -> None:
        """Add one line to a JSON-lines file."""
        with (self.path / name).open("ab") as file:
            file.write(msgspec.json.encode(row) + b"\n")

    def read_lines(self, name: str) -> list[dict[str, Any]]:
        """Read a JSON-lines file; empty when there is none. Raises SessionFormatError."""
        path = self.path / name
        try:
            lines = path.read_bytes().splitlines() if path.exists() else []
            return [msgspec.json.decode(line, type=dict[str, Any]) for line in lines]
        except (OSError, msgspec.DecodeError) as exc:
            raise SessionFormatError(f"{path}: {exc}") from exc

    def read_json(self, name: str) -> dict[str, Any] | None:
        """Read a JSON object; None when there is no such file. Raises SessionFormatError."""
        path = self.path / name
        try:
            return msgspec.json.decode(path.read_bytes(), type=dict[str, Any]) if path.exists() else None
        except (OSError, msgspec.DecodeError) as exc:
            raise SessionFormatError(f"{path}: {exc}") from exc

    def _write(self, name: str, data: bytes) -> None:
        path = self.path / name
        temporary = path.with_name(path.name + ".tmp")
        temporary.write_bytes(data)
        temporary.replace(path)


def slug(text: str) -> str:
    """A name for files and directories: ASCII letters, digits, dot, dash and underscore, at most 60 characters."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:60] or "peer"
