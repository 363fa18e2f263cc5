"""Spans of speech on the session's clock, and a conversation: the two sides' spans between two instants.

All that duplex scoring knows of a session, so that an imported list of intervals scores in the same way.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Generic, TypeVar

import msgspec


class Span(msgspec.Struct, frozen=True, order=True):
    """[start_ns, end_ns) on the session's clock."""

    start_ns: int
    end_ns: int

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns

    def holds(self, t_ns: int) -> bool:
        return self.start_ns <= t_ns < self.end_ns


class UserSpan(Span, frozen=True, order=True, kw_only=True):
    """A stretch of the user's channel. `kind` says what sounds, `expect` what the agent should do about it.

    kind: `turn`, `backchannel`, `other_speaker`, `noise`, `tic`, ... expect: `respond`, `stop`, `keep_talking`,
    `stay_silent` or "". event: id of the scenario event. offset_exact: False where a cue came later than planned.
    category: of the scenario.
    """

    kind: str = "turn"
    expect: str = ""
    event: str = ""
    offset_exact: bool = True
    category: str = ""


class Utterance(Span, frozen=True, order=True, kw_only=True):
    """A stretch over which the agent holds the floor, its short pauses and its stalls included.

    natural: it ended by itself (True), was broken off (False), or nobody knows (None).
    """

    natural: bool | None = None


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """Both sides between the instants at which listening began and ended; spans in order of their start.

    agent: speech as heard, in the playout model with the profile's flushes. A span that reaches `end_ns` is censored:
    nobody knows how long it went on. utterances: what is known of the agent's utterances beyond its sound (None: only
    the sound is known). wire: from the start to the last audio packet of each of the agent's responses (None: unknown).
    """

    user: tuple[UserSpan, ...]
    agent: tuple[Span, ...]
    begin_ns: int
    end_ns: int
    utterances: tuple[Utterance, ...] | None = None
    wire: tuple[Span, ...] | None = None


S = TypeVar("S", bound=Span)


class Ordered(Generic[S]):
    """Spans in order of their start, which may overlap, found without a look at all of them."""

    def __init__(self, spans: Sequence[S]) -> None:
        self._spans = spans
        self._starts = [span.start_ns for span in spans]
        self._reach = list(accumulate((span.end_ns for span in spans), max))

    def holding(self, t_ns: int) -> S | None:
        """The first with start <= t < end."""
        index = bisect_right(self._reach, t_ns)
        return self._spans[index] if index < len(self._spans) and self._spans[index].start_ns <= t_ns else None

    def starting(self, after_ns: int, before_ns: int) -> list[S]:
        """Those with after < start < before."""
        return list(self._spans[bisect_right(self._starts, after_ns) : bisect_left(self._starts, before_ns)])

    def next_from(self, t_ns: int) -> S | None:
        """The first that starts at `t_ns` or later."""
        index = bisect_left(self._starts, t_ns)
        return self._spans[index] if index < len(self._spans) else None

    def near(self, span: Span) -> list[S]:
        """All that sound during `span`, and perhaps a few that end before it."""
        return list(self._spans[bisect_right(self._reach, span.start_ns) : bisect_left(self._starts, span.end_ns)])


def merge(spans: Iterable[Span], gap_ns: int = 0) -> tuple[Span, ...]:
    """The spans in order, joined where the silence between two is at most `gap_ns`; empty ones left out."""
    merged: list[Span] = []
    for span in sorted(Span(s.start_ns, s.end_ns) for s in spans if s.end_ns > s.start_ns):
        if merged and span.start_ns - merged[-1].end_ns <= gap_ns:
            merged[-1] = Span(merged[-1].start_ns, max(merged[-1].end_ns, span.end_ns))
        else:
            merged.append(span)
    return tuple(merged)


def overlap_ns(a: Sequence[Span] | Span, b: Sequence[Span] | Span) -> int:
    """How long both sides sound at once; each side is a span or several, which may overlap among themselves."""
    first, second = (merge([side] if isinstance(side, Span) else side) for side in (a, b))
    total, i, j = 0, 0, 0
    while i < len(first) and j < len(second):
        total += max(0, min(first[i].end_ns, second[j].end_ns) - max(first[i].start_ns, second[j].start_ns))
        if first[i].end_ns < second[j].end_ns:
            i += 1
        else:
            j += 1
    return total


def clip(span: Span, lo: int, hi: int) -> Span | None:
    """The part of `span` in [lo, hi), None where that is nothing."""
    start_ns, end_ns = max(span.start_ns, lo), min(span.end_ns, hi)
    return Span(start_ns, end_ns) if end_ns > start_ns else None
