"""What a duplex metric is: a declaration and a pure function of one event in a conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from harness.core.audio import NS_PER_MS
from harness.core.scorer import Unscored
from scoring.duplex.floor import Floor
from scoring.duplex.spans import UserSpan


class Censored(msgspec.Struct, frozen=True, kw_only=True):
    """Listening ended before the outcome was known. at_least_ns: how long it had been going on (None: a yes or no)."""

    reason: str
    at_least_ns: int | None = None


Value = float | int | bool | Unscored | Censored


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """One event as metrics see it: user span `index` of the conversation that `floor` has worked out."""

    floor: Floor
    index: int

    @property
    def user(self) -> UserSpan:
        return self.floor.user[self.index]


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One column of the rows.

    version: bumped when the formula changes. statistic: what a panel's cell shows of it. direction: which way is
    better, if either. offset_sensitive: rests on where in the agent's speech the event fell, so events whose cue was
    late are left out of its cells.
    """

    name: str
    version: int
    unit: Literal["ms", "flag", "count"]
    direction: Literal["lower", "higher", "none"]
    statistic: Literal["median", "rate", "mean"]
    header: str
    compute: Callable[[Scene], Value]
    offset_sensitive: bool = False


def to_ms(duration_ns: int) -> float:
    """Milliseconds to 0.001: the nearest microsecond, halves to even."""
    return round(duration_ns, -3) / NS_PER_MS
