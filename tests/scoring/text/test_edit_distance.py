"""The distance against the plain table, and alignments by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.text.edit_distance import Alignment, align, distance
from scoring.text.error_rate import ErrorRate, pooled

pytestmark = pytest.mark.unit
tokens = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=80)


def _table(reference: list[str], hypothesis: list[str]) -> int:
    row = list(range(len(hypothesis) + 1))
    for index, token in enumerate(reference, 1):
        last, row[0] = row[0], index
        for column, other in enumerate(hypothesis, 1):
            last, row[column] = row[column], min(last + (token != other), row[column] + 1, row[column - 1] + 1)
    return row[-1]


@given(tokens, tokens)
def test_distance_is_that_of_the_plain_table(reference: list[str], hypothesis: list[str]):
    assert distance(reference, hypothesis) == _table(reference, hypothesis) == align(reference, hypothesis).errors


@given(tokens, tokens)
def test_hits_are_bounded_by_both_sides(reference: list[str], hypothesis: list[str]):
    found = align(reference, hypothesis)
    assert 0 <= found.hits <= min(len(reference), len(hypothesis))
    assert found.errors >= len(reference) - found.hits


@pytest.mark.parametrize(
    ("reference", "hypothesis", "hits", "errors"),
    [
        ("deep learning is fun", "deep learning is fun", 4, 0),
        ("self attention", "self a tension", 1, 2),
        ("a b c", "", 0, 3),
        ("", "um well", 0, 2),
        ("a b", "x a b y", 2, 2),
    ],
)
def test_alignments_by_hand(reference: str, hypothesis: str, hits: int, errors: int):
    found = align(reference.split(), hypothesis.split())
    assert found == Alignment(hits=hits, errors=errors, length=len(reference.split()))


def test_pooling_weighs_by_length():
    items = [ErrorRate(edits=1, length=2), ErrorRate(edits=0, length=8), ErrorRate(edits=3, length=0)]
    assert pooled(items[:2]).rate == pytest.approx(0.1)
    assert items[2].rate == 0.0
    assert pooled([]).rate == 0.0
