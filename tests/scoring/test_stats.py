"""Percentiles against numpy, the bootstrap against a slow twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring import stats
from scoring.stats import Sample, bootstrap, describe, percentile, percentiles_all

pytestmark = pytest.mark.unit
finite = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200)


@settings(deadline=None)
@given(finite, st.floats(0, 1))
def test_percentiles_are_numpys(values: list[float], q: float):
    assert percentile(values, q) == pytest.approx(float(np.percentile(values, 100 * q)), rel=1e-9, abs=1e-9)


@settings(deadline=None)
@given(finite, st.integers(1, 50))
def test_infinite_values_never_make_a_figure_better_or_nan(values: list[float], failed: int):
    everything = [*values, *[math.inf] * failed]
    for q in (0.5, 0.9, 0.95, 0.99):
        found = percentile(everything, q)
        assert not math.isnan(found)
        assert found >= percentile(values, q) - 1e-6


def test_no_values():
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_a_percentile_between_a_value_and_a_failure_is_a_failure():
    assert percentile([1.0, math.inf], 0.5) == math.inf
    assert percentile([1.0, 2.0, math.inf], 0.5) == 2.0


@pytest.mark.parametrize(
    ("n", "p95", "p99"), [(19, False, False), (20, True, False), (99, True, False), (100, True, True)]
)
def test_p95_and_p99_need_their_n(n: int, p95: bool, p99: bool):
    found = describe(Sample(values=tuple(float(v) for v in range(n))))
    assert (found["p95"] is not None, found["p99"] is not None) == (p95, p99)
    assert (found["ci95"]["p95"] is not None) == p95
    assert found["n"] == n


def test_an_empty_sample_is_all_null():
    found = describe(Sample(values=()))
    assert found["n"] == 0
    assert [found[name] for name in ("p50", "p90", "p95", "p99", "mean", "min", "max")] == [None] * 7
    assert found["ci95"] == {"p50": None, "p95": None, "mean": None}
    assert found["percentiles_all"] == {"n": 0, "p50": None, "p90": None, "p95": None, "p99": None}


def test_failed_turns_are_infinite_in_percentiles_all():
    values = tuple(float(v) for v in range(1, 19))
    assert percentiles_all(Sample(values=values, failed=2)) == {
        "n": 20,
        "p50": 10.5,
        "p90": stats.GREATER_THAN_TIMEOUT,
        "p95": "> timeout",
        "p99": None,
    }
    assert percentiles_all(Sample(values=(), failed=3))["p50"] == "> timeout"


def test_one_cluster_gives_no_interval():
    assert describe(Sample(values=(1.0, 2.0, 3.0), clusters=("a", "a", "a")))["ci95"]["mean"] is None


def test_intervals_are_the_same_every_time_and_hold_the_estimate():
    random = np.random.default_rng(1)
    values = tuple(random.normal(500, 100, 200).tolist())
    first, second = (describe(Sample(values=values)) for _ in range(2))
    assert first == second
    for name in ("p50", "p95", "mean"):
        low, high = first["ci95"][name]
        assert low < first[name] < high
    # The interval of a mean is about +- 1.96 s / sqrt n.
    low, high = first["ci95"]["mean"]
    assert (high - low) / 2 == pytest.approx(1.96 * np.std(values) / math.sqrt(200), rel=0.1)


def test_repeats_of_a_query_are_no_new_evidence():
    values = tuple(float(v) for v in range(40))
    alone = describe(Sample(values=values, clusters=tuple(map(str, range(40)))))["ci95"]["mean"]
    repeated = describe(Sample(values=values * 10, clusters=tuple(map(str, range(40))) * 10))["ci95"]["mean"]
    assert repeated == pytest.approx(alone, abs=0.5)
    ignoring = describe(Sample(values=values * 10))["ci95"]["mean"]
    assert ignoring[1] - ignoring[0] < (repeated[1] - repeated[0]) / 2


@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_the_bootstrap_equals_a_slow_one(n: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stats, "RESAMPLES", 50)
    random = np.random.default_rng(n)
    values = random.normal(0, 1, n).round(1)
    clusters = [f"q{number}" for number in random.integers(0, max(1, n // 3), n)]
    found = bootstrap(values, clusters)
    names = list(dict.fromkeys(clusters))
    drawn = np.random.RandomState(stats.SEED).randint(0, len(names), size=(50, len(names)))
    for row, choice in enumerate(drawn):
        resample = np.concatenate([values[[c == names[number] for c in clusters]] for number in choice])
        assert found["p50"][row] == pytest.approx(np.percentile(resample, 50))
        assert found["p95"][row] == pytest.approx(np.percentile(resample, 95))
        assert found["mean"][row] == pytest.approx(resample.mean())


def test_the_chunks_of_the_bootstrap_do_not_show(monkeypatch: pytest.MonkeyPatch):
    values, clusters = np.arange(30.0), [str(v % 7) for v in range(30)]
    whole = bootstrap(values, clusters)
    monkeypatch.setattr(stats, "_CHUNK", 1000)
    parts = bootstrap(values, clusters)
    for name in whole:
        np.testing.assert_array_equal(whole[name], parts[name])
