"""One contract for every connector: what the runner may rely on, whoever the peer is.

Each connector holds a whole manual turn on real sockets or pipes; the same assertions apply to all.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import numpy as np
import pytest

from harness.core.audio import int16_to_pcm16
from harness.core.clock import SystemClock
from harness.core.commands import AppendAudio, Commit, Configure, CreateResponse
from harness.core.connector import PeerOptions
from harness.core.errors import ConnectorError
from harness.core.events import (
    AudioReceived,
    ConnectionClosed,
    ConnectionPhase,
    Event,
    InputCommitted,
    Received,
    ResponseDone,
    ResponseStarted,
    SessionReady,
)
from harness.run.peers import make_peer

pytestmark = pytest.mark.loopback
CLOCK = SystemClock()
AGENT = {"think_ms": "50", "answer_s": "0.3", "burst_x": "0"}
PEERS = {
    "agent": PeerOptions(settings=AGENT),
    "agent over TLS": PeerOptions(settings={**AGENT, "tls": "true"}),
    "agent, beta": PeerOptions(settings={**AGENT, "dialect": "beta"}),
    "local": PeerOptions(),
}


class Talk:
    """One session: its events, and a way to wait for one."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def sink(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type) -> list:
        return [event for event in self.events if isinstance(event, kind)]

    async def until(self, kind: type, seconds: float = 20.0) -> None:
        async with asyncio.timeout(seconds):
            while not self.of(kind):  # noqa: ASYNC110 - events come from the receive hook
                await asyncio.sleep(0.01)


def with_peer(name: str, body):
    async def main():
        async with AsyncExitStack() as stack:
            peer = await stack.enter_async_context(make_peer(name.split()[0].rstrip(","), PEERS[name], CLOCK))
            return await body(peer)

    return asyncio.run(main())


async def turn(peer, talk: Talk):
    """Say half a second of tone, commit, wait for the end of the answer; return the open connection."""
    connection = await peer.connect(Configure(turn="manual", language="en"), talk.sink)
    rate = peer.profile.input_rate_hz
    tone = (8000 * np.sin(2 * np.pi * 440 * np.arange(rate // 2) / rate)).astype(np.int16)
    for begin in range(0, len(tone), rate // 50):
        pending = connection.send(connection.prepare(AppendAudio(pcm=int16_to_pcm16(tone[begin : begin + rate // 50]))))
        assert pending >= 0
        await asyncio.sleep(0.005)
    drained: list[int] = []
    connection.when_drained(drained.append)
    for command in (Commit(), CreateResponse()):
        connection.send(connection.prepare(command))
    await talk.until(ResponseDone)
    assert drained
    return connection


@pytest.mark.parametrize("name", PEERS)
def test_a_manual_turn_gives_the_same_events_in_the_same_order(name: str) -> None:
    async def body(peer) -> None:
        assert peer.kind
        assert peer.version
        assert peer.label
        assert "key" not in str({k: v for k, v in peer.config.items() if k != "key_env"}).lower()
        talk = Talk()
        begin_ns = CLOCK.now_ns()
        connection = await turn(peer, talk)
        phases = [event.phase for event in talk.of(ConnectionPhase)]
        assert phases[0] == "started"
        assert phases[-2:] == ["ready", "configured"]
        assert next(event.phase for event in talk.of(SessionReady)) == "created"
        order = [InputCommitted, ResponseStarted, AudioReceived, ResponseDone]
        firsts = [talk.of(kind)[0].t_ns for kind in order]
        assert firsts == sorted(firsts)
        done = talk.of(ResponseDone)[0]
        assert done.status == "completed"
        audio = talk.of(AudioReceived)
        assert {event.response for event in audio} == {done.response}
        assert all(event.rate_hz == peer.profile.output_rate_hz for event in audio)
        assert all(len(event.pcm) == 2 * event.samples for event in audio)
        for event in talk.of(Received):
            assert begin_ns <= (event.first_byte_ns or event.t_ns) <= event.t_ns <= CLOCK.now_ns()
        await connection.close()
        await connection.close()  # closing twice is harmless
        assert len(talk.of(ConnectionClosed)) == 1
        assert talk.of(ConnectionClosed)[0].by == "us"
        with pytest.raises(ConnectorError):
            connection.send(connection.prepare(Commit()))

    with_peer(name, body)


@pytest.mark.parametrize("name", PEERS)
def test_sessions_follow_each_other(name: str) -> None:
    async def body(peer) -> None:
        for _ in range(2):
            talk = Talk()
            connection = await turn(peer, talk)
            connection.ping()
            await connection.close()
            assert talk.of(AudioReceived)

    with_peer(name, body)
