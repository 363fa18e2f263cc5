"""Our client against Hugging Face's speech-to-speech over WebRTC: offer, data channel, Opus, its paced track."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from harness.core.events import AudioReceived, PeerError, ResponseDone, RtpReceived, TextReceived, UserTranscript
from tests.interop.speech_to_speech.conftest import HEARD, SAID, Server, until_free
from tests.run.live import hold

pytestmark = [
    pytest.mark.loopback,
    pytest.mark.interop,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("speech_to_speech"),
]
PACKET_S = 0.02


def test_a_turn_is_measured(server: Server, tmp_path: Path) -> None:
    peer = f"openai-webrtc:http://127.0.0.1:{server.port}/v1/realtime/calls"
    run = hold(tmp_path, peer=peer, timeout_s=60.0)
    row, events = run.row, run.sessions[0].events

    def of(kind: type) -> list[Any]:
        return [event for event in events if isinstance(event, kind)]

    assert (row["status"], row["error"]) == ("ok", None)
    assert row["ttft_ms"] > 0
    assert 0 < row["endpoint_ms"] < row["first_audible_ms"]
    assert row["first_packet_ms"] is None
    assert row["reasons"]["first_packet_ms"].startswith("continuous peer")
    assert "".join(event.text for event in of(TextReceived)) == SAID
    assert of(UserTranscript)[-1].text == HEARD
    (done,) = of(ResponseDone)
    assert (done.status, done.usage["output_tokens"]) == ("completed", 12)
    audio, packets = of(AudioReceived), of(RtpReceived)
    assert sum(event.samples / event.rate_hz for event in audio) >= server.answer_s - PACKET_S
    assert done.t_ns < audio[-1].t_ns  # the server has written everything while its track still speaks
    assert row["rtp_loss"] == 0
    steps = {(later.sequence - earlier.sequence) % 2**16 for earlier, later in itertools.pairwise(packets)}
    assert steps == {1}
    assert not of(PeerError)
    until_free(server)  # the call was ended, not left to time out
