"""Percentiles, means and bootstrap intervals over finite values, and percentiles in which failures are infinite.

Percentiles are linear between order statistics (numpy's default): position h = (n - 1) q of the sorted values, and
between two neighbours the straight line. No percentile is given that its n cannot carry.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

P95_NEEDS = 20
P99_NEEDS = 100
"""Least n for a p95 and a p99 (timing definitions, section 2)."""
RESAMPLES = 2_000
SEED = 20_260_101
"""Fixed, so that a replay gives the same interval; any number would do."""
GREATER_THAN_TIMEOUT = "> timeout"
"""Stands for a percentile that falls on a failed turn: JSON has no infinity."""
_CHUNK = 2_000_000
"""Resampled values held at once; bounds the memory of the bootstrap to some 50 MB."""
_QUANTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}
_NEEDS = {"p50": 1, "p90": 1, "p95": P95_NEEDS, "p99": P99_NEEDS}
_INTERVALS = ("p50", "p95", "mean")


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """The values of one figure. clusters: what each value belongs to (its query), for the bootstrap; same length.

    failed: how many more there should have been; they count as infinite in `percentiles_all`.
    """

    values: tuple[float, ...]
    clusters: tuple[str, ...] = ()
    failed: int = 0


def percentile(values: npt.ArrayLike, q: float) -> float:
    """The `q` quantile (0 to 1) of `values`, linear; `inf` where the line touches an infinite value.

    Finite input gives what `numpy.percentile` gives, to rounding. Raises ValueError for no values.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    if len(ordered) == 0:
        raise ValueError("no values")
    position = (len(ordered) - 1) * q
    low = math.floor(position)
    share = position - low
    if share == 0.0:
        return float(ordered[low])
    if math.isinf(ordered[low + 1]):
        return float(ordered[low + 1])
    return float(ordered[low] + (ordered[low + 1] - ordered[low]) * share)


def quantiles(values: Sequence[float] | Float64) -> dict[str, float | None]:
    """p50, p90, p95 and p99 of `values`; None below the n that each needs."""
    n = len(values)
    return {name: percentile(values, q) if n >= _NEEDS[name] else None for name, q in _QUANTILES.items()}


def describe(sample: Sample, *, digits: int = 3, interval: bool = True) -> dict[str, Any]:
    """One entry of a summary: n, p50, p90, p95, p99, mean, min, max, ci95 and percentiles_all, rounded to `digits`.

    `ci95` holds a pair for p50, p95 and mean, None where the statistic is missing or fewer than two clusters stand
    behind it. `percentiles_all` has its own n; a percentile on a failed turn is `"> timeout"`.
    """
    described = describe_values(np.asarray(sample.values, dtype=np.float64), digits=digits)
    if interval:
        described["ci95"] = intervals(sample, digits=digits)
        described["percentiles_all"] = percentiles_all(sample, digits=digits)
    return described


def describe_values(values: Float64, *, digits: int = 3) -> dict[str, Any]:
    """n, p50, p90, p95, p99, mean, min, max of finite `values`, shape (n,), rounded to `digits`."""
    n = len(values)
    described: dict[str, Any] = {"n": n}
    described |= {name: _rounded(value, digits) for name, value in quantiles(np.sort(values)).items()}
    described["mean"] = _rounded(float(values.mean()), digits) if n else None
    described["min"] = _rounded(float(values.min()), digits) if n else None
    described["max"] = _rounded(float(values.max()), digits) if n else None
    return described


def percentiles_all(sample: Sample, *, digits: int = 3) -> dict[str, Any]:
    """n, p50, p90, p95, p99 with `failed` infinite values beside the finite ones."""
    everything = np.concatenate([np.asarray(sample.values, dtype=np.float64), np.full(sample.failed, np.inf)])
    shown = {
        name: GREATER_THAN_TIMEOUT if value is not None and math.isinf(value) else _rounded(value, digits)
        for name, value in quantiles(everything).items()
    }
    return {"n": len(everything), **shown}


def intervals(sample: Sample, *, digits: int = 3) -> dict[str, list[float] | None]:
    """95 % percentile-bootstrap intervals of p50, p95 and mean: 2,000 resamples, clusters drawn with replacement."""
    names = [name for name in _INTERVALS if name == "mean" or len(sample.values) >= _NEEDS[name]]
    found: dict[str, list[float] | None] = dict.fromkeys(_INTERVALS)
    labels = sample.clusters or tuple(str(index) for index in range(len(sample.values)))
    if len(set(labels)) < 2:
        return found
    spread = bootstrap(np.asarray(sample.values, dtype=np.float64), labels)
    for name in names:
        low, high = percentile(spread[name], 0.025), percentile(spread[name], 0.975)
        found[name] = [round(low, digits), round(high, digits)]
    return found


def bootstrap(values: Float64, clusters: Sequence[str], *, seed: int = SEED) -> dict[str, Float64]:
    """Resampled p50, p95 and mean, shape (2000,) each.

    values: shape (n,), finite. clusters: n labels; as many clusters as there are get drawn with replacement, each
    with all of its values. Which ones are drawn rests on labels and seed alone, so that paired values resampled one
    after the other stay paired. A resample's order statistics are read off the values sorted once, through the
    cumulated counts of their clusters, so nothing is sorted again.
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    numbers = {label: number for number, label in enumerate(dict.fromkeys(clusters))}
    member = np.asarray([numbers[label] for label in clusters], dtype=np.int64)[order]
    random = np.random.RandomState(seed)  # the legacy stream is frozen: the same on every numpy version
    parts: list[dict[str, Float64]] = []
    step = max(1, min(RESAMPLES, _CHUNK // max(len(values), len(numbers))))
    for start in range(0, RESAMPLES, step):
        rows = min(step, RESAMPLES - start)
        parts.append(_resample(ordered, member, _draw(random, rows, len(numbers))))
    return {name: np.concatenate([part[name] for part in parts]) for name in _INTERVALS}


def _draw(random: np.random.RandomState, rows: int, clusters: int) -> Int64:
    """How often each cluster was drawn, shape (rows, clusters)."""
    drawn = random.randint(0, clusters, size=(rows, clusters)).astype(np.int64)
    offset = drawn + np.arange(rows, dtype=np.int64)[:, None] * clusters
    return np.bincount(offset.ravel(), minlength=rows * clusters).reshape(rows, clusters)


def _resample(ordered: Float64, member: Int64, counts: Int64) -> dict[str, Float64]:
    running = np.cumsum(counts[:, member], axis=1)
    total = running[:, -1].copy()
    sums = np.bincount(member, weights=ordered, minlength=counts.shape[1])
    # Every row lifted above the one before: the flattened counts ascend, so one search finds all order statistics.
    lift = np.arange(len(total), dtype=np.int64) * (int(total.max()) + 1)
    running += lift[:, None]
    return {
        "p50": _weighted_quantile(ordered, running, lift, total, 0.50),
        "p95": _weighted_quantile(ordered, running, lift, total, 0.95),
        "mean": (counts * sums).sum(axis=1) / total,
    }


def _weighted_quantile(ordered: Float64, running: Int64, lift: Int64, total: Int64, q: float) -> Float64:
    """The linear quantile of each row's repeated values; running: cumulated counts plus lift, shape (rows, n)."""
    position = (total - 1) * q
    low = np.floor(position).astype(np.int64)
    high = np.minimum(low + 1, total - 1)
    flat, begin = running.ravel(), np.arange(len(total), dtype=np.int64) * running.shape[1]
    below = ordered[np.searchsorted(flat, low + lift, side="right") - begin]
    above = ordered[np.searchsorted(flat, high + lift, side="right") - begin]
    return np.asarray(below + (above - below) * (position - low), dtype=np.float64)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
