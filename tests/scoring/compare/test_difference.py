"""Differences and their intervals: exact shifts, power, and no findings where there is nothing."""

from __future__ import annotations

import numpy as np
import pytest

from scoring.compare.difference import Difference, Question, Side, paired, student, unpaired

pytestmark = pytest.mark.unit
LOWER = Question(direction="lower")


def labels(n: int) -> list[str]:
    return [f"q{k}" for k in range(n)]


def shifted(shift: float, *, n: int = 24, noise: float = 1.0, seed: int = 1, **question: object) -> Difference:
    random = np.random.default_rng(seed)
    own = random.normal(800, 200, n)
    other = own + shift + random.normal(0, noise, n)
    return paired(own.tolist(), other.tolist(), labels(n), Question(**question))  # type: ignore[arg-type]


def test_by_hand() -> None:
    found = paired([10, 20, 30, 40, 50, 60], [11, 22, 33, 44, 55, 66], labels(6), LOWER)
    # Pairs' differences 1 to 6: their median is 3.5, as is the difference of the medians 35 and 38.5.
    assert (found.base, found.other, found.value, found.n, found.clusters) == (35.0, 38.5, 3.5, 6, 6)
    assert (found.statistics["p50"].value, found.statistics["mean"].value) == (3.5, 3.5)
    assert found.statistics["p95"].value is None
    assert found.ci95 is not None
    assert 1 <= found.ci95[0] < 3.5 < found.ci95[1] <= 6
    assert found.verdict == "worse"


def test_pairing_sees_what_lies_far_below_the_spread_of_the_queries() -> None:
    found = shifted(5.0)
    assert found.verdict == "worse"
    assert found.value == pytest.approx(5.0, abs=0.6)
    assert found.ci95 is not None
    assert found.ci95[1] - found.ci95[0] < 3
    random = np.random.default_rng(1)
    sides = [Side(values=tuple(random.normal(800 + shift, 200, 24)), clusters=tuple(labels(24))) for shift in (0, 5)]
    alone = unpaired(sides[0], sides[1], LOWER)
    assert alone.verdict == "none"
    assert alone.smallest is not None
    assert found.smallest is not None
    assert alone.smallest > 100 > 5 > found.smallest


@pytest.mark.parametrize(
    ("direction", "shift", "verdict"),
    [
        ("lower", 50, "worse"),
        ("lower", -50, "better"),
        ("higher", 50, "better"),
        ("higher", -50, "worse"),
        ("none", 50, "higher"),
        ("none", -50, "lower"),
    ],
)
def test_direction_decides_what_is_better(direction: str, shift: float, verdict: str) -> None:
    assert shifted(shift, direction=direction).verdict == verdict


def test_five_queries_prove_nothing_however_often_they_are_said() -> None:
    clusters = [label for label in labels(5) for _ in range(40)]
    found = paired([100.0] * 200, [900.0] * 200, clusters, LOWER)
    assert (found.verdict, found.ci95, found.smallest, found.n, found.clusters) == ("too_few", None, None, 200, 5)


def test_a_difference_within_the_harness_error_is_none() -> None:
    seen = shifted(0.3, noise=0.01)
    within = shifted(0.3, noise=0.01, resolution=0.4)
    assert (seen.verdict, within.verdict) == ("worse", "none")
    assert within.smallest == 0.4


def test_shares_need_six_queries_that_differ() -> None:
    """Of 100 pairs 5 changed, all one way: a sign test says 6 %, the resamples' interval leaves 0 out."""

    def share(changed: int) -> Difference:
        other = [1.0] * changed + [0.0] * (100 - changed)
        return paired([0.0] * 100, other, labels(100), Question(direction="lower", center="mean"))

    assert share(5).ci95 is not None
    assert share(5).ci95[0] > 0  # type: ignore[index]
    assert (share(5).verdict, share(6).verdict) == ("none", "worse")
    assert share(6).value == pytest.approx(0.06)


@pytest.mark.parametrize("n", [6, 24])
def test_equal_peers_look_different_in_few_runs_only(n: int) -> None:
    """More than 12 of 100 at the nominal 5 % would be a chance of 1e-3; seeds are fixed."""
    found = [shifted(0.0, n=n, noise=10.0, seed=seed).verdict for seed in range(100)]
    assert found.count("none") >= 88


def test_the_smallest_difference_is_found_in_most_runs() -> None:
    smallest = shifted(0.0, n=12, noise=10.0, seed=7).smallest
    assert smallest is not None
    found = [shifted(smallest, n=12, noise=10.0, seed=seed).verdict for seed in range(100, 150)]
    assert found.count("worse") >= 30


def test_quantiles_of_student() -> None:
    """Printed tables: t(0.975) of 5, 11 and 23 degrees of freedom."""
    for freedom, printed in ((5, 2.571), (11, 2.201), (23, 2.069)):
        assert student(0.975, freedom) == pytest.approx(printed, rel=2e-3)
        assert student(0.025, freedom) == pytest.approx(-printed, rel=2e-3)
