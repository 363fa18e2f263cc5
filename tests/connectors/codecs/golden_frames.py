"""Reads the golden frames, which were written by hand from the protocol sheet, and breaks one on purpose."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import msgspec

from harness.core.events import Event, Received

FOLDER = Path(__file__).parent / "golden"


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()]


def timeless(event: Event) -> Event:
    """The event without its arrival."""
    if isinstance(event, Received):
        return msgspec.structs.replace(event, t_ns=0, first_byte_ns=0, wire_bytes=0)
    return msgspec.structs.replace(event, t_ns=0)


def mutated(row: dict[str, Any]) -> dict[str, Any]:
    """The row's frame with its one mutation: a field renamed, dropped or set to something else."""
    frame = copy.deepcopy(row["frame"])
    *path, last = row["mutant"]["at"]
    holder = frame
    for key in path:
        holder = holder[key]
    value = holder.pop(last)
    if "rename" in row["mutant"]:
        holder[row["mutant"]["rename"]] = value
    elif "set" in row["mutant"]:
        holder[last] = row["mutant"]["set"]
    assert frame != row["frame"]
    return frame
