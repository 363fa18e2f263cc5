"""One whole conversation as the page draws it: both sides, what the user put on the line, and how the agent took it.

The axis is milliseconds from the beginning of listening, as in `duplex.jsonl`, whose figures are shown, not recomputed.
Single turns live in `timeline`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.core.audio import NS_PER_MS
from harness.core.events import Interrupted, Note, PeerError, ResponseDone, ResponseStarted, ScenarioEvent
from harness.core.session.reader import Session
from harness.report.failure import plain
from harness.report.heard import origin_ns, played, user_pieces
from harness.report.lanes import Window, lanes

LONGEST_MS = 900_000
"""Longest window; what lies beyond is left out and said so."""
MOST_MARKS = 400
BEFORE_MS, AFTER_MS = 200, 600
_SPANS = (
    ("fto_ms", "answer after", "end_ms"),
    ("stop_ms", "stopped after", "start_ms"),
)
"""(metric, label, the edge of the event that it counts from)."""
_MARKS = (
    (ResponseStarted, "response_started", "The peer says that an answer begins."),
    (Interrupted, "interrupted", "The peer says that the user interrupted it."),
    (ResponseDone, "response_done", "The peer says that an answer is over."),
    (PeerError, "peer_error", "The peer reported an error."),
)


def conversation(
    session: Session, rows: Sequence[Mapping[str, Any]], why: str, *, sound: Path | None = None
) -> dict[str, Any]:
    """The JSON of a conversation. rows: its events, as in `duplex.jsonl`. sound: as in `lanes`. Raises OSError."""
    notes: list[str] = []
    packets, pieces = played(session), user_pieces(session)
    zero_ns = origin_ns(session)
    last_ns = max([zero_ns, *(e.t_ns for e in session.events), *(p.end_ns for p in packets)])
    window = Window(from_ns=zero_ns - BEFORE_MS * NS_PER_MS, to_ns=last_ns + AFTER_MS * NS_PER_MS, zero_ns=zero_ns).cut(
        LONGEST_MS, notes
    )
    drawn = lanes(session, window, pieces, packets, notes, sound)
    notes += [plain(event.message) for event in session.of(Note)]
    placed = [row for row in rows if row.get("start_ms") is not None and row.get("end_ms") is not None]
    clips = ", ".join(dict.fromkeys(event.clip for event in session.of(ScenarioEvent)))
    header = session.header
    return {
        **drawn,
        "kind": "conversation",
        "query": "",
        "language": header.languages[0] if header.languages else "",
        "status": "",
        "mode": header.mode,
        "why": why,
        "whole": True,
        "asked": plain(clips),
        "error": "; ".join(dict.fromkeys(plain(event.message) for event in session.of(PeerError))),
        "zero": "session_start",
        "stalls": [],
        "anchors": sorted([*_edges(placed), *_marks(session, window)], key=lambda mark: mark[1]),
        "spans": [*_spans(placed)],
        "notes": list(dict.fromkeys(notes)),
    }


def _edges(rows: Sequence[Mapping[str, Any]]) -> Iterator[list[Any]]:
    for row in rows:
        name = plain(str(row["event"]))
        yield [f"{name} begins", float(row["start_ms"]), f"First sample that the user put on the line: {_what(row)}."]
        yield [f"{name} ends", float(row["end_ms"]), "One past its last sample."]


def _marks(session: Session, window: Window) -> list[list[Any]]:
    found = [
        [name, window.ms(event.t_ns), meaning]
        for kind, name, meaning in _MARKS
        for event in session.of(kind)
        if window.holds(event.t_ns)
    ]
    return found[:MOST_MARKS]


def _spans(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """What the user put on the line, and the figures that lie between two instants of it."""
    for row in rows:
        start, end = float(row["start_ms"]), float(row["end_ms"])
        label = f"{plain(str(row['event']))} {_what(row)}"
        yield {"metric": "event", "label": label, "from": start, "to": end, "value": None}
        for metric, words, edge in _SPANS:
            value = row.get(metric)
            if isinstance(value, int | float) and not isinstance(value, bool):
                at = float(row[edge])
                yield {"metric": metric, "label": words, "from": at, "to": round(at + value, 3), "value": float(value)}


def _what(row: Mapping[str, Any]) -> str:
    return plain(str(row.get("category") or row.get("kind") or "event")).replace("_", " ")
