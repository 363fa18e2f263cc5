"""One turn of several, and peers that are unlike turn peers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.core.audio import int16_to_pcm16, samples_to_ns
from harness.core.clock import WallAnchor
from harness.core.events import AudioReceived, AudioSent, StreamStarted, StreamStopped, TurnEnded, TurnStarted
from harness.core.profile import Profile
from harness.core.session.header import AudioInfo, ClockInfo, Header, PeerInfo
from harness.core.session.reader import Session, load_session
from harness.core.session.writer import SessionWriter
from harness.report.choice import Choice
from harness.report.timeline import timeline
from tests.report.sample_run import BASE_NS, MS, RATE, voice

pytestmark = pytest.mark.unit
SECOND = 1000 * MS


def two_turns(path: Path, mode: str = "manual") -> Session:
    """Two manual turns ten seconds apart: 1 s of speech, 1 s later 1 s of answer in one packet."""
    header = Header(
        session="two",
        peer=PeerInfo(kind="test", label="test", version="1"),
        mode=mode,
        profile=Profile(),
        clock=ClockInfo(name="virtual", resolution_ns=1),
        anchor=WallAnchor(wall_ns=0, monotonic_ns=0),
        user=AudioInfo(file="user.flac", rate_hz=RATE),
        agent=AudioInfo(file="agent.flac", rate_hz=RATE),
    )
    writer = SessionWriter(path, header)
    for turn in (0, 1):
        start, sample = BASE_NS + turn * 10 * SECOND, turn * RATE
        writer.append(StreamStarted(t_ns=start, sample=sample, rate_hz=RATE))
        writer.append(
            TurnStarted(
                t_ns=start,
                turn=turn,
                query=f"q{turn}",
                clip_sample=sample,
                clip_samples=RATE,
                speech_start=sample,
                speech_end=sample + RATE,
            )
        )
        sent = start + SECOND
        pcm = int16_to_pcm16(voice(1000, turn))
        writer.append(AudioSent(t_ns=sent, planned_ns=sent, started_ns=sent, sample=sample, samples=RATE, pcm=pcm))
        writer.append(StreamStopped(t_ns=sent, sample=sample + RATE))
        pcm = int16_to_pcm16(voice(1000, turn + 9))
        writer.append(AudioReceived(t_ns=sent + SECOND, samples=RATE, rate_hz=RATE, pcm=pcm))
        writer.append(TurnEnded(t_ns=sent + 2 * SECOND, turn=turn, outcome="answered"))
    writer.close()
    return load_session(path / "two")


def row(turn: int, **anchors: int) -> dict[str, Any]:
    return {"session": "two", "turn": turn, "status": "ok", "anchors": anchors}


@pytest.mark.parametrize("turn", [0, 1])
def test_each_turn_shows_itself_alone(tmp_path: Path, turn: int) -> None:
    session = two_turns(tmp_path)
    base = turn * 10 * SECOND
    anchors = {"speech_start": base, "speech_end": base + SECOND, "first_packet": base + 2 * SECOND}
    view = timeline(session, Choice(row=row(turn, **anchors), why="test"))
    assert view["query"] == f"q{turn}"
    assert {name: ms for name, ms, _ in view["anchors"]} == {
        "speech_start": -1000.0,
        "speech_end": 0.0,
        "first_packet": 1000.0,
    }
    assert (view["from_ms"], view["to_ms"]) == (-1400.0, 2600.0)
    assert view["packets"] == [1000.0]
    for side, first, last in (("user", -1000, 0), ("agent", 1000, 2000)):
        heard = [view["from_ms"] + i * view["step_ms"] for i, peak in enumerate(view[side][0]) if peak is not None]
        assert heard[0] == pytest.approx(first, abs=view["step_ms"])
        assert heard[-1] == pytest.approx(last, abs=2 * view["step_ms"])


def test_a_row_without_anchors_is_placed_by_the_media_time(tmp_path: Path) -> None:
    view = timeline(two_turns(tmp_path), Choice(row=row(1), why="test"))
    assert view["anchors"] == []
    assert view["packets"] == [1000.0]
    assert view["from_ms"] < -1000


def test_an_upload_counts_from_the_last_byte(tmp_path: Path) -> None:
    session = two_turns(tmp_path, mode="upload")
    view = timeline(session, Choice(row=row(0, speech_sent=SECOND, first_packet=2 * SECOND), why="test"))
    assert view["zero"] == "speech_sent"
    assert [ms for _, ms, _ in view["anchors"]] == [0.0, 1000.0]
    assert not any(peak is not None for peak in view["user"][0])


def test_peaks_are_the_samples_own(tmp_path: Path) -> None:
    session = two_turns(tmp_path)
    view = timeline(session, Choice(row=row(0, speech_end=SECOND), why="test"))
    highest = max(peak for peak in view["user"][1] if peak is not None)
    assert highest == round(int(np.max(session.user[:RATE])) * 100 / 32768)
    assert samples_to_ns(RATE, RATE) == SECOND
