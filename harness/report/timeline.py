"""One turn as the page draws it: what happened around it, its anchors, and the spans that the metrics measure.

The axis is milliseconds from the end of the user's speech, so that every latency that a listener feels can be read
off it. Whole conversations live in `conversation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.core.audio import NS_PER_MS, samples_to_ns
from harness.core.events import Note, TurnEnded, TurnStarted
from harness.core.playout import Played
from harness.core.session.reader import Session
from harness.report.anchor import NAMES, anchors_of, spans_of
from harness.report.choice import Choice
from harness.report.failure import message_of, plain
from harness.report.figure import metric_of
from harness.report.heard import Piece, origin_ns, played, user_pieces
from harness.report.lanes import Window, lanes

LONGEST_MS = 120_000
"""Longest window; what lies beyond is left out and said so."""
BEFORE_MS, AFTER_MS = 400, 600


def timeline(session: Session, choice: Choice, *, sound: Path | None = None) -> dict[str, Any]:
    """The JSON of one turn. sound: as in `lanes`. Raises OSError only: missing audio becomes a note."""
    row = choice.row
    notes: list[str] = []
    packets, pieces = played(session), user_pieces(session)
    anchors = anchors_of(row, origin_ns(session))
    turn = next((event for event in session.of(TurnStarted) if event.turn == row.get("turn")), None)
    upload = session.header.mode == "upload"
    if upload:
        pieces = []
        notes.append("Upload: the query has no place on the time axis.")
    zero = "speech_sent" if upload else "speech_end"
    zero_ns = anchors[zero] if zero in anchors else _zero(session, turn, pieces)
    window = _window(session, turn, anchors, packets, pieces, zero_ns).cut(LONGEST_MS, notes)
    drawn = lanes(session, window, pieces, packets, notes, sound)
    if row.get("tainted"):
        notes.append("Tainted: the harness itself was late in this turn.")
    notes += [plain(event.message) for event in session.of(Note)]
    return {
        **drawn,
        "kind": "turn",
        "query": str(row.get("query") or (turn.query if turn else "")),
        "language": str(row.get("language") or (turn.language if turn else "")),
        "status": str(row.get("status") or ""),
        "mode": str(row.get("mode") or session.header.mode),
        "why": choice.why,
        "whole": choice.whole,
        "asked": plain(turn.text if turn else ""),
        "error": message_of(row),
        "zero": zero,
        "stalls": [
            [window.ms(p.start_ns - p.underrun_ns), window.ms(p.start_ns)]
            for p in packets
            if p.underrun_ns and window.holds(p.start_ns) and _within(p, anchors)
        ],
        "anchors": [[name, window.ms(t_ns), NAMES[name]] for name, t_ns in anchors.items()],
        "spans": [
            {
                "metric": span.metric,
                "label": metric_of(span.metric).label,
                "from": window.ms(anchors[span.start]),
                "to": window.ms(anchors[span.end]),
                "value": span.value_ms,
            }
            for span in spans_of(row, anchors)
        ],
        "notes": list(dict.fromkeys(notes)),
    }


def _media_instant(pieces: list[Piece], sample: int, rate_hz: int) -> int | None:
    """When sample `sample` of the user's audio begins; None when it lies in no piece."""
    for piece in pieces:
        if piece.sample <= sample < piece.sample + piece.samples:
            return piece.start_ns + samples_to_ns(sample - piece.sample, rate_hz)
    return None


def _zero(session: Session, turn: TurnStarted | None, pieces: list[Piece]) -> int:
    """Zero of the axis for a row without that anchor: the turn's end of speech, else the turn's or session's start."""
    if turn is None:
        return session.events[0].t_ns if session.events else session.header.anchor.monotonic_ns
    rate_hz = session.header.user.rate_hz
    last_ns = _media_instant(pieces, turn.speech_end - 1, rate_hz)
    return turn.t_ns if last_ns is None else last_ns + samples_to_ns(1, rate_hz)


def _window(
    session: Session,
    turn: TurnStarted | None,
    anchors: Mapping[str, int],
    packets: list[Played],
    pieces: list[Piece],
    zero_ns: int,
) -> Window:
    """From just before the user's speech to just after all that belongs to the turn."""
    start_ns = min([zero_ns, *anchors.values()])
    if turn and "speech_start" not in anchors:
        started_ns = _media_instant(pieces, turn.speech_start, session.header.user.rate_hz)
        start_ns = min(start_ns, started_ns or start_ns)
    number = turn.turn if turn else None
    next_turns = [e.t_ns for e in session.of(TurnStarted) if number is not None and e.turn > number]
    limit_ns = min(next_turns, default=None)
    heard = [p.end_ns for p in packets if p.end_ns > start_ns and (limit_ns is None or p.packet.arrival_ns < limit_ns)]
    ended = [e.t_ns for e in session.of(TurnEnded) if e.turn == number]
    end_ns = max([zero_ns + 1000 * NS_PER_MS, *anchors.values(), *heard, *(ended if not heard else [])])
    return Window(from_ns=start_ns - BEFORE_MS * NS_PER_MS, to_ns=end_ns + AFTER_MS * NS_PER_MS, zero_ns=zero_ns)


def _within(packet: Played, anchors: Mapping[str, int]) -> bool:
    """Whether an underrun lies inside the answer (silence between two answers is no stall)."""
    first, last = anchors.get("first_packet"), anchors.get("last_packet")
    return first is not None and last is not None and first < packet.packet.arrival_ns <= last
