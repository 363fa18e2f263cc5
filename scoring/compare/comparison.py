"""Two runs compared: whether they may be, their figures, and what a reader must know of each."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.core.errors import ConfigError
from scoring.compare.clashes import circumstances, clashes
from scoring.compare.figures import Figure, figures, joined
from scoring.compare.pairing import Pairs
from scoring.compare.run import Run

NAMED = 8
"""Clashes that a refusal names."""
_ROWS = {"timing": "turns", "duplex": "events", "scores": "items"}


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """`other` against `base`. forced: what would have forbidden it. circumstances: what else differs. unpaired: rows
    without a partner, by kind, as (of base, of other). alone: kinds that are compared unpaired. overall: of both, by
    the formula of the benchmark that both were scored by; it has no interval."""

    base: dict[str, Any]
    other: dict[str, Any]
    figures: list[Figure]
    forced: list[str]
    circumstances: list[str]
    unpaired: dict[str, tuple[int, int]]
    alone: list[str]
    overall: tuple[float, float] | None = None


def compare(base: Run, other: Run, *, force: bool = False) -> Comparison:
    """Raises ConfigError naming every clash unless `force`, and where the runs have nothing in common."""
    found = [str(clash) for clash in clashes(base, other)]
    if found and not force:
        more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
        raise ConfigError(
            f"{base.label} and {other.label} were not measured alike: {'; '.join(found[:NAMED])}{more}; "
            "--force compares them nevertheless"
        )
    shown = figures(base, other)
    if not shown:
        raise ConfigError(f"{base.label} and {other.label}: no figure that both runs have")
    rows = {
        kind: joined(base, other, scorer)
        for scorer, kind in _ROWS.items()
        if scorer in base.stored and scorer in other.stored
    }
    return Comparison(
        base=marks(base),
        other=marks(other),
        figures=shown,
        forced=found,
        circumstances=[str(each) for each in circumstances(base, other)],
        unpaired={kind: lost for kind, each in rows.items() if each.possible and any(lost := _lost(each))},
        alone=[kind for kind, each in rows.items() if not each.possible and each.base and each.other],
        overall=_overall(base.summary("scores"), other.summary("scores")),
    )


def marks(run: Run) -> dict[str, Any]:
    """What to hold against a run: failed and tainted turns, random weights, a noisy machine, what is missing."""
    timing = run.summary("timing")
    harness: dict[str, Any] = timing.get("harness") or {}
    noise: dict[str, Any] = harness.get("noise") or {}
    return {
        "run": str(run.path),
        "label": run.label,
        "mode": timing.get("mode", ""),
        "turns": timing.get("turns", 0),
        "failed": timing.get("failed", 0),
        "tainted": harness.get("tainted", 0),
        "error_ms_p50": (harness.get("error_ms") or {}).get("p50"),
        "quiet": noise.get("quiet"),
        "missing_sessions": timing.get("missing_sessions", 0),
        "random_weights": list(run.random_weights),
    }


def _overall(base: dict[str, Any], other: dict[str, Any]) -> tuple[float, float] | None:
    if base.get("benchmark") != other.get("benchmark"):
        return None
    first, second = ((side.get("overall") or {}).get("value") for side in (base, other))
    return None if first is None or second is None else (float(first), float(second))


def _lost(joined: Pairs) -> tuple[int, int]:
    count = len(joined.pairs)
    return len(joined.base) - count, len(joined.other) - count
