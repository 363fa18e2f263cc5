"""The histogram of floor transfer offsets as shapes: x in per cent of the width, y in pixels from the top."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from harness.report.figure import number

FLOOR, TOP = 165, 18
"""y of the axis and of the highest bar."""
MOST_BARS = 40
"""Bins that a narrow page still shows; beyond that several are taken together."""
COUNTED_BARS = 16
"""Bars up to which each bears its count."""
STEPS_MS = (200, 500, 1000, 2000, 5000, 10_000, 20_000, 60_000, 600_000)
MOST_MARKS = 7
INSET = 3.0
"""Per cent left free on either side, so that marks at the ends are not cut."""


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """early: it lies before the end of the user's speech."""

    x: float
    width: float
    middle: float
    y: float
    height: float
    count: int
    early: bool
    title: str


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    x: float
    anchor: str
    text: str


class Histogram(msgspec.Struct, frozen=True, kw_only=True):
    """about: the distribution in a sentence. zero: where the user's speech ends, if that is in the picture. counted:
    the bars bear their counts."""

    about: str
    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...]
    zero: float | None
    counted: bool
    floor: int = FLOOR


def histogram_of(fto: Mapping[str, Any]) -> Histogram | None:
    """Read `summary.fto` of the duplex scorer: n, p50, negative, bin_ms and histogram (pairs of bin and count)."""
    pairs = [(int(begin), int(count)) for begin, count in fto.get("histogram") or ()]
    if not pairs:
        return None
    width_ms, pairs = _widened(pairs, int(fto["bin_ms"]))
    low, high = min(0, pairs[0][0]), max(0, pairs[-1][0] + width_ms)
    scale = (100 - 2 * INSET) / (high - low)
    highest = max(count for _, count in pairs)

    def x(ms: float) -> float:
        return round(INSET + (ms - low) * scale, 3)

    bars = []
    for begin, count in pairs:
        height = round((FLOOR - TOP) * count / highest, 1)
        bars.append(
            Bar(
                x=x(begin),
                width=round(max(0.2, width_ms * scale - 0.3), 3),
                middle=x(begin + width_ms / 2),
                y=round(FLOOR - height, 1),
                height=height,
                count=count,
                early=begin + width_ms <= 0,
                title=f"{begin:,} to {begin + width_ms:,} ms: {count}",
            )
        )
    about = f"n {fto['n']}, median {number(fto.get('p50'), 'ms')} ms, {fto['negative']} early. Bins of {width_ms:,} ms."
    marks = tuple(_marks(low, high, x))
    return Histogram(about=about, bars=tuple(bars), marks=marks, zero=x(0), counted=len(bars) <= COUNTED_BARS)


def _widened(pairs: Sequence[tuple[int, int]], bin_ms: int) -> tuple[int, list[tuple[int, int]]]:
    """Bins in order, several taken together where there would be too many."""
    span = max(begin for begin, _ in pairs) - min(begin for begin, _ in pairs) + bin_ms
    width_ms = bin_ms * -(-span // (bin_ms * MOST_BARS))
    counts: dict[int, int] = {}
    for begin, count in sorted(pairs):
        counts[begin // width_ms * width_ms] = counts.get(begin // width_ms * width_ms, 0) + count
    return width_ms, list(counts.items())


def _marks(low: int, high: int, x: Callable[[float], float]) -> list[Mark]:
    step = next((step for step in STEPS_MS if (high - low) / step <= MOST_MARKS - 1), high - low)
    values = range(-(-low // step) * step, high + 1, step)
    return [Mark(x=x(value), anchor="middle", text=f"{value:,}" + " ms" * (value == 0)) for value in values]
