"""Both sides on one axis, sample by sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.core.session.reader import load_session
from harness.report.anchor import anchors_of
from harness.report.heard import Piece, agent_pieces, late_packets, origin_ns, peaks, played, render, user_pieces
from tests.report.sample_run import BASE_NS, MS, RATE, Plan, write_session

pytestmark = pytest.mark.unit


def test_pieces_land_at_their_instant_and_gaps_stay_unheard() -> None:
    samples = np.arange(1, 101, dtype=np.int16)
    pieces = [
        Piece(start_ns=10 * MS, sample=0, samples=50),
        Piece(start_ns=100 * MS, sample=50, samples=50),
    ]
    track = render(pieces, samples, 1000, 0, 140 * MS)
    assert len(track.signal) == 140
    assert track.signal[10] == 1
    assert track.signal[100] == 51
    assert not track.heard[:10].any()
    assert not track.heard[60:100].any()
    assert track.signal[139] == 90
    low, high = peaks(track, 10)
    assert high[0] is None
    assert (low[1], high[1]) == (0, 0)


def test_a_window_may_begin_inside_a_piece() -> None:
    samples = np.arange(100, dtype=np.int16)
    track = render([Piece(start_ns=0, sample=0, samples=100)], samples, 1000, 40 * MS, 60 * MS)
    assert track.signal.tolist() == list(range(40, 60))


def test_user_speech_ends_at_the_anchor_and_the_answer_starts_at_its_packet(tmp_path: Path) -> None:
    row = write_session(tmp_path, Plan(session="s", silence_ms=100))
    session = load_session(tmp_path / "s")
    assert origin_ns(session) == BASE_NS + 400 * MS
    anchors = anchors_of(row, origin_ns(session))
    window = (anchors["speech_start"], anchors["done"] + 5000 * MS)
    user = render(user_pieces(session), session.user, RATE, *window)
    last = int(np.flatnonzero(user.signal)[-1])
    assert abs(last / RATE * 1e9 - (anchors["speech_end"] - window[0])) < 2 * MS
    agent = render(agent_pieces(played(session), RATE), session.agent, RATE, *window)
    first_heard = int(np.flatnonzero(agent.heard)[0]) / RATE * 1e9 + window[0]
    assert abs(first_heard - anchors["first_packet"]) < MS
    first_loud = int(np.flatnonzero(np.abs(agent.signal.astype(int)) > 300)[0]) / RATE * 1e9 + window[0]
    assert 0 <= first_loud - anchors["first_audible"] < 30 * MS


def test_late_audio_is_not_heard(tmp_path: Path) -> None:
    write_session(tmp_path, Plan(session="s", late_packet=True))
    session = load_session(tmp_path / "s")
    assert len(late_packets(session)) == 1
    assert len(played(session)) == sum(1 for e in session.events if e.__struct_config__.tag == "audio_received") - 1


@pytest.mark.parametrize(("interrupt_ms", "heard_ms"), [(0, 3290), (1000, 1000)])
def test_a_flush_cuts_what_was_not_heard(tmp_path: Path, interrupt_ms: int, heard_ms: int) -> None:
    """Packets come four times faster than they play, so at 1 s all but 1 s of the answer waits in the queue."""
    write_session(tmp_path, Plan(session="s", answer_ms=3200, pace=4.0, interrupt_ms=interrupt_ms))
    session = load_session(tmp_path / "s")
    before = [packet for packet in played(session) if packet.packet.arrival_ns < packet.end_ns]
    if interrupt_ms:
        flush_ns = next(e.t_ns for e in session.events if e.__struct_config__.tag == "response_started")
        flush_ns += (8 + 120 + interrupt_ms) * MS
        before = [packet for packet in before if packet.start_ns < flush_ns]
    heard = sum(piece.samples for piece in agent_pieces(before, RATE)) * 1000 / RATE
    assert heard == pytest.approx(heard_ms, abs=2)
