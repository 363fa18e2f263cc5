"""Spans: joining, overlapping, clipping."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scoring.duplex.spans import Ordered, Span, UserSpan, clip, merge, overlap_ns


def test_merge_joins_gaps_up_to_the_bound_and_drops_empty_spans() -> None:
    spans = [Span(50, 60), Span(0, 10), Span(20, 30), Span(41, 45), Span(12, 12)]
    assert merge(spans, 10) == (Span(0, 30), Span(41, 60))


def test_merge_keeps_a_span_inside_another() -> None:
    assert merge([Span(0, 100), Span(10, 20)]) == (Span(0, 100),)


def test_overlap_counts_shared_time_once() -> None:
    assert overlap_ns([Span(0, 10), Span(5, 20)], [Span(8, 12), Span(18, 30)]) == 6
    assert overlap_ns(Span(0, 10), Span(10, 20)) == 0
    assert overlap_ns(UserSpan(0, 10, kind="turn"), Span(2, 4)) == 2


def test_clip_gives_nothing_where_nothing_is_left() -> None:
    assert clip(Span(0, 10), 4, 6) == Span(4, 6)
    assert clip(Span(0, 10), 10, 20) is None


SPANS = st.lists(st.builds(lambda a, n: Span(a, a + n), st.integers(0, 20), st.integers(0, 8)), max_size=8).map(sorted)


@given(SPANS, st.integers(-2, 30), st.integers(-2, 30))
def test_ordered_finds_what_a_look_at_all_of_them_does(spans: list[Span], a: int, b: int) -> None:
    ordered = Ordered(spans)
    assert ordered.holding(a) == next((span for span in spans if span.holds(a)), None)
    assert ordered.starting(a, b) == [span for span in spans if a < span.start_ns < b]
    assert ordered.next_from(a) == next((span for span in spans if span.start_ns >= a), None)
    during = Span(a, max(a, b))
    assert overlap_ns(ordered.near(during), during) == overlap_ns(spans, during)
