"""The head of every report: peer, mode, turns and statuses, and whether the figures can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from harness.report.failure import plain
from harness.report.figure import fine

EARLY = (
    "answered before the query was over "
    "(an early answer counts for nothing; latencies come from the answer to the whole query)"
)


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

    @property
    def mostly_failed(self) -> bool:
        """Whether more than half of the turns failed: then the causes are the news, not the figures."""
        return self.failed * 2 > self.turns


def overview(summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Overview:
    """Read the head of a summary; the mode comes from it, else from the rows."""
    modes = dict.fromkeys(str(row["mode"]) for row in rows if row.get("mode"))
    mode = str(summary.get("mode") or ", ".join(modes))
    status = {str(name): int(count) for name, count in (summary.get("status") or {}).items() if count}
    statuses = sorted(status.items(), key=lambda item: (item[0] != "ok", -item[1], item[0]))
    return Overview(
        peer=plain(str(summary.get("peer") or "unknown peer")),
        mode=f"{mode} turns" if mode in ("manual", "vad") else mode,
        turns=int(summary.get("turns") or 0),
        failed=int(summary.get("failed") or 0),
        statuses=tuple(statuses),
        verdicts=tuple(verdicts(summary)),
        notes=tuple(_notes(summary)),
    )


def verdicts(summary: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """Lines on the harness's own error: figures, tainted rows, noise of the machine, calibration."""
    harness = summary.get("harness") or {}
    turns = int(summary.get("turns") or 0)
    lines = []
    shown = [
        f"{label} p50 {fine(figure.get('p50'))}, {_highest(figure)} ms"
        for label, key in (("error", "error_ms"), ("send lateness", "send_late_ms"), ("loop lag", "loop_lag_ms"))
        if isinstance(figure := harness.get(key), Mapping) and figure.get("p50") is not None
    ]
    if shown:
        lines.append((f"Harness: {'; '.join(shown)}", True))
    tainted = int(harness.get("tainted") or 0)
    if tainted:
        lines.append((f"{tainted} of {turns} turns tainted: the harness itself was late there", False))
    noise = harness.get("noise")
    if isinstance(noise, Mapping) and isinstance(noise.get("quiet"), bool):
        word = "quiet" if noise["quiet"] else "noisy"
        lines.append((f"Machine: {word}, sentinel p99 {fine(noise.get('p99_ms'))} ms", noise["quiet"]))
    return lines


def _notes(summary: Mapping[str, Any]) -> list[str]:
    """What is unusual about the run: counts that should be zero, then the sessions' own notes."""
    missing = summary.get("missing_sessions")
    missing = len(missing) if isinstance(missing, Sequence) else missing
    harness = summary.get("harness") or {}
    counts = (
        (missing, "planned session is missing", "planned sessions are missing"),
        (harness.get("dropped"), "record was dropped while recording", "records were dropped while recording"),
        (harness.get("early_sends"), "chunk left before its time", "chunks left before their time"),
        (harness.get("late_sends"), "chunk left more than a chunk late", "chunks left more than a chunk late"),
        (summary.get("early_turns"), f"turn was {EARLY}", f"turns were {EARLY}"),
        (
            summary.get("late_packets"),
            "audio packet came after the end of its answer",
            "audio packets came after the end of their answer",
        ),
    )
    lines = [
        f"{count} {one if count == 1 else many}." for count, one, many in counts if isinstance(count, int) and count > 0
    ]
    if summary.get("text_order") == "text_after_audio":
        lines.append("The peer paces its text along with the audio, so TTFT says little.")
    warmups = summary.get("warmups")
    if warmups:
        lines.append(f"{warmups} warm-up {'session is' if warmups == 1 else 'sessions are'} left out of every figure.")
    return lines + [_note(note) for note in summary.get("notes") or () if isinstance(note, Mapping)]


def _note(note: Mapping[str, Any]) -> str:
    """The sentence of one note (its code where it has none) and how many sessions have it."""
    text = plain(str(note.get("message") or note.get("code") or ""))
    sessions = note.get("sessions")
    return f"{text} ({sessions} session{'' if sessions == 1 else 's'})" if isinstance(sessions, int) else text


def _highest(figure: Mapping[str, Any]) -> str:
    """p99, or the greatest value where n is too small for it."""
    name = "max" if figure.get("p99") is None else "p99"
    return f"{name} {fine(figure.get(name))}"
