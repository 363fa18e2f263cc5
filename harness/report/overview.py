"""The head of every report: peer, mode, turns and statuses, and whether the figures can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from harness.report.failure import plain
from harness.report.figure import number


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """statuses: `ok` first, then by count. verdicts: lines on the harness's own error, with whether each is good news.
    notes: what the summary says that a reader must know."""

    peer: str
    mode: str
    turns: int
    failed: int
    statuses: tuple[tuple[str, int], ...]
    verdicts: tuple[tuple[str, bool], ...]
    notes: tuple[str, ...]


def overview(summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Overview:
    """Read the head of a summary; the mode comes from it, else from the rows."""
    modes = dict.fromkeys(str(row["mode"]) for row in rows if row.get("mode"))
    mode = str(summary.get("mode") or ", ".join(modes))
    status = {str(name): int(count) for name, count in (summary.get("status") or {}).items() if count}
    statuses = sorted(status.items(), key=lambda item: (item[0] != "ok", -item[1], item[0]))
    notes = summary.get("notes") or ()
    return Overview(
        peer=plain(str(summary.get("peer") or "unknown peer")),
        mode=f"{mode} turns" if mode in ("manual", "vad") else mode,
        turns=int(summary.get("turns") or 0),
        failed=int(summary.get("failed") or 0),
        statuses=tuple(statuses),
        verdicts=tuple(verdicts(summary)),
        notes=tuple(plain(str(note.get("message") if isinstance(note, Mapping) else note)) for note in notes),
    )


def verdicts(summary: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """Lines on the harness's own error: figures, tainted rows, noise of the machine, calibration."""
    harness = summary.get("harness") or {}
    turns = int(summary.get("turns") or 0)
    lines = []
    shown = [
        f"{label} p50 {number(figure.get('p50'), 'ms')}, {_highest(figure)} ms"
        for label, key in (("error", "error_ms"), ("send lateness", "send_late_ms"), ("loop lag", "loop_lag_ms"))
        if isinstance(figure := harness.get(key), Mapping)
    ]
    if shown:
        lines.append((f"Harness: {'; '.join(shown)}", True))
    tainted = int(harness.get("tainted") or 0)
    if tainted:
        lines.append((f"{tainted} of {turns} turns tainted: the harness itself was late there", False))
    noise = harness.get("noise")
    if isinstance(noise, Mapping) and isinstance(noise.get("quiet"), bool):
        word = "quiet" if noise["quiet"] else "noisy"
        lines.append((f"Machine: {word}, sentinel p99 {number(noise.get('p99_ms'), 'ms')} ms", noise["quiet"]))
    return lines


def _highest(figure: Mapping[str, Any]) -> str:
    """p99, or the greatest value where n is too small for it."""
    name = "max" if figure.get("p99") is None else "p99"
    return f"{name} {number(figure.get(name), 'ms')}"
