"""Our client against a pipecat bot: SmallWebRTC, RTVI, the bot's own VAD and paced track."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.core.events import (
    AudioReceived,
    Event,
    PeerError,
    PlaybackState,
    ResponseDone,
    RtpReceived,
    SessionReady,
    TextReceived,
)
from tests.connectors.agent.talk import RATE_HZ, spoken
from tests.interop.environments import environment
from tests.interop.processes import free_port, serving
from tests.run.live import clip, hold

pytestmark = [pytest.mark.loopback, pytest.mark.interop, pytest.mark.timeout(900)]
HERE = Path(__file__).parent
SAID = "Start at the river."
SPEECH_S = 1.5


def test_turns_are_measured(tmp_path: Path) -> None:
    python = environment("pipecat")
    speech = tmp_path / "speech.pcm"
    speech.write_bytes(spoken(seconds=SPEECH_S))
    assert len(speech.read_bytes()) / 2 / RATE_HZ <= SPEECH_S
    port = free_port()
    with serving([python, HERE / "bot.py", str(port), speech], port, log=tmp_path / "bot.log"):
        run = hold(
            tmp_path / "run",
            peer=f"small-webrtc:http://127.0.0.1:{port}/api/offer",
            queries=[clip("en-01"), clip("en-02")],
            timeout_s=60.0,
        )
    assert [row["status"] for row in run.rows] == ["ok", "ok"]
    for row in run.rows:
        assert row["error"] is None
        assert 0 < row["endpoint_ms"] < row["first_audible_ms"]
        assert row["ttft_ms"] > 0
        assert row["rtp_loss"] == 0
        assert row["rtt_ms"] > 0
    for session in run.sessions:
        check(session.events)


def check(events: list[Event]) -> None:
    def of(kind: type) -> list[Any]:
        return [event for event in events if isinstance(event, kind)]

    assert of(SessionReady)[0].model == "pipecat-ai"
    assert {event.text for event in of(TextReceived)} == {SAID}
    assert [event.state for event in of(PlaybackState)] == ["started", "stopped"]
    assert [event.status for event in of(ResponseDone)] == ["completed"]
    assert {event.rate_hz for event in of(AudioReceived)} == {48_000}
    assert len(of(RtpReceived)) > 50 * SPEECH_S
    assert not of(PeerError)
