"""The figures of two runs beside each other, from their rows: turns, events of conversations, items of a benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import msgspec

from scoring.compare.difference import Difference, Question, Side, paired, unpaired
from scoring.compare.pairing import Pairs, Row, apart, event_keys, item_keys, pair, turn_keys
from scoring.compare.run import Run
from scoring.duplex.metrics import METRICS
from scoring.timing.metric import Metric
from scoring.timing.registry import all_metrics
from scoring.timing.summary import ANSWERED

FAILED = "failed"
ITEM_FIGURES: dict[str, tuple[str, Literal["lower", "higher"]]] = {
    **dict.fromkeys(("correct", "s2s_correct", "s2t_right", "s2s_right", "success", "refuse"), ("ratio", "higher")),
    **dict.fromkeys(("understood", "semantic_pass", "acoustic_pass"), ("ratio", "higher")),
    **dict.fromkeys(("score", "semantic_score", "acoustic_score", "relevance", "semantic", "mos"), ("", "higher")),
    **dict.fromkeys(("per", "wer"), ("ratio", "lower")),
}
"""Columns of a benchmark's rows (official profile) that are compared by their mean over items, and their unit."""
_KEYS = {"timing": turn_keys, "duplex": event_keys, "scores": item_keys}
_MS_PER = {"ms": 1.0, "s": 1000.0}


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of both runs. name: a metric; of a benchmark `<subset>.<column>`."""

    scorer: Literal["timing", "duplex", "scores"]
    name: str
    unit: str
    direction: Literal["lower", "higher", "none"]
    difference: Difference


Read = Callable[[Row], float | None]
"""A row's value; None where it has none."""


def figures(base: Run, other: Run) -> list[Figure]:
    """Every figure that at least one value of each run stands behind."""
    return [*_timing(base, other), *_duplex(base, other), *_scores(base, other)]


def joined(base: Run, other: Run, scorer: str) -> Pairs:
    """Rows of both runs with their partners; those of a live run have none."""
    keys = _KEYS[scorer]
    if not (base.free or other.free):
        return pair(base.rows(scorer), other.rows(scorer), keys)
    return apart(keys(base.rows(scorer)), keys(other.rows(scorer)), free=(base.free, other.free))


def _timing(base: Run, other: Run) -> Iterable[Figure]:
    turns = joined(base, other, "timing")
    error_ms = sum(_error_ms(run) for run in (base, other))
    for metric in all_metrics():
        if metric.unit in ("label", "flag") or metric.scope == "harness":
            continue
        question = Question(
            direction=metric.direction,
            resolution=error_ms / _MS_PER[metric.unit] if metric.unit in _MS_PER else 0.0,
        )
        rows = turns if metric.scope != "session" else _one_a_session(turns)
        found = compared(rows, _reader(metric), question)
        if found is not None:
            yield Figure(
                scorer="timing", name=metric.name, unit=metric.unit, direction=metric.direction, difference=found
            )
    failed = compared(turns, lambda row: float(bool(row.get("failed"))), Question(center="mean"))
    if failed is not None and (failed.base or failed.other):
        yield Figure(scorer="timing", name=FAILED, unit="ratio", direction="lower", difference=failed)


def _reader(metric: Metric) -> Read:
    def read(row: Row) -> float | None:
        value = row.get(metric.name)
        if value is None or (metric.scope == "answer" and row["status"] not in ANSWERED):
            return None
        return float(value)

    return read


def _one_a_session(turns: Pairs) -> Pairs:
    pairs = {(each.base["session"], each.other["session"]): each for each in reversed(turns.pairs)}
    sides = [
        list({row["session"]: (row, cluster) for row, cluster in reversed(side)}.values())[::-1]
        for side in (turns.base, turns.other)
    ]
    return Pairs(list(pairs.values())[::-1], sides[0], sides[1], turns.possible)


def _error_ms(run: Run) -> float:
    """The typical error of the harness itself in that run, ms; a difference has that of both."""
    error: dict[str, Any] = (run.summary("timing").get("harness") or {}).get("error_ms") or {}
    return float(error.get("p50") or 0.0)


def _duplex(base: Run, other: Run) -> Iterable[Figure]:
    events = joined(base, other, "duplex")
    for metric in METRICS:

        def read(row: Row, name: str = metric.name, exact: bool = metric.offset_sensitive) -> float | None:
            value = row.get(name)
            return None if value is None or (exact and not row["offset_exact"]) else float(value)

        center: Literal["p50", "mean"] = "p50" if metric.statistic == "median" else "mean"
        found = compared(events, read, Question(direction=metric.direction, center=center))
        if found is not None:
            unit = "ratio" if metric.unit == "flag" else metric.unit
            yield Figure(scorer="duplex", name=metric.name, unit=unit, direction=metric.direction, difference=found)


def _scores(base: Run, other: Run) -> Iterable[Figure]:
    if base.summary("scores").get("benchmark") != other.summary("scores").get("benchmark"):
        return
    first, second = base.rows("scores"), other.rows("scores")
    for subset in dict.fromkeys(row["subset"] for row in first):
        sides = [[row for row in side if row["subset"] == subset] for side in (first, second)]
        items = pair(sides[0], sides[1], item_keys)
        for name, (unit, direction) in ITEM_FIGURES.items():

            def read(row: Row, name: str = name) -> float | None:
                value = row.get(name)
                return None if value is None else float(value)

            found = compared(items, read, Question(direction=direction, center="mean"))
            if found is not None:
                yield Figure(scorer="scores", name=f"{subset}.{name}", unit=unit, direction=direction, difference=found)


def compared(rows: Pairs, read: Read, question: Question) -> Difference | None:
    """Paired where most rows have a partner, else unpaired; None where a run has no value."""
    if not rows.possible:
        sides = [_side(side, read) for side in (rows.base, rows.other)]
        return unpaired(sides[0], sides[1], question) if all(side.values for side in sides) else None
    values = [(read(each.base), read(each.other), each.cluster) for each in rows.pairs]
    known = [(first, second, cluster) for first, second, cluster in values if first is not None and second is not None]
    if not known:
        return None
    return paired([each[0] for each in known], [each[1] for each in known], [each[2] for each in known], question)


def _side(rows: Sequence[tuple[Row, str]], read: Read) -> Side:
    known = [(value, cluster) for row, cluster in rows if (value := read(row)) is not None]
    return Side(values=tuple(value for value, _ in known), clusters=tuple(cluster for _, cluster in known))
