"""How far two sets of values are apart, with an interval, and the smallest distance that would have been noticed.

Paired values: the estimate is the median (of shares the mean) of the pairs' differences; clusters (queries) are
resampled, each with all of its pairs. Unpaired values: the difference of both medians (means); each side is resampled
by itself.

Intervals are percentile-bootstrap ones over 2,000 resamples, widened for few clusters: a tail of
Phi(sqrt(k / (k - 1)) t) in place of 2.5 %, t being the 2.5 % point of Student's distribution with k - 1 degrees of
freedom (Hesterberg, The American Statistician 69:371, 2015, section 3.2). Below six clusters none is given: even with
all of them on one side of 0 a sign test does not reach 5 % (2 / 2^5).

The smallest difference that could have been seen is the one that a test at 5 % finds in 80 % of runs like these:
(t_0.975 + t_0.8) times the standard error, which is the resamples' spread times sqrt(k / (k - 1)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Literal

import msgspec
import numpy as np

from scoring.stats import SEED, Float64, bootstrap, percentile, quantiles

LEAST_CLUSTERS = 6
STATISTICS = ("p50", "p95", "mean")
"""Whose differences are given beside the estimate."""
DIGITS = 6
_TAIL, _POWER = 0.025, 0.8
_NORMAL = NormalDist()

Verdict = Literal["better", "worse", "higher", "lower", "none", "too_few"]
Interval = tuple[float, float] | None


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a figure. direction: which way is better. center: what the estimate is of. resolution:
    differences up to this are within the harness's own error, in the figure's unit."""

    direction: Literal["lower", "higher", "none"] = "lower"
    center: Literal["p50", "mean"] = "p50"
    resolution: float = 0.0


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """The values of one run, and the cluster (query) that each belongs to; at least one."""

    values: tuple[float, ...]
    clusters: tuple[str, ...]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One statistic, other minus base. value: None below the n that the statistic needs."""

    value: float | None
    ci95: Interval = None


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Other minus base, in the figure's unit.

    n: pairs, or values of the smaller side; clusters: behind them. base, other: p50 (mean) of the values compared.
    ci95, smallest (what could have been seen): None below six clusters. statistics: p50, p95 and mean.
    verdict: of `other`; `none` also for a difference within the resolution, and where fewer than six clusters differ.
    """

    paired: bool
    center: Literal["p50", "mean"]
    n: int
    clusters: int
    base: float
    other: float
    value: float
    ci95: Interval
    smallest: float | None
    resolution: float
    verdict: Verdict
    statistics: dict[str, Change]


def paired(base: Sequence[float], other: Sequence[float], clusters: Sequence[str], question: Question) -> Difference:
    """Differences of values that belong together, n of each."""
    first, second = _array(base), _array(other)
    change = second - first
    sides = bootstrap(first, clusters), bootstrap(second, clusters)
    moved = {label for label, each in zip(clusters, change, strict=True) if each}
    return _difference(
        (first, second),
        _center(change, question),
        bootstrap(change, clusters)[question.center],
        {name: sides[1][name] - sides[0][name] for name in STATISTICS},
        (True, len(set(clusters)), len(moved)),
        question,
    )


def unpaired(base: Side, other: Side, question: Question) -> Difference:
    """Differences of values of which none belong together."""
    first, second = _array(base.values), _array(other.values)
    sides = bootstrap(first, base.clusters), bootstrap(second, other.clusters, seed=SEED + 1)
    apart = {name: sides[1][name] - sides[0][name] for name in STATISTICS}
    clusters = min(len(set(base.clusters)), len(set(other.clusters)))
    return _difference(
        (first, second),
        _center(second, question) - _center(first, question),
        apart[question.center],
        apart,
        (False, clusters, clusters),
        question,
    )


def _difference(
    values: tuple[Float64, Float64],
    estimate: float,
    resampled: Float64,
    apart: dict[str, Float64],
    support: tuple[bool, int, int],
    question: Question,
) -> Difference:
    """support: paired, clusters, clusters that differ. resampled, apart: shape (2000,) each."""
    first, second = values
    is_paired, clusters, moved = support
    ci95 = _interval(resampled, clusters)
    return Difference(
        paired=is_paired,
        center=question.center,
        n=min(len(first), len(second)),
        clusters=clusters,
        base=round(_center(first, question), DIGITS),
        other=round(_center(second, question), DIGITS),
        value=round(estimate, DIGITS),
        ci95=ci95,
        smallest=_smallest(resampled, clusters, question),
        resolution=round(question.resolution, DIGITS),
        verdict=_verdict(estimate, ci95, moved, question),
        statistics=_changes(first, second, apart, clusters),
    )


def _changes(first: Float64, second: Float64, apart: dict[str, Float64], clusters: int) -> dict[str, Change]:
    known = [{**quantiles(side), "mean": float(side.mean())} for side in (first, second)]
    found = {}
    for name in STATISTICS:
        low, high = known[0][name], known[1][name]
        if low is None or high is None:
            found[name] = Change(value=None)
        else:
            found[name] = Change(value=round(high - low, DIGITS), ci95=_interval(apart[name], clusters))
    return found


def _verdict(estimate: float, ci95: Interval, moved: int, question: Question) -> Verdict:
    if ci95 is None:
        return "too_few"
    if ci95[0] <= 0 <= ci95[1] or abs(estimate) <= question.resolution or moved < LEAST_CLUSTERS:
        return "none"
    if question.direction == "none":
        return "higher" if estimate > 0 else "lower"
    return "better" if (estimate > 0) == (question.direction == "higher") else "worse"


def _interval(resampled: Float64, clusters: int) -> Interval:
    if clusters < LEAST_CLUSTERS:
        return None
    widened = math.sqrt(clusters / (clusters - 1)) * student(_TAIL, clusters - 1)
    tail = _NORMAL.cdf(widened)
    low, high = percentile(resampled, tail), percentile(resampled, 1 - tail)
    return round(low, DIGITS), round(high, DIGITS)


def _smallest(resampled: Float64, clusters: int, question: Question) -> float | None:
    if clusters < LEAST_CLUSTERS:
        return None
    error = float(resampled.std()) * math.sqrt(clusters / (clusters - 1))
    needed = (student(1 - _TAIL, clusters - 1) + student(_POWER, clusters - 1)) * error
    return round(max(needed, question.resolution), DIGITS)


def student(p: float, freedom: int) -> float:
    """The `p` quantile of Student's distribution: Cornish-Fisher expansion in 1 / freedom to the third power, within
    0.2 % from five degrees of freedom on (Abramowitz and Stegun, 26.7.5)."""
    z = _NORMAL.inv_cdf(p)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + math.fsum(term / float(freedom) ** power for power, term in enumerate(terms, start=1))


def _center(values: Float64, question: Question) -> float:
    return percentile(values, 0.5) if question.center == "p50" else float(values.mean())


def _array(values: Sequence[float]) -> Float64:
    return np.asarray(values, dtype=np.float64)
