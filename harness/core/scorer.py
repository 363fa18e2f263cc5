"""What a scorer is: a pure function of recorded sessions, found through entry points."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from harness.core.run_directory import RunDirectory


class Unscored(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that does not exist, and why. Never 0, never NaN."""

    reason: str


class Scored(msgspec.Struct, frozen=True, kw_only=True):
    """What a scorer made of a run: one row a turn, and the summary."""

    rows: list[dict[str, Any]]
    summary: dict[str, Any]


class Scorer(Protocol):
    """Entry point group `firstpacket.scorers`."""

    name: str
    version: int

    def score(self, run: RunDirectory) -> Scored:
        """Compute everything from disk. Raises ScoringError or SessionFormatError."""
        ...
