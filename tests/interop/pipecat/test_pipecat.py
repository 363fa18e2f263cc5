"""Our client against a bot of pipecat's own parts: SmallWebRTC, its turn logic, RTVI on the data channel."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.core.clock import SystemClock
from harness.core.commands import Configure
from harness.core.connector import PeerOptions
from harness.core.events import (
    AudioReceived,
    Interrupted,
    PeerError,
    PlaybackState,
    ResponseDone,
    ResponseStarted,
    TextReceived,
    UserTranscript,
)
from harness.run.peers import make_peer
from tests.connectors.agent.talk import RATE_HZ, spoken
from tests.connectors.test_contract import Mouth, Talk
from tests.interop.environments import environment
from tests.interop.processes import free_port, serving
from tests.run.live import hold

pytestmark = [pytest.mark.loopback, pytest.mark.interop, pytest.mark.timeout(900)]
BOT = Path(__file__).with_name("bot.py")
HEARD = "what should we do in the old town"
SAID = "Start at the river and walk up to the castle."
SPEECH = spoken(seconds=4.0)
SPEECH_S = len(SPEECH) / 2 / RATE_HZ
PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def bot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bot's address."""
    python, port = environment("pipecat"), free_port()
    folder = tmp_path_factory.mktemp("pipecat")
    (folder / "speech.pcm").write_bytes(SPEECH)
    command = [python, BOT, str(port), HEARD, SAID, folder / "speech.pcm"]
    with serving(command, port, log=folder / "bot.log", cwd=folder):
        yield f"http://127.0.0.1:{port}"


def until_ended(bot: str) -> None:
    """Every call's pipeline has seen its client leave."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with urllib.request.urlopen(f"{bot}/running", timeout=PATIENCE_S) as response:
            if json.load(response) == 0:
                return
        assert time.monotonic() < deadline, "a call goes on without its client"
        time.sleep(0.02)


def test_a_turn_is_measured(bot: str, tmp_path: Path) -> None:
    run = hold(tmp_path, peer=f"small-webrtc:{bot}/api/offer", timeout_s=PATIENCE_S)
    row, events = run.row, run.sessions[0].events

    def of(kind: type) -> list[Any]:
        return [event for event in events if isinstance(event, kind)]

    assert (row["status"], row["error"]) == ("ok", None)
    assert row["ttft_ms"] > 0
    assert 0 < row["endpoint_ms"] < row["first_audible_ms"]
    assert "".join(event.text for event in of(TextReceived) if event.kind == "text").strip() == SAID
    assert [event.text for event in of(UserTranscript) if event.final] == [HEARD]
    assert [event.status for event in of(ResponseDone)] == ["completed"]
    assert [event.state for event in of(PlaybackState)] == ["started", "stopped"]
    assert sum(event.samples / event.rate_hz for event in of(AudioReceived)) > SPEECH_S
    assert row["rtp_loss"] == 0
    assert not of(PeerError)
    until_ended(bot)


def test_speech_interrupts_the_bot(bot: str) -> None:
    async def call() -> None:
        options = PeerOptions(timeout_s=PATIENCE_S)
        async with make_peer(f"small-webrtc:{bot}/api/offer", options, SystemClock()) as peer:
            talk = Talk()
            connection = await peer.connect(Configure(turn="vad"), talk.sink)
            mouth = Mouth(peer, connection)
            speaking = asyncio.create_task(mouth.run())
            try:
                mouth.say(spoken(seconds=1.0))
                await talk.until(talk.audible)
                before = len(talk.of(Interrupted))
                mouth.say(spoken("answer-en-02", seconds=1.0))
                await talk.until(lambda: len(talk.of(Interrupted)) > before)
                await talk.until(lambda: len(talk.of(ResponseStarted)) == 2)
                assert [event.status for event in talk.of(ResponseDone)] == ["cancelled"]
                first, second = talk.of(ResponseStarted)
                assert talk.of(ResponseDone)[0].response == first.response != second.response
            finally:
                speaking.cancel()
                await connection.close()

    asyncio.run(call())
    until_ended(bot)
