"""The Hugging Face form of a data set: parquet files whose `audio` column holds the sound (extra `benchmarks`)."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from harness.core.errors import ConfigError
from harness.engines.extras import require
from scenarios.benchmarks.rows import Row

AUDIO_COLUMN = "audio"


class ParquetRow(NamedTuple):
    """A row without its sound, and where that lies. sound: file name that the row gives it; empty where it has none."""

    row: Row
    group: int
    offset: int
    sound: str


def parquet_files(data: Path) -> list[Path]:
    """All parquet files below `data`, by name."""
    return sorted(data.rglob("*.parquet"))


def read_parquet(path: Path) -> Iterator[ParquetRow]:
    """The rows of a file in order; no sound is read. Raises ConfigError for a damaged file, PrerequisiteError."""
    file = _opened(path)
    names = file.schema_arrow.names
    columns = [name for name in names if name != AUDIO_COLUMN]
    inner = [f"{AUDIO_COLUMN}.path"] if AUDIO_COLUMN in names else []
    try:
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=columns + inner).to_pylist()
            for offset, row in enumerate(rows):
                sound = row.pop(AUDIO_COLUMN, None)
                name = str((sound or {}).get("path") or "") if isinstance(sound, dict) else ""
                yield ParquetRow(row, group, offset, name or (AUDIO_COLUMN if inner else ""))
    except (OSError, ValueError) as exc:
        raise _damaged(path, exc) from exc


def read_sound(path: Path, group: int, offset: int) -> bytes:
    """The sound file of one row, as it was put in. Raises ConfigError where there is none."""
    try:
        found = _sounds(path, group)[offset].as_py()
    except (OSError, ValueError) as exc:
        raise _damaged(path, exc) from exc
    data = (found or {}).get("bytes")
    if not data:
        raise ConfigError(f"{path}: row {offset + 1} of group {group + 1} holds no sound")
    return bytes(data)


@functools.lru_cache(maxsize=1)
def _sounds(path: Path, group: int) -> Any:
    """The sounds of one row group: queries are asked in order, so one is enough to keep."""
    return _opened(path).read_row_group(group, columns=[AUDIO_COLUMN]).column(AUDIO_COLUMN)


def _opened(path: Path) -> Any:
    pyarrow = require("pyarrow.parquet", "benchmarks")
    try:
        return pyarrow.ParquetFile(path)
    except (OSError, ValueError) as exc:
        raise _damaged(path, exc) from exc


def _damaged(path: Path, exc: Exception) -> ConfigError:
    return ConfigError(f"{path}: truncated or damaged ({' '.join(str(exc).split())[:200]}): fetch it again")
