"""What a peer may say at most: numbers that every record can carry, ids of a sensible length, objects of some depth."""

from __future__ import annotations

from typing import Any

INT64_LIMIT = 2**63
"""Integers lie in [-INT64_LIMIT, INT64_LIMIT); msgpack, JSON readers and numpy all carry those."""
NAME_LIMIT = 256
"""Characters of an id, a name or a code; the rest is cut off."""
DEPTH_LIMIT = 32
"""Levels of nested objects that are kept."""
REMEMBERED = 1_000
"""Unfinished things of one kind (streams of audio, names of tool calls) that are kept at most: the oldest go first."""


def name(text: str | None) -> str:
    """An id, a name or a code as a peer gave it, at most `NAME_LIMIT` characters; empty for none."""
    return (text or "")[:NAME_LIMIT]


def whole(value: float | None) -> int | None:
    """`value` cut to an integer; None for none, for what is not finite and for what 64 bits do not hold."""
    if value is None or not -INT64_LIMIT <= value < INT64_LIMIT:
        return None
    return int(value)


def carried(value: Any, depth: int = DEPTH_LIMIT) -> Any:
    """A JSON value of a peer with every number out of range as a string, and nothing below `depth` levels."""
    if isinstance(value, int | float):
        return value if -INT64_LIMIT <= value < INT64_LIMIT else str(value)
    if isinstance(value, dict):
        return {key: carried(inner, depth - 1) for key, inner in value.items()} if depth else "..."
    if isinstance(value, list):
        return [carried(inner, depth - 1) for inner in value] if depth else "..."
    return value


def make_room(kept: dict[Any, Any]) -> None:
    """Drop the oldest of `kept` where there is no room for another."""
    if len(kept) >= REMEMBERED:
        del kept[next(iter(kept))]
