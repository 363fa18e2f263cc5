"""Rows as a Parquet file (extra `parquet`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from harness.core.errors import ConfigError
from harness.core.run_directory import RunInfo
from harness.engines.extras import require
from harness.report.exports.rows import Flat, Scalar

_INT64 = 2**63
"""A peer may count its tokens beyond that."""


def write_parquet(flat: Flat, file: Path, info: RunInfo) -> None:
    """A column is boolean, int64, float64 or text by its values. Peer, suite and version stand in the file's metadata.

    Raises PrerequisiteError without the extra, ConfigError where the file cannot be written.
    """
    pyarrow = require("pyarrow", "parquet")
    parquet = require("pyarrow.parquet", "parquet")
    columns = {name: _column([row.get(name) for row in flat.rows], pyarrow) for name in flat.columns}
    told = {"peer": info.peer, "suite": info.suite, "created": info.created, "version": info.firstpacket}
    table = pyarrow.table(columns).replace_schema_metadata({f"firstpacket.{key}": value for key, value in told.items()})
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(table, file)
    except OSError as exc:
        raise ConfigError(f"{file}: cannot be written ({exc.strerror or exc})") from exc


def _column(values: list[Scalar], pyarrow: Any) -> Any:
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {bool}:
        return pyarrow.array(values, pyarrow.bool_())
    if kinds == {int} and all(isinstance(value, int) and abs(value) < _INT64 for value in values if value is not None):
        return pyarrow.array(values, pyarrow.int64())
    if kinds <= {int, float}:
        return pyarrow.array([value if value is None else float(value) for value in values], pyarrow.float64())
    return pyarrow.array([_text(value) for value in values], pyarrow.string())


def _text(value: Scalar) -> str | None:
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()
