"""The agent as an OpenAI Live server over a real socket: audio that never stops, found turns, politely ended."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import soxr
import websockets

from connectors.agent import Agent
from connectors.agent.live import LIVE_PATH
from connectors.openai_live import OpenAILive
from connectors.session import CodecConnection
from harness.core.clock import SystemClock
from harness.core.commands import AppendAudio, Configure
from harness.core.connector import PeerOptions
from harness.core.errors import ConfigError, ConnectorError, PrerequisiteError
from harness.core.events import (
    AudioReceived,
    ConnectionClosed,
    ConnectionPhase,
    Event,
    GoAway,
    PeerError,
    RawReceived,
    SessionReady,
    TextReceived,
    UserTranscript,
)
from tests.connectors.agent.talk import MANIFEST, PATIENCE_S, agent_with, answer_samples, spoken

pytestmark = pytest.mark.loopback
QUICK: dict[str, Any] = {"think_ms": 20, "burst_x": 0.0, "answer_s": 0.5}


def speech(seconds: float, rate_hz: int = 24_000) -> bytes:
    samples = soxr.resample(np.frombuffer(spoken(seconds=seconds), dtype="<i2"), 24_000, rate_hz)
    return np.asarray(samples, dtype="<i2").tobytes()


def loud(pcm: bytes) -> bool:
    return bool(np.frombuffer(pcm, dtype="<i2").any())


class Talk:
    """Our connector in a session with an agent; events in order."""

    def __init__(self, agent: Agent, **options: Any) -> None:
        host = urlsplit(agent.url).netloc
        self.peer = OpenAILive(PeerOptions(target=f"ws://{host}", **options), SystemClock())
        self.events: list[Event] = []
        self.connection: CodecConnection

    async def open(self) -> None:
        self.connection = await self.peer.connect(Configure(), self.events.append)

    def say(self, pcm: bytes) -> None:
        step = self.peer.profile.input_rate_hz // 10 * 2
        for at in range(0, len(pcm), step):
            self.connection.send(self.connection.prepare(AppendAudio(pcm=pcm[at : at + step])))

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def said(self) -> bytes:
        """Everything but the silence before and after the answer's packets."""
        packets = [event.pcm for event in self.of(AudioReceived)]
        sounding = [place for place, pcm in enumerate(packets) if loud(pcm)]
        return b"".join(packets[sounding[0] : sounding[-1] + 1]) if sounding else b""

    async def until(self, holds: Any) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not holds():  # noqa: ASYNC110 - events come from the receive hook
                await asyncio.sleep(0.005)

    def quiet_again(self) -> bool:
        packets = [event.pcm for event in self.of(AudioReceived)]
        return any(map(loud, packets)) and not any(map(loud, packets[-5:]))


@pytest.mark.parametrize("rate_hz", [24_000, 16_000])
def test_a_whole_turn(rate_hz: int) -> None:
    async def turn() -> None:
        async with agent_with(**QUICK, user_transcript="Hello?") as agent:
            talk = Talk(agent, settings={"rate_hz": str(rate_hz)})
            await talk.open()
            await talk.until(lambda: len(talk.of(AudioReceived)) >= 2)
            assert not any(loud(event.pcm) for event in talk.of(AudioReceived))
            talk.say(speech(1.0, rate_hz) + bytes(2 * rate_hz))
            await talk.until(talk.quiet_again)
            await talk.connection.close()
            await talk.connection.close()
        audio = talk.of(AudioReceived)
        assert {(event.rate_hz, event.samples, event.response) for event in audio} == {(rate_hz, rate_hz // 10, "")}
        (answered,) = agent.truth.records("response")
        assert answered["rate_hz"] == rate_hz
        said = talk.said()
        assert abs(len(said) // 2 - rate_hz // 2) <= rate_hz // 10
        if rate_hz == 24_000:
            assert said[: 2 * 12_000] == answer_samples(answered["answer"])[: 2 * 12_000]
        assert [event.text for event in talk.of(UserTranscript)] == ["Hello?"]
        assert "".join(event.text for event in talk.of(TextReceived)) == MANIFEST[answered["answer"]]["text"]
        assert [event.phase for event in talk.of(ConnectionPhase)][-2:] == ["ready", "configured"]
        (ready,) = talk.of(SessionReady)
        assert (ready.phase, ready.input_rate_hz, ready.output_rate_hz) == ("created", rate_hz, rate_hz)
        (last,) = [event for event in talk.of(RawReceived) if event.name == "session.closed"]
        assert last.usage == {"seconds": 2.0}
        assert [(event.by, event.code) for event in talk.of(ConnectionClosed)] == [("us", 1000)]
        assert not talk.of(PeerError)
        writes = [w for w in agent.truth.records("write") if w["kind"] == "audio"]
        assert sum(write["samples"] for write in writes) == rate_hz // 2

    asyncio.run(turn())


def test_speech_silences_the_answer() -> None:
    async def turn() -> None:
        async with agent_with(think_ms=0, answer_s=20.0) as agent:
            talk = Talk(agent)
            await talk.open()
            talk.say(speech(1.0) + bytes(48_000))
            await talk.until(lambda: len([e for e in talk.of(AudioReceived) if loud(e.pcm)]) >= 3)
            talk.say(speech(0.5))
            await talk.until(talk.quiet_again)
            await talk.connection.close()
        assert "barge_in" in [stop["reason"] for stop in agent.truth.records("stop")]
        assert len(talk.said()) < 2 * 24_000 * 19

    asyncio.run(turn())


def test_a_session_that_expires_says_so() -> None:
    async def turn() -> None:
        async with agent_with(goaway_ms=50) as agent:
            talk = Talk(agent)
            await talk.open()
            await talk.until(lambda: talk.of(ConnectionClosed))
            await talk.connection.close()
        assert talk.of(GoAway)
        assert [(event.code, event.fatal) for event in talk.of(PeerError)] == [("expired", True)]
        assert [event.by for event in talk.of(ConnectionClosed)] == ["peer"]

    asyncio.run(turn())


@pytest.mark.parametrize(
    ("knobs", "code"), [({"error": "rate_limit"}, "rate_limit_exceeded"), ({"error": "server_error"}, "server_error")]
)
def test_an_error_leaves_the_session_open(knobs: dict[str, Any], code: str) -> None:
    async def turn() -> None:
        async with agent_with(**knobs) as agent:
            talk = Talk(agent)
            await talk.open()
            talk.say(speech(1.0) + bytes(48_000))
            await talk.until(lambda: talk.of(PeerError))
            before = len(talk.of(AudioReceived))
            await talk.until(lambda: len(talk.of(AudioReceived)) > before + 2)
            await talk.connection.close()
        assert [event.code for event in talk.of(PeerError)] == [code]

    asyncio.run(turn())


def test_broken_messages_between_packets_cost_no_sample() -> None:
    async def turn() -> None:
        async with agent_with(**QUICK, broken_json=True, flood=20, text="none") as agent:
            talk = Talk(agent)
            await talk.open()
            talk.say(speech(1.0) + bytes(48_000))
            await talk.until(talk.quiet_again)
            await talk.connection.close()
        assert [event.code for event in talk.of(PeerError)] == ["unreadable"]
        assert not talk.of(TextReceived)
        assert abs(len(talk.said()) // 2 - 12_000) <= 2_400

    asyncio.run(turn())


def test_unknown_settings_are_refused() -> None:
    async def turn() -> None:
        async with agent_with() as agent:
            talk = Talk(agent, settings={"session": '{"turn_detection": null}'})
            with pytest.raises(ConnectorError, match="turn_detection"):
                await talk.open()

    asyncio.run(turn())


# --- without any codec of ours ----------------------------------------------------------------------------------


@asynccontextmanager
async def raw(agent: Agent) -> AsyncIterator[Any]:
    url = f"ws://{urlsplit(agent.url).netloc}{LIVE_PATH}"
    async with websockets.connect(url, compression=None, max_size=None, ping_interval=None) as ws:
        yield ws


async def following(ws: Any) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE_S):
        message: dict[str, Any] = json.loads(await ws.recv())
    return message


async def until(ws: Any, kind: str) -> dict[str, Any]:
    while True:
        message = await following(ws)
        if message["type"] == kind:
            return message


def test_the_server_waits_for_the_first_message() -> None:
    async def session() -> None:
        async with agent_with() as agent, raw(agent) as ws:
            await ws.send(json.dumps({"type": "session.input_audio.append", "audio": "AAA="}))
            first = await following(ws)
            assert first["type"] == "error"
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.4):
                    await ws.recv()
            start = {"type": "session.start", "event_id": "e1", "session": {"model": "gpt-live-1"}}
            await ws.send(json.dumps(start))
            started = await following(ws)
            assert (started["type"], started["client_event_id"]) == ("session.started", "e1")
            packet = await following(ws)
            assert packet == {"type": "session.output_audio.delta", "delta": base64.b64encode(bytes(4800)).decode()}

    asyncio.run(session())


def test_small_talk_is_confirmed_and_goodbye_said() -> None:
    async def session() -> None:
        async with agent_with() as agent, raw(agent) as ws:
            await ws.send(json.dumps({"type": "session.start", "session": {"model": "gpt-live-1"}}))
            await until(ws, "session.started")
            aside = {"type": "session.instructions.append", "content": "Hurry.", "delegation_id": None}
            await ws.send(json.dumps(aside))
            await until(ws, "session.instructions.appended")
            for kind in ("mute", "unmute"):
                await ws.send(json.dumps({"type": f"session.input_audio.{kind}"}))
                await until(ws, f"session.input_audio.{kind}d")
            await ws.send(json.dumps({"type": "session.close"}))
            closed = await until(ws, "session.closed")
            assert closed["reason"] == "close_requested"
            with pytest.raises(websockets.ConnectionClosedOK):
                await following(ws)

    asyncio.run(session())


# --- the connector ----------------------------------------------------------------------------------------------


def test_addresses_and_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SystemClock()
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(PrerequisiteError, match="OPENAI_API_KEY"):
        OpenAILive(PeerOptions(), clock)
    monkeypatch.setenv("OPENAI_API_KEY", "k-1")
    peer = OpenAILive(PeerOptions(), clock)
    assert (peer.url, peer.label) == ("wss://api.openai.com/v1/live/sessions", "openai-live-gpt-live-1")
    assert peer.profile.continuous
    qwen = {"dialect": "qwen"}
    with pytest.raises(ConfigError, match="workspace"):
        OpenAILive(PeerOptions(settings=qwen), clock)
    with pytest.raises(ConfigError, match="fixed rates"):
        OpenAILive(PeerOptions(target="ws://127.0.0.1", settings=qwen | {"rate_hz": "16000"}), clock)
    target = "wss://w1.ap-southeast-1.maas.aliyuncs.com"
    monkeypatch.delenv("DASHSCOPE_API_KEY", raising=False)
    with pytest.raises(PrerequisiteError, match="DASHSCOPE_API_KEY"):
        OpenAILive(PeerOptions(target=target, settings=qwen), clock)
    monkeypatch.setenv("DASHSCOPE_API_KEY", "k-2")
    peer = OpenAILive(PeerOptions(target=target, settings=qwen), clock)
    assert peer.url == f"{target}/api-ws/v1/realtime?model=qwen-audio-3.1-live"
    assert (peer.profile.input_rate_hz, peer.profile.output_rate_hz) == (16_000, 24_000)
    assert "k-2" not in str(peer.config) + peer.label
