"""Our client against Hugging Face's speech-to-speech over WebSocket: its detector, its pipeline, its frames."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from harness.core.clock import SystemClock
from harness.core.commands import AppendAudio, Cancel, Command, Commit, Configure, CreateResponse
from harness.core.connector import Connection, Peer, PeerOptions
from harness.core.errors import ConnectorError
from harness.core.events import (
    AudioReceived,
    ConnectionClosed,
    PeerError,
    ResponseDone,
    ResponseStarted,
    TextReceived,
    UserTranscript,
)
from harness.run.peers import make_peer
from tests.connectors.agent.talk import silence
from tests.connectors.test_contract import Talk
from tests.interop.speech_to_speech.conftest import HEARD, SAID, Server
from tests.run.live import hold

pytestmark = [
    pytest.mark.loopback,
    pytest.mark.interop,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("speech_to_speech"),
]
PATIENCE_S = 60.0
DIALECT = {"dialect": "hf-s2s"}


def url(server: Server) -> str:
    return f"ws://127.0.0.1:{server.port}/v1/realtime"


@pytest.mark.parametrize(
    ("turn", "settings"),
    [("vad", {}), ("vad", DIALECT), ("manual", DIALECT)],
    ids=["as any server", "vad", "manual"],
)
def test_a_turn_is_measured(server: Server, tmp_path: Path, turn: str, settings: dict[str, object]) -> None:
    run = hold(tmp_path, settings, peer=url(server), timeout_s=PATIENCE_S, turn=turn)
    row, events = run.row, run.sessions[0].events
    assert (row["status"], row["error"]) == ("ok", None)
    assert 0 < row["ttft_ms"] <= row["first_packet_ms"] <= row["first_audible_ms"]
    assert (row["endpoint_ms"] is None) == (turn == "manual")
    assert row["response_s"] == pytest.approx(server.answer_s, abs=0.05)
    assert row["text_order"] == "before_audio"
    assert row["usage"]["output_tokens"] == 12
    assert "".join(event.text for event in events if isinstance(event, TextReceived)) == SAID
    assert not [event for event in events if isinstance(event, PeerError)]
    if turn == "vad":
        assert [event.text for event in events if isinstance(event, UserTranscript)][-1] == HEARD


def with_session(server: Server, body: Callable[[Peer, Connection, Talk], Awaitable[None]], turn: str) -> None:
    """Run `body` with an open session."""

    async def main() -> None:
        options = PeerOptions(settings={"dialect": "hf-s2s"}, timeout_s=PATIENCE_S)
        async with make_peer(url(server), options, SystemClock()) as peer:
            talk = Talk()
            connection = await peer.connect(Configure(turn=turn, language="en"), talk.sink)
            try:
                await body(peer, connection, talk)
            finally:
                await connection.close()

    asyncio.run(main())


def tell(connection: Connection, *commands: Command) -> None:
    for command in commands:
        connection.send(connection.prepare(command))


def test_an_answer_is_cancelled_and_the_session_goes_on(server: Server) -> None:
    async def body(peer: Peer, connection: Connection, talk: Talk) -> None:
        for number, status in enumerate(("cancelled", "completed"), start=1):
            # No speech: in manual turns too, speech that its detector finds late interrupts this server's answer.
            tell(connection, AppendAudio(pcm=silence(1.0)), Commit(), CreateResponse())
            await talk.until(lambda number=number: len(talk.of(ResponseStarted)) == number)
            if status == "cancelled":
                tell(connection, Cancel())
            await talk.until(lambda number=number: len(talk.of(ResponseDone)) == number)
            assert talk.of(ResponseDone)[-1].status == status
        cancelled, completed = talk.of(ResponseDone)
        assert cancelled.reason == "client_cancelled"
        assert {event.response for event in talk.of(AudioReceived)} == {completed.response} != {cancelled.response}
        assert not talk.of(PeerError)

    with_session(server, body, "manual")


def test_a_second_session_is_refused_with_the_servers_own_code(server: Server) -> None:
    async def body(peer: Peer, connection: Connection, talk: Talk) -> None:
        second = Talk()
        with pytest.raises(ConnectorError, match="session_limit_reached"):
            await peer.connect(Configure(turn="vad"), second.sink)
        assert [(error.code, error.fatal) for error in second.of(PeerError)] == [("session_limit_reached", True)]
        assert [(closed.by, closed.code) for closed in second.of(ConnectionClosed)] == [("peer", 1008)]
        assert not talk.of(ConnectionClosed)

    with_session(server, body, "vad")
