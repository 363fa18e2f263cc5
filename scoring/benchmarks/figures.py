"""Figures of a summary: shares, means and ratios over rows, each with n, a 95 % interval and what is missing.

A figure is `{"value", "unit", "n", "ci95"}`, with `missing` and `why` when rows lack it, or `{"unscored": reason, "n":
0}`.
Shares have Wilson intervals; means, ratios and averages percentile-bootstrap ones over items (2,000 resamples, fixed
seed). `ci95` is None below two items.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from scoring.stats import RESAMPLES, SEED, Float64, percentile

Figure = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]
Scores = Iterable[tuple[int, float | None]]
"""An item's number and its score, None without one."""
_Z = 1.959963984540054
"""97.5 % point of the normal distribution."""
_DIGITS = 6
STRICT = "_strict"
"""Suffix of what the strict reading of a judge says."""
_CHUNK = 2_000_000
"""Resampled counts held at once."""


def share(rows: Rows, key: str) -> Figure:
    """Share of rows whose `key` is true, in percent."""
    values = [bool(row[key]) for row in rows if row.get(key) is not None]
    if not values:
        return unscored(why_missing(rows, key))
    low, high = wilson(sum(values), len(values))
    figure = _figure(100 * sum(values) / len(values), "%", len(values), (100 * low, 100 * high))
    return figure | _missing(rows, key)


def mean(rows: Rows, key: str, unit: str, scale: float = 1.0) -> Figure:
    """Mean of the rows' `key` times `scale`."""
    values = np.asarray([row[key] for row in rows if row.get(key) is not None], dtype=np.float64) * scale
    if not len(values):
        return unscored(why_missing(rows, key))
    return _figure(float(values.mean()), unit, len(values), _mean_interval(values)) | _missing(rows, key)


def ratio_of_sums(rows: Rows, over: str, under: str, unit: str, scale: float = 1.0) -> Figure:
    """Sum of `over` by sum of `under`, times `scale`, over the rows that have both: the pooled rate."""
    having = [row for row in rows if row.get(over) is not None and row.get(under) is not None]
    sums = np.asarray([(row[over], row[under]) for row in having], dtype=np.float64).reshape(-1, 2)
    if not having:
        return unscored(why_missing(rows, over))
    if sums[:, 1].sum() == 0:
        return unscored(f"nothing to divide by: {under} is 0 throughout")
    value = scale * sums[:, 0].sum() / sums[:, 1].sum()
    interval = resampled(len(sums), lambda counts: scale * (counts @ sums[:, 0]) / (counts @ sums[:, 1]))
    return _figure(float(value), unit, len(sums), interval) | _missing(rows, over)


def preserved(pairs: Mapping[Any, tuple[float | None, float | None]], *, cap: float = math.inf) -> Figure:
    """100 * mean of the first of each pair / mean of the second, at most `cap`; items resampled together.

    pairs: item to (value under the condition, value without it), None where there is none. A ratio of means. `uncapped`
    stands beside a capped value.
    """
    over = np.asarray([math.nan if first is None else first for first, _ in pairs.values()], dtype=np.float64)
    under = np.asarray([math.nan if second is None else second for _, second in pairs.values()], dtype=np.float64)
    had = [~np.isnan(side) for side in (over, under)]
    if not all(side.any() for side in had):
        return unscored("no answers under the condition" if not had[0].any() else "no answers without the condition")
    first, second = np.nan_to_num(over), np.nan_to_num(under)
    if second.sum() == 0:
        return unscored("nothing to divide by: all answers without the condition score 0")

    def ratio(counts: Float64) -> Float64:
        plain = (counts @ second) / (counts @ had[1])
        found: Float64 = np.minimum(100 * (counts @ first) / (counts @ had[0]) / plain, cap)
        return found

    value = 100 * over[had[0]].mean() / under[had[1]].mean()
    figure = _figure(min(float(value), cap), "%", int(had[0].sum()), resampled(len(first), ratio))
    return figure | ({"uncapped": round(float(value), _DIGITS)} if value > cap else {})


def paired(first: Scores, second: Scores) -> dict[tuple[int, int], tuple[float | None, float | None]]:
    """The scores of equal items side by side, for `preserved`; of repeated ones the k-th beside the k-th.

    >>> paired([(7, 1.0), (7, 2.0)], [(7, 4.0)])
    {(7, 0): (1.0, 4.0), (7, 1): (2.0, None)}
    """
    sides: list[dict[tuple[int, int], float | None]] = []
    for scores in (first, second):
        times: Counter[int] = Counter()
        side: dict[tuple[int, int], float | None] = {}
        for number, score in scores:
            side[number, times[number]] = score
            times[number] += 1
        sides.append(side)
    return {key: (sides[0].get(key), sides[1].get(key)) for key in sorted(sides[0].keys() | sides[1].keys())}


def average(figures: Sequence[Figure], unit: str) -> Figure:
    """Mean of several figures, each of the same weight whatever its n. Unscored when one of them is.

    Its interval takes the figures as independent and their intervals as symmetric.
    """
    absent = [figure["unscored"] for figure in figures if "unscored" in figure]
    if absent or not figures:
        return unscored(absent[0] if absent else "no figures")
    value = sum(figure["value"] for figure in figures) / len(figures)
    spans = [figure["ci95"] for figure in figures if figure["ci95"]]
    half = math.sqrt(sum(((high - low) / 2) ** 2 for low, high in spans)) / len(figures)
    interval = (value - half, value + half) if len(spans) == len(figures) else None
    return _figure(value, unit, sum(figure["n"] for figure in figures), interval)


def count(rows: Rows, key: str, unit: str) -> Figure:
    """Sum of a whole number over the rows that have it."""
    values = [row[key] for row in rows if row.get(key) is not None]
    if not values:
        return unscored(why_missing(rows, key))
    return _figure(sum(values), unit, len(values), None) | _missing(rows, key)


def profiled(name: str, official: Figure, other: Figure, profile: str) -> dict[str, Figure]:
    """The official figure, and `<name>_<profile>` when that is another."""
    same = all(official.get(key) == other.get(key) for key in ("value", "n", "unscored"))
    return {name: official} if same else {name: official, f"{name}_{profile}": other}


def unscored(reason: str) -> Figure:
    return {"unscored": reason, "n": 0}


def value_of(figure: Mapping[str, Any] | None) -> float | None:
    """The figure's value; None for one that is missing."""
    return None if figure is None else figure.get("value")


def why_missing(rows: Rows, key: str) -> str:
    """The commonest reason for which rows lack `key`."""
    reasons = Counter(_reason(row, key) for row in rows if row.get(key) is None)
    return reasons.most_common(1)[0][0] if reasons else "no answers"


def wilson(hits: int, n: int) -> tuple[float, float]:
    """95 % score interval of a share (Wilson, JASA 22:209, 1927)."""
    share_, z2 = hits / n, _Z * _Z
    middle = (share_ + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z * math.sqrt(share_ * (1 - share_) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def resampled(n: int, statistic: Callable[[Float64], Float64]) -> tuple[float, float] | None:
    """95 % percentile-bootstrap interval. statistic: counts of drawn items, shape (m, n), to values, shape (m,)."""
    if n < 2:
        return None
    random = np.random.RandomState(SEED)
    step = max(1, min(RESAMPLES, _CHUNK // n))
    found: list[Float64] = []
    with np.errstate(divide="ignore", invalid="ignore"):
        for start in range(0, RESAMPLES, step):
            rows = min(step, RESAMPLES - start)
            drawn = random.randint(0, n, size=(rows, n)) + np.arange(rows)[:, None] * n
            counts = np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)
            found.append(np.asarray(statistic(counts), dtype=np.float64))
    values = np.concatenate(found)
    values = values[np.isfinite(values)]
    return (percentile(values, 0.025), percentile(values, 0.975)) if len(values) else None


def _mean_interval(values: Float64) -> tuple[float, float] | None:
    """Over the distinct values: few of them make it fast, and the distribution is the same."""
    n = len(values)
    if n < 2:
        return None
    distinct, counts = np.unique(values, return_counts=True)
    drawn = np.random.RandomState(SEED).multinomial(n, counts / n, size=RESAMPLES)
    means = drawn @ distinct / n
    return percentile(means, 0.025), percentile(means, 0.975)


def _figure(value: float, unit: str, n: int, interval: tuple[float, float] | None) -> Figure:
    return {
        "value": round(value, _DIGITS),
        "unit": unit,
        "n": n,
        "ci95": [round(end, _DIGITS) for end in interval] if interval else None,
    }


def _missing(rows: Rows, key: str) -> Figure:
    missing = sum(row.get(key) is None for row in rows)
    return {"missing": missing, "why": why_missing(rows, key)} if missing else {}


def _reason(row: Mapping[str, Any], key: str) -> str:
    """Of a strict reading, or of a rate's edits, the reason of the figure itself, unless that one is there."""
    reasons: Mapping[str, str] = row.get("unscored") or {}
    otherwise = "the judge's reply has not the asked form" if key.endswith(STRICT) else f"no {key}"
    return reasons.get(key) or reasons.get(key.removesuffix(STRICT).removesuffix("_edits"), otherwise)


def all_known(conditions: Iterable[bool | None]) -> bool | None:
    """False when one is false, None when none is but one is unknown, else True."""
    known = list(conditions)
    if any(condition is False for condition in known):
        return False
    return None if any(condition is None for condition in known) else True
