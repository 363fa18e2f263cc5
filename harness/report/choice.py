"""Which turns the report shows as timelines: the typical one first, then the extremes and one of each failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from harness.report.figure import ANSWERED

MOST = 7
"""Timelines on one page; each costs up to some 200 KB, mostly sound."""
LATENCIES = ("first_audible_ms", "first_packet_ms", "ttft_ms")


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One turn and why it was chosen. whole: its point lies outside the gap before the answer."""

    row: dict[str, Any]
    why: str
    whole: bool = False


def chosen_turns(rows: Sequence[dict[str, Any]], metrics: Mapping[str, Any], most: int = MOST) -> list[Choice]:
    """At most `most` turns. The first is the answered turn nearest to the summary's median first audible sound; a
    peer without that metric is judged by first packet, then TTFT; a run without answers starts with its failures.
    """
    counted = [row for row in rows if not row.get("warmup")] or list(rows)
    answered = [row for row in counted if row.get("status") in ANSWERED]
    found: list[Choice] = []
    for name in LATENCIES:
        timed = [row for row in answered if row.get(name) is not None]
        middle = (metrics.get(name) or {}).get("p50")
        if not timed or middle is None:
            continue
        label = {"first_audible_ms": "first audible", "first_packet_ms": "first packet", "ttft_ms": "TTFT"}[name]
        found.append(Choice(row=min(timed, key=lambda row: abs(row[name] - middle)), why=f"nearest to median {label}"))
        found.append(Choice(row=max(timed, key=lambda row: row[name]), why=f"slowest {label}"))
        found.append(Choice(row=min(timed, key=lambda row: row[name]), why=f"fastest {label}"))
        break
    stalled = [row for row in answered if row.get("stall_ms")]
    if stalled:
        found.append(Choice(row=max(stalled, key=lambda row: row["stall_ms"]), why="longest stalls", whole=True))
    statuses = sorted({str(row.get("status")) for row in counted} - {"ok", "not_run"})
    found += [
        Choice(row=next(row for row in counted if row.get("status") == status), why=f"status {status}")
        for status in statuses
    ]
    if not found:
        found = [Choice(row=row, why="first turn") for row in answered[:1]]
    unique: dict[tuple[Any, Any], Choice] = {}
    for choice in found:
        unique.setdefault((choice.row.get("session"), choice.row.get("turn")), choice)
    return list(unique.values())[:most]
