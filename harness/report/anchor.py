"""The instants of a turn as the scorer put them into its row, and the spans between them that metrics name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

NAMES = {
    "speech_start": "First sample of the user's speech, on the media timeline.",
    "speech_end": "One past the last sample of the user's speech, on the media timeline.",
    "speech_sent": "The packet with the last speech sample had left: its write was complete.",
    "committed": "The end-of-turn message had left (manual mode).",
    "endpoint": "The peer's word that it heard the end of speech arrived.",
    "first_text": "First text of the answer arrived.",
    "first_packet": "First packet with answer audio arrived.",
    "first_audible": "First audible sample of the answer, in the zero-buffer playout model.",
    "last_packet": "Last audio packet of the answer arrived.",
    "done": "The peer's end-of-response event arrived.",
}
"""Anchor names in their usual order, with the meaning that the page prints."""

_SPANS = (
    ("first_audible_ms", ("speech_end",), "first_audible"),
    ("endpoint_ms", ("speech_end",), "endpoint"),
    ("think_ms", ("committed", "endpoint"), "first_packet"),
    ("leading_silence_ms", ("first_packet",), "first_audible"),
    ("first_packet_ms", ("committed", "speech_sent"), "first_packet"),
    ("ttft_ms", ("committed", "speech_sent"), "first_text"),
)
LATENCIES = frozenset(metric for metric, _, _ in _SPANS)
"""The metrics that lie between two anchors of a turn."""


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of one turn between two of its anchors; `value_ms` is the row's own figure, not recomputed."""

    metric: str
    start: str
    end: str
    value_ms: float


def anchors_of(row: Mapping[str, Any], origin_ns: int) -> dict[str, int]:
    """The row's anchors in ns on the session's clock, in their usual order; those that do not exist are left out.

    origin_ns: the instant that the row counts from, the start of the user's stream.
    """
    raw = row.get("anchors")
    if not isinstance(raw, Mapping):
        return {}
    return {name: origin_ns + raw[name] for name in NAMES if isinstance(raw.get(name), int)}


def spans_of(row: Mapping[str, Any], anchors: Mapping[str, int]) -> list[Span]:
    """The metrics of the row whose two ends are known."""
    found = []
    for metric, starts, end in _SPANS:
        start = next((name for name in starts if name in anchors), None)
        value = row.get(metric)
        if start and end in anchors and isinstance(value, int | float):
            found.append(Span(metric=metric, start=start, end=end, value_ms=float(value)))
    return found
