"""One turn as the page draws it: both waveforms on one axis, packets, texts, anchors, spans, and the sound itself.

The axis is milliseconds from the end of the user's speech, so that every latency that a listener feels can be read
off it. Waveforms are lowest/highest sample a column; the sound is a stereo clip of the same window (left: user,
right: agent), encoded small enough to live in the page.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import soundfile
import soxr

from harness.core.audio import NS_PER_MS, Int16, samples_to_ns
from harness.core.errors import SessionFormatError
from harness.core.events import AudioSent, Note, TextReceived, TurnEnded, TurnStarted, UserTranscript
from harness.core.playout import Played
from harness.core.session.reader import Session
from harness.report.anchor import NAMES, anchors_of, spans_of
from harness.report.choice import Choice
from harness.report.failure import message_of, plain
from harness.report.figure import metric_of
from harness.report.heard import Piece, Track, agent_pieces, late_packets, origin_ns, peaks, played, render, user_pieces

COLUMNS = 3000
"""Most waveform columns in a window: about two a pixel on a wide screen, so a first zoom still shows detail."""
LONGEST_MS = 120_000
"""Longest window; what lies beyond is left out and said so."""
BEFORE_MS, AFTER_MS = 400, 600
SOUND_RATE_HZ = 24_000
MOST_SOUND_BYTES = 600_000
MOST_TICKS = 4000


def timeline(session: Session, choice: Choice, *, sound: bool = True) -> dict[str, Any]:
    """The JSON of one turn. Raises nothing for missing audio: it becomes a note, and the rest is drawn."""
    row = choice.row
    notes: list[str] = []
    user, agent = _audio(session, "user", notes), _audio(session, "agent", notes)
    packets, pieces = played(session), user_pieces(session)
    anchors = anchors_of(row, origin_ns(session))
    turn = next((event for event in session.of(TurnStarted) if event.turn == row.get("turn")), None)
    upload = session.header.mode == "upload"
    if upload:
        pieces = []
        notes.append("Upload: the query has no place on the time axis.")
    zero = "speech_sent" if upload else "speech_end"
    zero_ns = anchors[zero] if zero in anchors else _zero(session, turn, pieces)
    from_ns, to_ns = _window(session, turn, anchors, packets, pieces, zero_ns)
    if to_ns - from_ns > LONGEST_MS * NS_PER_MS:
        to_ns = from_ns + LONGEST_MS * NS_PER_MS
        notes.append(f"Only the first {LONGEST_MS // 1000} s are drawn.")

    def ms(t_ns: int) -> float:
        return round((t_ns - zero_ns) / NS_PER_MS, 3)

    inside = [event for event in session.events if from_ns <= event.t_ns < to_ns]
    texts = [event for event in inside if isinstance(event, TextReceived) and event.text.strip()]
    step_ms = max(2, -(-(to_ns - from_ns) // NS_PER_MS // COLUMNS))
    user_track = render(pieces, user, session.header.user.rate_hz, from_ns, to_ns)
    rate_hz = session.header.agent.rate_hz
    agent_track = render(agent_pieces(packets, rate_hz), agent, rate_hz, from_ns, to_ns)
    if row.get("tainted"):
        notes.append("Tainted: the harness itself was late in this turn.")
    notes += [plain(event.message) for event in session.of(Note)]
    clip = _encode(user_track, agent_track) if sound else None
    return {
        "session": session.header.session,
        "query": str(row.get("query") or (turn.query if turn else "")),
        "language": str(row.get("language") or (turn.language if turn else "")),
        "status": str(row.get("status") or ""),
        "mode": str(row.get("mode") or session.header.mode),
        "why": choice.why,
        "whole": choice.whole,
        "asked": plain(turn.text if turn else ""),
        "understood": plain(" ".join(e.text for e in inside if isinstance(e, UserTranscript) and e.final)),
        "answer": plain("".join(event.text for event in texts)),
        "error": message_of(row),
        "zero": zero,
        "from_ms": ms(from_ns),
        "to_ms": ms(to_ns),
        "step_ms": step_ms,
        "user": peaks(user_track, step_ms),
        "agent": peaks(agent_track, step_ms),
        "packets": [ms(p.packet.arrival_ns) for p in packets if from_ns <= p.packet.arrival_ns < to_ns][:MOST_TICKS],
        "late_packets": [ms(e.t_ns) for e in late_packets(session) if from_ns <= e.t_ns < to_ns],
        "texts": [[ms(event.t_ns), plain(event.text)] for event in texts][:MOST_TICKS],
        "late_sends": [ms(event.t_ns) for event in inside if isinstance(event, AudioSent) and event.late],
        "stalls": [
            [ms(p.start_ns - p.underrun_ns), ms(p.start_ns)]
            for p in packets
            if p.underrun_ns and from_ns <= p.start_ns < to_ns and _within(p, anchors)
        ],
        "anchors": [[name, ms(t_ns), NAMES[name]] for name, t_ns in anchors.items()],
        "spans": [
            {
                "metric": span.metric,
                "label": metric_of(span.metric).label,
                "from": ms(anchors[span.start]),
                "to": ms(anchors[span.end]),
                "value": span.value_ms,
            }
            for span in spans_of(row, anchors)
        ],
        "sound": clip,
        "files": _files(session),
        "notes": list(dict.fromkeys(notes)),
    }


def drawable(view: Mapping[str, Any]) -> bool:
    """Whether the turn has anything on its axis; a session that never connected has not."""
    waves = (value is not None for side in ("user", "agent") for part in view[side] for value in part)
    return any(view[name] for name in ("packets", "texts", "late_packets", "spans")) or any(waves)


def _audio(session: Session, side: str, notes: list[str]) -> Int16:
    try:
        return session.user if side == "user" else session.agent
    except SessionFormatError as exc:
        notes.append(f"No {side} waveform: {plain(str(exc).removeprefix(f'{session.path}/'))}")
        return np.zeros(0, dtype=np.int16)


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
) -> tuple[int, int]:
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
    return start_ns - BEFORE_MS * NS_PER_MS, end_ns + AFTER_MS * NS_PER_MS


def _within(packet: Played, anchors: Mapping[str, int]) -> bool:
    """Whether an underrun lies inside the answer (silence between two answers is no stall)."""
    first, last = anchors.get("first_packet"), anchors.get("last_packet")
    return first is not None and last is not None and first < packet.packet.arrival_ns <= last


def _encode(user: Track, agent: Track) -> str | None:
    """Both sides as one Ogg Opus data URI; None when it would be too large or nothing sounds."""
    if not (user.heard.any() or agent.heard.any()):
        return None
    sides = [soxr.resample(track.signal, track.rate_hz, SOUND_RATE_HZ) for track in (user, agent)]
    length = max(len(side) for side in sides)
    stereo = np.zeros((length, 2), dtype=np.int16)
    for column, side in enumerate(sides):
        stereo[: len(side), column] = side
    buffer = io.BytesIO()
    soundfile.write(buffer, stereo, SOUND_RATE_HZ, format="OGG", subtype="OPUS")
    data = buffer.getvalue()
    return None if len(data) > MOST_SOUND_BYTES else "data:audio/ogg;base64," + base64.b64encode(data).decode()


def _files(session: Session) -> dict[str, str]:
    """The session's own sound files that exist, as paths relative to the page."""
    sides = {"user": session.header.user.file, "agent": session.header.agent.file}
    return {
        side: f"sessions/{session.path.name}/{name}" for side, name in sides.items() if (session.path / name).is_file()
    }
