"""What every view of a session shows in a window: both waveforms, packets, texts, late sends, and its sound.

Waveforms are the lowest and highest sample of a column; times are ms from the view's own zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import numpy as np

from harness.core.audio import NS_PER_MS, Int16
from harness.core.errors import SessionFormatError
from harness.core.events import AudioSent, TextReceived, UserTranscript
from harness.core.playout import Played
from harness.core.session.reader import Session
from harness.report.clip import write_clip
from harness.report.failure import plain
from harness.report.heard import Piece, agent_pieces, late_packets, peaks, render

COLUMNS = 3000
"""Most waveform columns in a window: about two a pixel on a wide screen, so a first zoom still shows detail."""
MOST_TICKS = 4000


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """[from_ns, to_ns) on the session's clock; `zero_ns` is where the axis has its zero."""

    from_ns: int
    to_ns: int
    zero_ns: int

    def holds(self, t_ns: int) -> bool:
        return self.from_ns <= t_ns < self.to_ns

    def ms(self, t_ns: int) -> float:
        return round((t_ns - self.zero_ns) / NS_PER_MS, 3)

    def cut(self, longest_ms: int, notes: list[str]) -> Window:
        """At most `longest_ms` of it; what is left out is added to `notes`."""
        if self.to_ns - self.from_ns <= longest_ms * NS_PER_MS:
            return self
        notes.append(f"Only the first {longest_ms // 1000} s are drawn.")
        return msgspec.structs.replace(self, to_ns=self.from_ns + longest_ms * NS_PER_MS)


def lanes(
    session: Session,
    window: Window,
    pieces: Sequence[Piece],
    packets: Sequence[Played],
    notes: list[str],
    sound: Path | None,
) -> dict[str, Any]:
    """The JSON of a window. pieces: the user's; packets: the agent's. sound: the file to write, in a folder beside
    the page. Missing audio becomes one of the `notes`, and the rest is drawn. Raises OSError for a full disk."""
    user, agent = _audio(session, "user", notes), _audio(session, "agent", notes)
    step_ms = max(2, -(-(window.to_ns - window.from_ns) // NS_PER_MS // COLUMNS))
    rate_hz = session.header.agent.rate_hz
    user_track = render(pieces, user, session.header.user.rate_hz, window.from_ns, window.to_ns)
    agent_track = render(agent_pieces(packets, rate_hz), agent, rate_hz, window.from_ns, window.to_ns)
    written = sound is not None and write_clip(sound, user_track, agent_track)
    inside = [event for event in session.events if window.holds(event.t_ns)]
    texts = [event for event in inside if isinstance(event, TextReceived) and event.text.strip()]
    return {
        "session": session.header.session,
        "understood": plain(" ".join(e.text for e in inside if isinstance(e, UserTranscript) and e.final)),
        "answer": plain(_answer(texts)),
        "from_ms": window.ms(window.from_ns),
        "to_ms": window.ms(window.to_ns),
        "step_ms": step_ms,
        "user": peaks(user_track, step_ms),
        "agent": peaks(agent_track, step_ms),
        "packets": [window.ms(p.packet.arrival_ns) for p in packets if window.holds(p.packet.arrival_ns)][:MOST_TICKS],
        "late_packets": [window.ms(e.t_ns) for e in late_packets(session) if window.holds(e.t_ns)],
        "texts": [[window.ms(event.t_ns), plain(event.text)] for event in texts][:MOST_TICKS],
        "late_sends": [window.ms(event.t_ns) for event in inside if isinstance(event, AudioSent) and event.late],
        "sound": f"{sound.parent.name}/{quote(sound.name)}" if sound is not None and written else None,
        "files": _files(session),
    }


def drawable(view: Mapping[str, Any]) -> bool:
    """Whether a view has anything on its axis; a session that never connected has not."""
    waves = (value is not None for side in ("user", "agent") for part in view[side] for value in part)
    return any(view[name] for name in ("packets", "texts", "late_packets", "spans")) or any(waves)


def _answer(texts: Sequence[TextReceived]) -> str:
    """The texts as one, a space between two answers."""
    return " ".join("".join(text.text for text in each) for _, each in groupby(texts, key=lambda text: text.response))


def _audio(session: Session, side: str, notes: list[str]) -> Int16:
    try:
        return session.user if side == "user" else session.agent
    except SessionFormatError as exc:
        notes.append(f"No {side} waveform: {plain(str(exc).removeprefix(f'{session.path}/'))}")
        return np.zeros(0, dtype=np.int16)


def _files(session: Session) -> dict[str, str]:
    """The session's own sound files that exist, as paths relative to the page."""
    sides = {"user": session.header.user.file, "agent": session.header.agent.file}
    return {
        side: f"sessions/{quote(session.path.name)}/{quote(name)}"
        for side, name in sides.items()
        if (session.path / name).is_file()
    }
