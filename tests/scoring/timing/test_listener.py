"""The heard timeline of hostile recordings: many answers, and packets without a rate."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.core.errors import ScoringError
from harness.core.events import AudioReceived
from scoring.timing import listener
from scoring.timing.rows import session_rows
from tests.scoring.timing.recordings import Script, header, silence, tone, vad_turn

pytestmark = pytest.mark.unit


def test_the_playout_is_worked_out_once_however_many_answers_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script().connected().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1400).heard_stop(1400)
    for number in range(60):
        script.audio(1500 + number * 10, tone(20) if number else silence(20), response=f"r{number}")
    session = script.ended(3000).write(tmp_path, header())
    played = []
    play = listener.play
    monkeypatch.setattr(listener, "play", lambda *args, **more: played.append(more["buffer_ns"]) or play(*args, **more))
    (row,) = session_rows(session)
    assert row["stalls"] == 0
    # Zero buffer, the buffered model, and one without flushes for the barge-in.
    assert len(played) <= 4
    assert len(set(played)) == 2


@pytest.mark.parametrize("rate_hz", [0, -1, -24_000])
def test_a_packet_without_a_rate_is_one_clear_line(tmp_path: Path, rate_hz: int) -> None:
    session = vad_turn().write(tmp_path, header())
    session.events = tuple(
        msgspec.structs.replace(event, rate_hz=rate_hz) if isinstance(event, AudioReceived) else event
        for event in session.events
    )
    with pytest.raises(ScoringError, match=f"has audio at {rate_hz} Hz") as caught:
        session_rows(session)
    assert "\n" not in str(caught.value)
