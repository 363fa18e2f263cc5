"""Wrote `golden/v1` once. Never again: an old session is worth something only as long as nobody rewrites it.

Two VAD turns: a pause that the peer takes for the end (early answer, cancelled, a late packet), the real answer with a
stall and leading silence, then a barge-in on it; every kind of event that version 1 knows, and one that it does not.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from harness.core import events as e
from harness.core.run_directory import RunDirectory
from harness.core.session.header import AudioInfo
from scoring.timing.rows import session_rows
from tests.scoring.timing.recordings import MS, Script, header, silence, tone


def golden() -> Script:
    s = Script(rate_hz=8000, out_rate_hz=8000).connected().stream()
    s.add(e.SessionReady(t_ns=s.at(-90), phase="created", peer_session="x", model="m", output_rate_hz=8000))
    s.add(e.ConnectionPhase(t_ns=s.at(-80), phase="configured"))
    s.add(e.RoundTrip(t_ns=s.at(-50), rtt_ns=1_234_567))
    s.turn(0, 300, 1000, clip_ms=(0, 1100)).send(0, 1100, chunk_ms=100)
    s.add(e.UserSpeechStopped(t_ns=s.at(620), audio_ms=400, item="i0", first_byte_ns=s.at(619.5), wire_bytes=90))
    s.begin(621, "early").audio(700, tone(200, 8000), "early")
    s.add(e.UserSpeechStarted(t_ns=s.at(760), audio_ms=700, item="i1"))
    s.add(e.Interrupted(t_ns=s.at(761), response="early", reason="turn_detected"))
    s.audio(765, tone(40, 8000), "early").done(770, "early", status="cancelled", usage={"total_tokens": 3})
    s.add(e.UserSpeechStopped(t_ns=s.at(1300), audio_ms=1000, item="i1"))
    s.add(e.InputCommitted(t_ns=s.at(1301), item="i1"))
    s.add(e.UserTranscript(t_ns=s.at(1302), text="what time is it", final=True, item="i1"))
    s.begin(1303, "r1").text(1400, " ", "r1").text(1405.25, "It is", "r1")
    s.audio(1450.5, silence(60, 8000), "r1").audio(1460, tone(100, 8000), "r1").audio(1700, tone(900, 8000), "r1")
    s.add(e.AudioDone(t_ns=s.at(1701), response="r1"))
    s.add(e.ToolCall(t_ns=s.at(1702), call="c", name="clock", arguments="{}"))
    s.add(e.RawReceived(t_ns=s.at(1703), name="rate_limits.updated"))
    s.done(1704, "r1", usage={"total_tokens": 9, "detail": {"audio": 7}}).ended(1704.5)
    s.add(e.LoopLag(t_ns=s.at(1452), window_ns=50 * MS, max_lag_ns=312_345, run_delay_ns=1000))
    s.add(e.Unknown(t_ns=s.at(1710), name="mood_detected", data={"mood": "calm", "weights": [0.5, 0.25]}))
    s.turn(1, 2100, 2400, clip_ms=(2000, 2500)).send(1100, 2500, chunk_ms=100)
    s.stop(2500.2, 2500)
    s.add(e.UserSpeechStarted(t_ns=s.at(2222.222), audio_ms=2100))
    s.add(e.PlaybackState(t_ns=s.at(2223), state="cleared", response="r1"))
    s.add(e.CommandSent(t_ns=s.at(2230), started_ns=s.at(2229.9), command="truncate", detail={"item": "i2"}))
    s.add(e.MediaAnchor(t_ns=s.at(2240), side="agent", sample=0, source="test"))
    s.add(e.RtpReceived(t_ns=s.at(2241), ssrc=1, sequence=2, timestamp=3))
    s.add(e.GoAway(t_ns=s.at(2600), time_left_ms=10))
    s.add(e.PeerError(t_ns=s.at(2650), code="limit", message="session over"))
    s.add(e.ConnectionClosed(t_ns=s.at(2660), by="peer", code=1001, reason="go away"))
    s.ended(2661, "closed", turn=1, reason="go away")
    return s.add(e.Note(t_ns=s.at(2662), code="golden", message="written once"))


def main(directory: Path) -> None:
    made = header(
        session="v1",
        queries=("q0", "q1"),
        chunk_samples=800,
        user=AudioInfo(file="user.flac", rate_hz=8000),
        agent=AudioInfo(file="agent.flac", rate_hz=8000),
        firstpacket="0.1.0",
    )
    session = golden().write(directory, made)
    RunDirectory(directory).write_lines("v1_rows.jsonl", session_rows(session))
    print(msgspec.json.format(msgspec.json.encode(session_rows(session))).decode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
