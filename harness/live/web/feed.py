"""What the page shows of a session: envelopes of both sides, instants, texts and figures, gathered between two looks.

All times are ms since the session began. Knows no socket.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec
import numpy as np

from harness.core.audio import NS_PER_MS, Int16, ms_to_samples, samples_to_ns, to_db
from harness.core.events import (
    ConnectionClosed,
    Event,
    Interrupted,
    Note,
    PeerError,
    UserSpeechStopped,
)
from harness.live.session import LiveSession
from harness.live.transcript import Line, Transcript

BROWSER_DELAY = "browser_delay"
"""Code of the notes that say what the page said itself."""
BIN_MS = 20
"""Of the envelopes."""
SHOWN = 20
"""Turns in the table."""
MOST_POINTS = 500
"""Of one side, kept for the next look: ten seconds."""
MOST_MARKS, MOST_LINES, LONGEST_LINE = 200, 50, 500
"""Kept for the next look of a peer that floods; characters of a line."""

_MARKS: dict[type[Event], str] = {UserSpeechStopped: "endpoint", Interrupted: "interrupted"}


class Side:
    """Envelope of one side: [middle of the bin in ms, peak as a share of full scale]; the level since the last look."""

    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._bin = ms_to_samples(BIN_MS, rate_hz)
        self._points: list[tuple[float, float]] = []
        self._power = 0.0
        self._samples = 0

    def take(self, samples: Int16, begin_ms: float) -> None:
        """Int16 of shape (n,), the first of which lies at `begin_ms`."""
        for at in range(0, len(samples), self._bin):
            part = samples[at : at + self._bin].astype(np.int32)
            middle = begin_ms + (at + len(part) / 2) * 1000 / self._rate_hz
            self._points.append((round(middle, 1), round(int(np.abs(part).max()) / 32768, 4)))
        del self._points[:-MOST_POINTS]
        self._power += float(np.sum(np.square(samples, dtype=np.float64)))
        self._samples += len(samples)

    def look(self) -> dict[str, Any]:
        points, rms = self._points, (self._power / self._samples) ** 0.5 / 32768 if self._samples else 0.0
        self._points, self._power, self._samples = [], 0.0, 0
        return {"points": points, "db": round(to_db(rms), 1)}


class Feed:
    """begin_ns: zero of the page's axis. rate_hz, latency_ns: of the microphone's blocks, and of their instants."""

    def __init__(self, begin_ns: int, rate_hz: int, latency_ns: int) -> None:
        self._begin_ns = begin_ns
        self._rate_hz = rate_hz
        self._latency_ns = latency_ns
        self.user = Side(rate_hz)
        self.agent = Side(rate_hz)
        self._transcript = Transcript()
        self._shown: tuple[Line, ...] = ()
        self._marks: deque[dict[str, Any]] = deque(maxlen=MOST_MARKS)
        self._lines: deque[dict[str, str]] = deque(maxlen=MOST_LINES)

    def hear(self, samples: Int16, handed_ns: int) -> None:
        """A block of the microphone, handed on at `handed_ns`."""
        self.user.take(samples, self._ms(handed_ns - self._latency_ns - samples_to_ns(len(samples), self._rate_hz)))

    def play(self, samples: Int16, t_ns: int) -> None:
        """A packet that left for the loudspeaker."""
        self.agent.take(samples, self._ms(t_ns))

    def take(self, event: Event) -> None:
        """One event of the session."""
        mark = _MARKS.get(type(event))
        if mark is not None:
            self._marks.append({"name": mark, "ms": self._ms(event.t_ns)})
        self._transcript.take(event)
        if isinstance(event, PeerError):
            self._line("error", event.message or event.code)
        elif isinstance(event, Note) and event.code != BROWSER_DELAY:
            self._line("note", event.message)
        elif isinstance(event, ConnectionClosed) and event.by != "us":
            self._line("error", event.reason or "the peer closed the connection")

    def look(self, now_ns: int, session: LiveSession, wait_ms: float) -> dict[str, Any]:
        """Everything since the last look, and the figures as they stand. wait_ms: of sound on its way out."""
        marks, lines, texts = [*self._marks], [*self._lines], self._transcript.lines
        news = {} if texts == self._shown else {"texts": msgspec.to_builtins(texts)}
        self._marks.clear()
        self._lines.clear()
        self._shown = texts
        return {
            "type": "look",
            "now": self._ms(now_ns),
            "user": self.user.look(),
            "agent": self.agent.look(),
            "marks": marks,
            "lines": lines,
            "turns": [self._turn(msgspec.to_builtins(row)) for row in session.turns.rows(SHOWN)],
            "deaf": session.turns.deaf,
            "muted": session.muted,
            "talking": session.talking,
            "wait_ms": round(wait_ms, 1),
            **news,
        }

    def _turn(self, row: dict[str, Any]) -> dict[str, Any]:
        """Instants become the axis' own; figures are cut to what is measured."""
        for name in ("start", "end", "sent"):
            t_ns = row.pop(f"{name}_ns")
            row[name] = None if t_ns is None else self._ms(t_ns)
        return {key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}

    def _line(self, kind: str, text: str) -> None:
        self._lines.append({"kind": kind, "text": text[:LONGEST_LINE]})

    def _ms(self, t_ns: int) -> float:
        return round((t_ns - self._begin_ns) / NS_PER_MS, 3)
