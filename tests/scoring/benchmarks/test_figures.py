"""Figures by hand: values, n, intervals and what is missing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.benchmarks.figures import (
    all_known,
    average,
    mean,
    paired,
    preserved,
    profiled,
    ratio_of_sums,
    share,
    unscored,
    wilson,
)

pytestmark = pytest.mark.unit


def test_a_share_with_its_interval_and_what_is_missing():
    rows = [{"right": True}, {"right": False}, {"right": True}, {"right": None, "unscored": {"right": "judge away"}}]
    figure = share(rows, "right")
    assert (figure["value"], figure["unit"], figure["n"]) == (66.666667, "%", 3)
    assert (figure["missing"], figure["why"]) == (1, "judge away")
    assert share([], "right") == {"unscored": "no answers", "n": 0}
    assert share(rows[3:], "right") == {"unscored": "judge away", "n": 0}


def test_wilson_against_published_values():
    # 10 of 20: 0.299 to 0.701; 0 of 10: 0 to 0.278 (Newcombe 1998 gives the method's values).
    assert wilson(10, 20) == pytest.approx((0.2993, 0.7007), abs=1e-4)
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)


def test_a_mean_and_a_single_value_has_no_interval():
    assert mean([{"score": 4}], "score", "1-5") == {"value": 4.0, "unit": "1-5", "n": 1, "ci95": None}
    figure = mean([{"score": score} for score in (1, 5) * 50], "score", "1-5")
    assert figure["value"] == 3.0
    # The mean of 100 fair draws of 1 or 5 has a standard deviation of 0.2.
    assert figure["ci95"] == pytest.approx([2.6, 3.4], abs=0.05)


def test_a_ratio_of_sums_is_pooled_and_needs_something_to_divide_by():
    rows = [{"edits": 1, "length": 10}, {"edits": 3, "length": 30}, {"edits": None, "length": None}]
    figure = ratio_of_sums(rows, "edits", "length", "%", 100)
    assert (figure["value"], figure["n"], figure["missing"]) == (10.0, 2, 1)
    assert "unscored" in ratio_of_sums([{"edits": 0, "length": 0}], "edits", "length", "%")


def test_preserved_is_a_ratio_of_means_capped():
    pairs = {0: (2.0, 4.0), 1: (4.0, 4.0), 2: (3.0, None)}
    figure = preserved(pairs, cap=100)
    assert (figure["value"], figure["n"]) == (75.0, 3)
    better = preserved({0: (5.0, 4.0)}, cap=100)
    assert (better["value"], better["uncapped"]) == (100.0, 125.0)
    assert preserved({0: (None, 4.0)})["unscored"] == "no answers under the condition"
    assert preserved({0: (4.0, None)})["unscored"] == "no answers without the condition"
    assert "unscored" in preserved({0: (4.0, 0.0)})


def test_an_average_gives_each_the_same_weight_and_fails_with_one():
    few, many = share([{"right": True}] * 2, "right"), share([{"right": False}] * 98, "right")
    assert (average([few, many], "%")["value"], average([few, many], "%")["n"]) == (50.0, 100)
    assert average([few, unscored("judge away")], "%") == {"unscored": "judge away", "n": 0}


def test_a_profile_is_shown_when_it_differs():
    one, other = share([{"right": True}], "right"), share([{"right": False}], "right")
    assert list(profiled("rate", one, one, "fixed")) == ["rate"]
    assert list(profiled("rate", one, other, "fixed")) == ["rate", "rate_fixed"]


@pytest.mark.parametrize(
    ("conditions", "known"),
    [((True, True), True), ((True, None), None), ((None, False), False), ((), True)],
)
def test_one_false_condition_decides_and_an_unknown_one_does_not(
    conditions: tuple[bool | None, ...], known: bool | None
):
    assert all_known(conditions) is known


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=40))
def test_intervals_hold_the_value_within_the_range(scores: list[int]):
    figure = mean([{"score": score} for score in scores], "score", "1-5")
    low, high = figure["ci95"]
    assert min(scores) <= low <= high <= max(scores)
    assert low - 1e-6 <= figure["value"] <= high + 1e-6 or len(scores) < 10
    pairs = {index: (float(score), float(score)) for index, score in enumerate(scores)}
    if sum(scores):
        assert preserved(pairs)["ci95"] == pytest.approx([100, 100])
        assert np.isfinite(preserved(pairs)["value"])


def test_repeated_items_all_count():
    """Grades 1, 2 and 3 of two items under the condition, 4 and 2 without: 2 / 3."""
    pairs = paired([(0, 1.0), (0, 2.0), (1, 3.0)], [(1, 4.0), (0, 2.0)])
    assert pairs == {(0, 0): (1.0, 2.0), (0, 1): (2.0, None), (1, 0): (3.0, 4.0)}
    assert preserved(pairs)["value"] == pytest.approx(200 / 3, abs=1e-6)


def test_a_pooled_rate_lacks_what_the_rate_lacks():
    silent = {"per_edits": None, "per_syllables": None, "unscored": {"per": "the answer has no sound"}}
    assert ratio_of_sums([silent], "per_edits", "per_syllables", "%")["unscored"] == "the answer has no sound"


def test_a_strict_reading_lacks_what_the_figure_lacks_or_the_form():
    away = {"right": None, "right_strict": None, "unscored": {"right": "judge away"}}
    assert share([away], "right_strict") == {"unscored": "judge away", "n": 0}
    formless = {"right": True, "right_strict": None, "unscored": {}}
    assert "asked form" in share([formless], "right_strict")["unscored"]
    assert list(profiled("rate", share([away], "right"), share([away], "right_strict"), "strict")) == ["rate"]
