"""Everything that can be computed from a run's disk, computed again and compared with what stands there."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.core.plugins import SCORERS, load
from harness.core.run_directory import RunDirectory
from harness.core.scorer import Scored, Scorer

TIMING = "timing"


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One value that came out otherwise than it stands on disk."""

    where: str
    stored: Any
    now: Any


def score(run: RunDirectory, name: str = TIMING) -> Scored:
    """Run a scorer over a run directory. Raises ScoringError or SessionFormatError."""
    scorer: Scorer = load(SCORERS, name)()
    return scorer.score(run)


def write_scores(run: RunDirectory, scored: Scored) -> None:
    """Put the timing rows and their summary into the run directory."""
    run.write_lines("metrics.jsonl", scored.rows)
    run.write_json("summary.json", scored.summary)


def differences(run: RunDirectory, scored: Scored) -> list[Difference]:
    """What differs between `scored` and the run's `metrics.jsonl` and `summary.json`; empty means bit for bit equal.

    Files that do not exist count as no difference.
    """
    found: list[Difference] = []
    rows = run.read_lines("metrics.jsonl")
    if rows:
        _compare(rows, _plain(scored.rows), "metrics.jsonl", found)
    summary = run.read_json("summary.json")
    if summary is not None:
        _compare(summary, _plain(scored.summary), "summary.json", found)
    return found


def _plain(value: Any) -> Any:
    """As it would be read back from disk."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _compare(stored: Any, now: Any, where: str, found: list[Difference]) -> None:
    if isinstance(stored, dict) and isinstance(now, dict):
        for key in [*stored, *(key for key in now if key not in stored)]:
            _compare(stored.get(key), now.get(key), f"{where}.{key}", found)
    elif isinstance(stored, list) and isinstance(now, list) and len(stored) == len(now):
        for index, (old, new) in enumerate(zip(stored, now, strict=True)):
            _compare(old, new, f"{where}[{index}]", found)
    elif stored != now:
        found.append(Difference(where=where, stored=stored, now=now))
