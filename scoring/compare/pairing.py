"""Which rows of two runs belong together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

Row = Mapping[str, Any]
_NUMBER = re.compile(r"^\d+-")
"""What a plan puts before the name of a session's query or scenario."""


class Key(NamedTuple):
    """cluster: what the row's values depend on beside the peer (query, scenario, item). place: which row of these."""

    cluster: str
    place: tuple[Any, ...]


class Paired(NamedTuple):
    base: Row
    other: Row
    cluster: str


class Pairs(NamedTuple):
    """possible: whether most rows of the shorter run have a partner; else the two are compared unpaired."""

    pairs: list[Paired]
    base: list[tuple[Row, str]]
    other: list[tuple[Row, str]]
    possible: bool


def pair(base: Iterable[Row], other: Iterable[Row], keys: Callable[[Iterable[Row]], list[tuple[Key, Row]]]) -> Pairs:
    """Join rows by key. base, other: all rows of each run with their clusters."""
    first, second = keys(base), keys(other)
    known = dict(second)
    pairs = [Paired(row, known[key], key.cluster) for key, row in first if key in known]
    return Pairs(
        pairs=pairs,
        base=[(row, key.cluster) for key, row in first],
        other=[(row, key.cluster) for key, row in second],
        possible=2 * len(pairs) >= min(len(first), len(second)) > 0,
    )


def apart(base: Iterable[tuple[Key, Row]], other: Iterable[tuple[Key, Row]], *, free: tuple[bool, bool]) -> Pairs:
    """Rows of which none has a partner. free: in which of the runs each row is a cluster of its own."""
    sides = [
        [(row, str(number) if alone else key.cluster) for number, (key, row) in enumerate(keyed)]
        for keyed, alone in zip((base, other), free, strict=True)
    ]
    return Pairs(pairs=[], base=sides[0], other=sides[1], possible=False)


def turn_keys(rows: Iterable[Row]) -> list[tuple[Key, Row]]:
    """A query's n-th saying within a repeat of the run; turns that were left out without fault count for nothing."""
    found, seen = [], Counter[tuple[str, int]]()
    for row in rows:
        if row["status"] == "not_run" and not row.get("failed"):
            continue
        query, repeat = str(row["query"]), int(row.get("repeat") or 0)
        found.append((Key(query, (repeat, seen[query, repeat])), row))
        seen[query, repeat] += 1
    return found


def event_keys(rows: Iterable[Row]) -> list[tuple[Key, Row]]:
    """An event of a scenario in one of its repeats."""
    found = []
    for row in rows:
        scenario = _NUMBER.sub("", str(row["session"]))
        found.append((Key(scenario, (int(row.get("repeat") or 0), str(row["event"]))), row))
    return found


def item_keys(rows: Iterable[Row]) -> list[tuple[Key, Row]]:
    """A benchmark's item, said the n-th time."""
    found, seen = [], Counter[str]()
    for row in rows:
        item = f"{row['subset']}/{row['qid']}"
        found.append((Key(item, (seen[item],)), row))
        seen[item] += 1
    return found
