"""A run's rows as one flat table: a line a turn, an event of a conversation, or an item of a benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from harness.core.errors import ConfigError
from harness.core.run_directory import RunDirectory
from harness.report.redaction import redact

FILES = {"timing": "metrics.jsonl", "duplex": "duplex.jsonl", "scores": "scores.jsonl"}
"""By kind of rows: where they stand. Timing: turns; duplex: events; scores: items."""
KEPT_WHOLE = frozenset({"reasons", "unscored", "anchor_events"})
"""Objects that stay one JSON text; the others become a column for each key (`anchors.first_packet`)."""

Scalar = bool | int | float | str | None


class Flat(NamedTuple):
    """columns in the order in which the rows bring them up; rows lack keys where they have no such column."""

    columns: tuple[str, ...]
    rows: list[dict[str, Scalar]]


def flat_rows(run: RunDirectory, kind: str = "") -> Flat:
    """Every row of a run, warm-ups too, without secrets. kind: the first of `FILES` that the run has, if none is named.

    Raises ConfigError for a run without such rows, SessionFormatError for what is no run or is damaged.
    """
    run.info()
    for name, file in FILES.items():
        if kind in ("", name) and (rows := run.read_lines(file)):
            return _flat(redact(rows))
    what = f"no {FILES[kind]}" if kind else "no rows"
    raise ConfigError(f"{run.path}: {what} in it; `firstpacket replay {run.path} --write` scores it")


def _flat(rows: Iterable[Mapping[str, Any]]) -> Flat:
    found = [dict(_leaves(row)) for row in rows]
    return Flat(tuple(dict.fromkeys(name for row in found for name in row)), found)


def _leaves(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Scalar]]:
    for key, inner in value.items():
        name = f"{above}.{key}" if above else str(key)
        if isinstance(inner, Mapping) and key not in KEPT_WHOLE:
            yield from _leaves(inner, name)
        elif isinstance(inner, Mapping | list):
            yield name, msgspec.json.encode(inner).decode() if inner else None
        else:
            yield name, inner
