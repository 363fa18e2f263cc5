"""One contract for every connector: what the runner may rely on, whoever the peer is.

Each connector is driven on real sockets or pipes, most of them against the agent's own server side; the same assertions
apply to all, as far as its declared profile goes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, Self
from urllib.parse import urlsplit

import pytest
import soxr

from connectors.agent import serve
from connectors.agent.knobs import read_knobs
from connectors.embedded import EmbeddedAgent
from harness.core.audibility import first_audible_sample
from harness.core.audio import int16_to_pcm16, pcm16_to_int16
from harness.core.clock import SystemClock
from harness.core.commands import AppendAudio, Cancel, Command, Commit, Configure, CreateResponse
from harness.core.connector import Connection, Peer, PeerOptions
from harness.core.errors import ConfigError, ConnectorError
from harness.core.events import (
    AudioReceived,
    ConnectionClosed,
    ConnectionPhase,
    Event,
    Interrupted,
    PeerError,
    PlaybackState,
    Received,
    ResponseDone,
    SessionReady,
)
from harness.run.peers import make_peer
from tests.connectors.agent.talk import RATE_HZ as SPOKEN_HZ
from tests.connectors.agent.talk import silence, spoken

pytestmark = pytest.mark.loopback
CLOCK = SystemClock()
PATIENCE_S = 30.0
QUICK = {"think_ms": "50", "answer_s": "0.3", "burst_x": "0"}
AGENT: dict[str, dict[str, str]] = {
    "openai": {},
    "openai over TLS": {"tls": "true"},
    "openai, beta": {"dialect": "beta"},
    "openai-webrtc": {"protocol": "openai-webrtc"},
    "openai-live": {"protocol": "openai-live"},
    "gemini": {"protocol": "gemini"},
    "moshi": {"protocol": "moshi"},
    "chat": {"protocol": "chat"},
    "small-webrtc": {"protocol": "small-webrtc"},
}
"""Connectors that speak to the agent, with the settings that make it so."""
EVERY = [*AGENT, "local"]
Body = Callable[[Peer], Awaitable[Any]]


class Talk:
    """One session: its events, and a way to wait for one."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def sink(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    async def until(self, met: Callable[[], Any], seconds: float = PATIENCE_S) -> None:
        async with asyncio.timeout(seconds):
            while not met():  # noqa: ASYNC110 - events come from the receive hook
                await asyncio.sleep(0.01)

    def audible(self) -> bool:
        """Whether anything that was received could be heard."""
        audio = self.of(AudioReceived)
        pcm = b"".join(event.pcm for event in audio)
        return bool(audio) and first_audible_sample(pcm16_to_int16(pcm), audio[0].rate_hz) is not None


class AgentBeside(EmbeddedAgent):
    """The embedded agent without a process of its own, which takes most of a short test's time to start."""

    async def __aenter__(self) -> Self:
        self._stack = AsyncExitStack()
        agent = await self._stack.enter_async_context(serve(read_knobs(self._knobs), tls=self._tls))
        settings = {**self._client, **({"ca": str(agent.ca)} if agent.ca else {})}
        self._peer = self._speaker(urlsplit(agent.url).netloc, settings)
        await self._stack.enter_async_context(self._peer)
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stack.aclose()


def held(name: str, body: Body, *, timeout_s: float = PATIENCE_S, process: bool = False, **knobs: str) -> Any:
    """Run `body` with the peer called `name`. process: the agent runs in one of its own, as for a user."""

    async def main() -> Any:
        settings = {**QUICK, **AGENT[name], **knobs} if name in AGENT else {}
        options = PeerOptions(settings=settings, timeout_s=timeout_s)
        beside = name in AGENT and not process
        made = AgentBeside(options, CLOCK) if beside else make_peer("agent" if name in AGENT else name, options, CLOCK)
        async with made as peer:
            return await body(peer)

    return asyncio.run(main())


class Mouth:
    """Says PCM to a connection in real time from a task of its own, silence once it has said everything."""

    def __init__(self, peer: Peer, connection: Connection) -> None:
        self._profile = peer.profile
        self._connection = connection
        self._queue = b""
        self.said = asyncio.Event()

    def say(self, pcm: bytes) -> None:
        samples = soxr.resample(pcm16_to_int16(pcm), SPOKEN_HZ, self._profile.input_rate_hz)
        self._queue += int16_to_pcm16(samples)
        self.said.clear()

    async def run(self) -> None:
        rate_hz, chunk_ms = self._profile.input_rate_hz, self._profile.chunk_ms or 20
        size = 2 * rate_hz * chunk_ms // 1000
        loop = asyncio.get_running_loop()
        next_s = loop.time()
        while True:
            piece, self._queue = self._queue[:size], self._queue[size:]
            if not piece:
                self.said.set()
            self._connection.send(self._connection.prepare(AppendAudio(pcm=piece.ljust(size, b"\0"))))
            next_s += chunk_ms / 1000
            await asyncio.sleep(max(0.0, next_s - loop.time()))


async def ask(peer: Peer, talk: Talk, stack: AsyncExitStack) -> tuple[Connection, Mouth]:
    """Open a session and say a sentence; by the peer's first turn mode, or in one piece where it takes an upload."""
    turn = "manual" if "manual" in peer.profile.turns else "vad"
    connection = await peer.connect(Configure(turn=turn, language="en"), talk.sink)
    mouth = Mouth(peer, connection)
    sentence = spoken(seconds=1.0)
    if peer.profile.upload:
        samples = soxr.resample(pcm16_to_int16(sentence), SPOKEN_HZ, peer.profile.input_rate_hz)
        connection.send(connection.prepare(AppendAudio(pcm=int16_to_pcm16(samples))))
        command(connection, Commit(), CreateResponse())
        return connection, mouth
    mouth.say(sentence)
    speaking = asyncio.create_task(mouth.run())
    stack.callback(speaking.cancel)
    async with asyncio.timeout(PATIENCE_S):
        await mouth.said.wait()
    if turn == "manual":
        if peer.profile.pacing != "input_clocked":
            speaking.cancel()
        command(connection, Commit(), CreateResponse())
    return connection, mouth


def command(connection: Connection, *commands: Command) -> None:
    for each in commands:
        connection.send(connection.prepare(each))


async def answered(peer: Peer, talk: Talk) -> None:
    if peer.profile.continuous:
        await talk.until(talk.audible)
    else:
        await talk.until(lambda: talk.of(ResponseDone))


@pytest.mark.parametrize("name", EVERY)
def test_a_turn_gives_the_same_events_in_the_same_order(name: str) -> None:
    async def body(peer: Peer) -> None:
        assert peer.kind
        assert peer.version
        assert peer.label
        assert "key" not in str({k: v for k, v in peer.config.items() if k != "key_env"}).lower()
        talk, begin_ns = Talk(), CLOCK.now_ns()
        async with AsyncExitStack() as stack:
            connection, _ = await ask(peer, talk, stack)
            await answered(peer, talk)
            drained: list[int] = []
            connection.when_drained(drained.append)
            await talk.until(lambda: drained)
            connection.ping()
            phases = [event.phase for event in talk.of(ConnectionPhase)]
            assert phases[0] == "started"
            assert phases[-2:] == ["ready", "configured"]
            assert peer.profile.upload or talk.of(SessionReady)  # HTTP has no session
            audio = talk.of(AudioReceived)
            assert all(event.rate_hz == peer.profile.output_rate_hz for event in audio)
            assert all(len(event.pcm) == 2 * event.samples for event in audio)
            assert talk.audible()
            if not peer.profile.continuous:
                done = talk.of(ResponseDone)[0]
                assert done.status == "completed"
                assert {event.response for event in audio} == {done.response}
                assert audio[0].t_ns <= done.t_ns
            for event in talk.of(Received):
                assert begin_ns <= (event.first_byte_ns or event.t_ns) <= event.t_ns <= CLOCK.now_ns()
        await connection.close()
        await connection.close()  # closing twice is harmless
        assert len(talk.of(ConnectionClosed)) == 1
        assert talk.of(ConnectionClosed)[0].by == "us"
        with pytest.raises(ConnectorError):
            connection.send(connection.prepare(AppendAudio(pcm=bytes(2 * peer.profile.input_rate_hz // 50))))

    held(name, body, process=True)


@pytest.mark.parametrize("name", EVERY)
def test_sessions_follow_each_other(name: str) -> None:
    async def body(peer: Peer) -> None:
        talks, ended = [Talk(), Talk()], []
        for talk in talks:
            async with AsyncExitStack() as stack:
                connection, _ = await ask(peer, talk, stack)
                await answered(peer, talk)
            await connection.close()
            ended.append(len(talk.events))
            assert talk.audible()
            assert not talk.of(PeerError)
            assert [event.phase for event in talk.of(ConnectionPhase)][-2:] == ["ready", "configured"]
            assert [event.by for event in talk.of(ConnectionClosed)] == ["us"]
        assert [len(talk.events) for talk in talks] == ended  # a session hears nothing of the next one
        assert talks[0].events[-1].t_ns <= talks[1].events[0].t_ns

    held(name, body)


@pytest.mark.parametrize("name", [name for name in AGENT if name not in ("chat", "moshi", "openai-live")])
def test_speech_interrupts(name: str) -> None:
    async def body(peer: Peer) -> None:
        talk = Talk()
        async with AsyncExitStack() as stack:
            connection = await peer.connect(Configure(turn="vad", language="en"), talk.sink)
            mouth = Mouth(peer, connection)
            mouth.say(spoken(seconds=1.0))
            speaking = asyncio.create_task(mouth.run())
            stack.callback(speaking.cancel)
            await talk.until(talk.audible)
            mouth.say(silence(0.3) + spoken("answer-en-02", seconds=1.5))

            def stopped() -> bool:
                cleared = any(event.state in ("cleared", "stopped") for event in talk.of(PlaybackState))
                cut = any(event.status == "cancelled" for event in talk.of(ResponseDone))
                return cleared or cut or bool(talk.of(Interrupted))

            await talk.until(stopped)
        await connection.close()

    held(name, body, answer_s="20", delivery="paced")


@pytest.mark.parametrize("name", AGENT)  # the local parrot has said everything before a cancel can reach it
def test_an_answer_is_cancelled_where_the_peer_can(name: str) -> None:
    async def body(peer: Peer) -> None:
        talk = Talk()
        async with AsyncExitStack() as stack:
            connection, _ = await ask(peer, talk, stack)
            if not peer.profile.cancel:
                with pytest.raises(ConfigError):
                    connection.prepare(Cancel())
                await connection.close()
                return
            await talk.until(lambda: talk.of(AudioReceived))
            command(connection, Cancel())
            await talk.until(lambda: talk.of(ResponseDone) or talk.of(Interrupted))
            assert talk.of(Interrupted) or talk.of(ResponseDone)[0].status == "cancelled"
        await connection.close()

    held(name, body, answer_s="20", delivery="paced")


@pytest.mark.parametrize("name", AGENT)
def test_a_peer_that_closes_is_noticed(name: str) -> None:
    async def body(peer: Peer) -> None:
        talk = Talk()
        async with AsyncExitStack() as stack:
            connection, _ = await ask(peer, talk, stack)
            if peer.profile.upload:  # the next turn opens a new connection: the answer failed, the session goes on
                await talk.until(lambda: talk.of(ResponseDone))
                assert (talk.of(ResponseDone)[0].status, talk.of(PeerError)[0].code) == ("failed", "closed")
            else:
                await talk.until(lambda: talk.of(ConnectionClosed))
                assert talk.of(ConnectionClosed)[0].by in ("peer", "network")
        await connection.close()
        assert len(talk.of(ConnectionClosed)) == 1

    held(name, body, answer_s="5", delivery="paced", close_after_ms="300")


@pytest.mark.parametrize("name", AGENT)
def test_a_peer_that_never_answers_can_be_left(name: str) -> None:
    async def body(peer: Peer) -> None:
        talk = Talk()
        async with AsyncExitStack() as stack:
            connection, _ = await ask(peer, talk, stack)
            await asyncio.sleep(0.8)
            assert not talk.audible()
            assert not talk.of(ResponseDone)
        async with asyncio.timeout(PATIENCE_S):
            await connection.close()
        assert len(talk.of(ConnectionClosed)) == 1

    held(name, body, never_answer="true")


@pytest.mark.parametrize("name", [name for name in AGENT if name != "chat"])  # HTTP has no set-up to wait for
def test_a_peer_that_is_slow_to_open_times_out(name: str) -> None:
    async def body(peer: Peer) -> None:
        talk = Talk()
        with pytest.raises(ConnectorError) as caught:
            await peer.connect(Configure(), talk.sink)
        assert caught.value.retryable
        assert caught.value.kind == "timeout"

    held(name, body, timeout_s=1.0, slow_ready_ms="30000")


@pytest.mark.parametrize("name", AGENT)
def test_a_refusal_is_told_in_words(name: str) -> None:
    async def body(peer: Peer) -> None:
        talk = Talk()
        if peer.profile.upload:
            async with AsyncExitStack() as stack:
                connection, _ = await ask(peer, talk, stack)
                await talk.until(lambda: any("503" in str(event) for event in talk.events))
            await connection.close()
            return
        with pytest.raises(ConnectorError, match="503") as caught:
            await peer.connect(Configure(), talk.sink)
        assert caught.value.retryable

    held(name, body, refuse_with="503")
