"""What was computed once, by key, in a JSON-lines file that only grows: a run that was killed loses at most a line."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import Any, BinaryIO, Self

import msgspec

from harness.core.errors import ConfigError, PrerequisiteError


def key_of(*parts: Any) -> str:
    """One key for what a result depends on: audio hash, engine name, prompt, anything that JSON can hold."""
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


class StageCache:
    """`{"key": ..., "value": ...}` a line; the last line of a key counts. Not shared between processes.

    A line that was torn by a crash is left out, wherever it stands. Each line is flushed before `put` returns.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._values: dict[str, Any] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: BinaryIO = path.open("a+b")
            self._file.seek(0)
            data = self._file.read()
            for line in data.splitlines():
                self._take(line)
            if data and not data.endswith(b"\n"):
                self._file.write(b"\n")
        except OSError as exc:
            raise ConfigError(f"{path}: cannot be written ({exc.strerror or exc})") from exc

    def _take(self, line: bytes) -> None:
        try:
            row = msgspec.json.decode(line)
            self._values[row["key"]] = row["value"]
        except (msgspec.DecodeError, TypeError, KeyError, RecursionError):
            return

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def get(self, key: str) -> Any:
        """The value, or None."""
        return self._values.get(key)

    def put(self, key: str, value: Any) -> None:
        """Keep `value` (anything that JSON can hold). Raises PrerequisiteError when the disk takes no more."""
        line = msgspec.json.encode({"key": key, "value": value}) + b"\n"
        try:
            self._file.write(line)
            self._file.flush()
        except OSError as exc:
            raise PrerequisiteError(
                f"{self.path}: cannot be written ({exc.strerror or exc}): free some space and run the same command "
                "again; what is scored stays"
            ) from exc
        self._values[key] = msgspec.json.decode(line)["value"]

    def close(self) -> None:
        """What is still to be written then has failed in `put` already, which said so."""
        with contextlib.suppress(OSError):
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
