"""Conversations written by hand, in ms on a clock that begins at an odd instant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scoring.duplex.rows import conversation_rows
from scoring.duplex.spans import Conversation, Span, UserSpan, Utterance

MS = 1_000_000
BASE_NS = 7_123_456_789_013


def at(ms: float) -> int:
    return BASE_NS + round(ms * MS)


def span(start_ms: float, end_ms: float) -> Span:
    return Span(at(start_ms), at(end_ms))


def said(start_ms: float, end_ms: float, expect: str = "respond", kind: str = "turn", **more: Any) -> UserSpan:
    return UserSpan(at(start_ms), at(end_ms), expect=expect, kind=kind, **{"event": f"e{start_ms:g}", **more})


def uttered(start_ms: float, end_ms: float, natural: bool | None = None) -> Utterance:
    return Utterance(at(start_ms), at(end_ms), natural=natural)


def talk(
    user: Sequence[UserSpan], agent: Sequence[tuple[float, float]], *, end_ms: float = 60_000, **more: Any
) -> Conversation:
    spans = tuple(span(a, b) for a, b in agent)
    return Conversation(user=tuple(user), agent=spans, begin_ns=at(0), end_ns=at(end_ms), **more)


def rows(*args: Any, **more: Any) -> list[dict[str, Any]]:
    return conversation_rows(talk(*args, **more), session="s0")


def row(*args: Any, **more: Any) -> dict[str, Any]:
    """The row of the first event."""
    return rows(*args, **more)[0]
