"""The agent as a Gemini Live server over a real socket: raw messages, then our own connector against it."""

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
from websockets.asyncio.client import ClientConnection

from connectors.agent import Agent
from connectors.agent.gemini import GEMINI_PATHS
from connectors.gemini import GeminiLive
from connectors.session import CodecConnection
from harness.core.clock import SystemClock
from harness.core.commands import AppendAudio, Cancel, Commit, Configure, CreateResponse
from harness.core.connector import PeerOptions
from harness.core.errors import ConnectorError, PrerequisiteError
from harness.core.events import (
    AudioDone,
    AudioReceived,
    ConnectionClosed,
    ConnectionPhase,
    Event,
    GoAway,
    Interrupted,
    PeerError,
    ResponseDone,
    ResponseStarted,
    TextReceived,
    UserSpeechStarted,
    UserSpeechStopped,
    UserTranscript,
    WireFrame,
)
from tests.connectors.agent.talk import MANIFEST, PATIENCE_S, agent_with, answer_samples, spoken

pytestmark = pytest.mark.loopback
QUICK: dict[str, Any] = {"think_ms": 20, "burst_x": 0.0, "answer_s": 0.3}
RATE_HZ = 16_000
MANUAL: dict[str, Any] = {"realtimeInputConfig": {"automaticActivityDetection": {"disabled": True}}}
EXPLICIT = {"setup": json.dumps({"explicitVadSignal": True})}


def speech(seconds: float) -> bytes:
    samples = soxr.resample(np.frombuffer(spoken(seconds=seconds), dtype="<i2"), 24_000, RATE_HZ)
    return np.asarray(samples, dtype="<i2").tobytes()


class Raw:
    """One connection without any codec of ours."""

    def __init__(self, ws: ClientConnection, agent: Agent) -> None:
        self.ws, self.agent = ws, agent
        self.messages: list[dict[str, Any]] = []

    async def send(self, **message: Any) -> None:
        await self.ws.send(json.dumps(message))

    async def say(self, pcm: bytes) -> None:
        for at in range(0, len(pcm), 1280):
            blob = {"mimeType": f"audio/pcm;rate={RATE_HZ}", "data": base64.b64encode(pcm[at : at + 1280]).decode()}
            await self.send(realtimeInput={"audio": blob})

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            data = await self.ws.recv()
        assert isinstance(data, bytes)  # JSON in binary frames
        message: dict[str, Any] = json.loads(data)
        self.messages.append(message)
        return message

    async def until(self, key: str) -> dict[str, Any]:
        while True:
            message = await self.next()
            if key in message or key in message.get("serverContent", {}):
                return message

    def order(self) -> list[str]:
        names = [key for m in self.messages for key in m.get("serverContent", m)]
        return [name for index, name in enumerate(names) if index == 0 or names[index - 1] != name]

    def audio(self) -> bytes:
        parts = [p for m in self.messages for p in m.get("serverContent", {}).get("modelTurn", {}).get("parts", [])]
        return b"".join(base64.b64decode(part["inlineData"]["data"]) for part in parts)


@asynccontextmanager
async def raw(agent: Agent, path: str = GEMINI_PATHS[1], **setup: Any) -> AsyncIterator[Raw]:
    url = f"ws://{urlsplit(agent.url).netloc}{path}"
    async with websockets.connect(url, compression=None, max_size=None, ping_interval=None) as ws:
        talk = Raw(ws, agent)
        if setup:
            await talk.send(setup={"model": "models/m"} | setup)
            await talk.until("setupComplete")
        yield talk


def transcripts(**setup: Any) -> dict[str, Any]:
    return {"inputAudioTranscription": {}, "outputAudioTranscription": {}} | setup


@pytest.mark.parametrize("path", GEMINI_PATHS)
def test_manual_turn(path: str) -> None:
    async def turn() -> None:
        async with (
            agent_with(**QUICK, user_transcript="Hello?") as agent,
            raw(agent, path, **transcripts(**MANUAL)) as talk,
        ):
            await talk.send(realtimeInput={"activityStart": {}})
            await talk.say(speech(0.5))
            await talk.send(realtimeInput={"activityEnd": {}})
            done = await talk.until("turnComplete")
        expected = ["inputTranscription", "outputTranscription", "modelTurn", "generationComplete", "turnComplete"]
        assert talk.order() == ["setupComplete", *expected]
        (answered,) = agent.truth.records("response")
        assert talk.audio() == answer_samples(answered["answer"])[: 2 * round(0.3 * 24_000)]
        said = [m["serverContent"].get("outputTranscription", {}).get("text", "") for m in talk.messages[1:]]
        assert "".join(said) == MANIFEST[answered["answer"]]["text"]
        usage = done["usageMetadata"]
        assert usage["totalTokenCount"] == usage["promptTokenCount"] + usage["responseTokenCount"]
        (endpoint,) = agent.truth.records("endpoint")
        assert (endpoint["source"], endpoint["received_samples"]) == ("commit", RATE_HZ // 2)

    asyncio.run(turn())


def test_a_turn_is_complete_when_it_has_been_heard() -> None:
    async def turn() -> None:
        async with agent_with(**QUICK | {"answer_s": 0.5}) as agent, raw(agent, **MANUAL) as talk:
            await talk.send(realtimeInput={"activityStart": {}})
            await talk.say(speech(0.5))
            await talk.send(realtimeInput={"activityEnd": {}})
            await talk.until("turnComplete")
        (done,), (asked,) = agent.truth.records("done"), agent.truth.records("endpoint")
        assert done["before_ns"] - asked["t_ns"] >= 520_000_000  # it thought, then it was heard

    asyncio.run(turn())


def test_activity_start_interrupts() -> None:
    async def turn() -> None:
        paced: dict[str, Any] = {"think_ms": 0, "delivery": "paced", "chunk_ms": 20}
        async with agent_with(**paced) as agent, raw(agent, **MANUAL) as talk:
            await talk.send(realtimeInput={"activityStart": {}})
            await talk.say(speech(0.5))
            await talk.send(realtimeInput={"activityEnd": {}})
            await talk.until("modelTurn")
            await talk.send(realtimeInput={"activityStart": {}})
            await talk.until("turnComplete")
            assert talk.order()[-2:] == ["interrupted", "turnComplete"]
            assert "generationComplete" not in talk.order()
            await talk.say(speech(0.5))
            await talk.send(realtimeInput={"activityEnd": {}})
            await talk.until("modelTurn")
        assert [done["status"] for done in agent.truth.records("done")] == ["cancelled"]

    asyncio.run(turn())


def closed_by(message: dict[str, Any], setup: dict[str, Any], **knobs: Any) -> websockets.ConnectionClosedError:
    async def body() -> websockets.ConnectionClosedError:
        async with agent_with(**knobs) as agent, raw(agent, **setup) as talk:
            await talk.send(**message)
            with pytest.raises(websockets.ConnectionClosedError) as closed:
                await talk.until("turnComplete")
        return closed.value

    return asyncio.run(body())


@pytest.mark.parametrize(
    ("message", "setup"),
    [
        ({"realtimeInput": {"activityEnd": {}}}, {}),
        ({"realtimeInput": {"activityStart": {}}}, {"inputAudioTranscription": {}}),
        ({"setup": {"model": "models/m", "generationConfig": {"responseModalities": ["TEXT"]}}}, {}),
        ({"realtimeInput": {"activityEnd": {}}}, MANUAL),
        ({"weather": {}}, MANUAL),
    ],
    ids=["no setup", "signals beside detection", "modality", "too little audio", "unknown"],
)
def test_an_invalid_argument_closes_with_1007(message: dict[str, Any], setup: dict[str, Any]) -> None:
    closed = closed_by(message, setup)
    assert closed.rcvd is not None
    assert closed.rcvd.code == 1007
    assert closed.rcvd.reason


@pytest.mark.parametrize("error", ["server_error", "rate_limit"])
def test_a_failure_closes_with_1011(error: str) -> None:
    ask = {"clientContent": {"turns": [{"role": "user", "parts": [{"text": "Hi"}]}], "turnComplete": True}}
    closed = closed_by(ask, MANUAL, error=error)
    assert closed.rcvd is not None
    assert closed.rcvd.code == 1011
    assert closed.rcvd.reason


# --- our own client ---------------------------------------------------------------------------------------------


class Talk:
    """Our connector in a session with an agent; events in order."""

    def __init__(self, agent: Agent, **options: Any) -> None:
        host = urlsplit(agent.url).netloc
        self.peer = GeminiLive(PeerOptions(target=f"ws://{host}", **options), SystemClock())
        self.events: list[Event] = []
        self.connection: CodecConnection

    async def open(self, **configure: Any) -> None:
        self.connection = await self.peer.connect(Configure(**configure), self.events.append)

    def send(self, *commands: Any) -> None:
        for command in commands:
            self.connection.send(self.connection.prepare(command))

    def say(self, pcm: bytes) -> None:
        self.send(*(AppendAudio(pcm=pcm[at : at + 640]) for at in range(0, len(pcm), 640)))

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    async def until(self, kind: type, count: int = 1) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.of(kind)) < count:  # noqa: ASYNC110 - events come from the receive hook
                await asyncio.sleep(0.005)


def test_our_client_in_manual_turns() -> None:
    async def turns() -> None:
        async with agent_with(**QUICK, user_transcript="Hello?") as agent:
            talk = Talk(agent)
            await talk.open(turn="manual")
            for count in (1, 2):
                talk.say(speech(0.5))
                talk.send(Commit(), CreateResponse())
                await talk.until(ResponseDone, count)
            await talk.connection.close()
            codec = talk.connection._codec
            assert getattr(codec, "resumption_handle", "") == "handle-of-session-1"
        assert [event.phase for event in talk.of(ConnectionPhase)][-2:] == ["ready", "configured"]
        assert [event.response for event in talk.of(ResponseStarted)] == ["turn_1", "turn_2"]
        assert [(event.response, event.status) for event in talk.of(ResponseDone)] == [
            ("turn_1", "completed"),
            ("turn_2", "completed"),
        ]
        assert all(event.usage["totalTokenCount"] for event in talk.of(ResponseDone))
        assert [event.text for event in talk.of(UserTranscript)] == ["Hello?"] * 2
        order = [ResponseStarted, TextReceived, AudioReceived, AudioDone, ResponseDone]
        firsts = [talk.events.index(talk.of(kind)[0]) for kind in order]
        assert firsts == sorted(firsts)
        audio = [event for event in talk.of(AudioReceived) if event.response == "turn_1"]
        assert sum(event.samples for event in audio) == round(0.3 * 24_000)
        assert {event.rate_hz for event in audio} == {24_000}
        assert [(event.by, event.code) for event in talk.of(ConnectionClosed)] == [("us", 1000)]

    asyncio.run(turns())


@pytest.mark.parametrize("stop", ["cancel", "speech"])
def test_our_client_interrupts(stop: str) -> None:
    async def turns() -> None:
        async with agent_with(think_ms=0, delivery="paced", chunk_ms=20) as agent:
            talk = Talk(agent)
            await talk.open(turn="manual" if stop == "cancel" else "vad")
            talk.say(speech(1.0))
            if stop == "cancel":
                talk.send(Commit())
            else:
                talk.say(bytes(2 * RATE_HZ))
            await talk.until(AudioReceived, 2)
            if stop == "cancel":
                talk.send(Cancel())
            else:
                talk.say(speech(1.0))
            await talk.until(ResponseDone)
            await talk.connection.close()
        (done,) = talk.of(ResponseDone)[:1]
        assert (done.status, done.reason) == ("cancelled", "interrupted")
        assert talk.events.index(talk.of(Interrupted)[0]) < talk.events.index(done)
        assert done.response == "turn_1"

    asyncio.run(turns())


def test_our_client_is_told_of_activity_where_it_asked() -> None:
    async def turns() -> None:
        async with agent_with(**QUICK) as agent:
            talk = Talk(agent, settings=EXPLICIT)
            await talk.open(turn="vad", silence_ms=300)
            talk.say(speech(1.0) + bytes(2 * RATE_HZ))
            await talk.until(ResponseDone)
            await talk.connection.close()
        (started,), (stopped,) = talk.of(UserSpeechStarted), talk.of(UserSpeechStopped)
        assert 0 <= started.audio_ms < stopped.audio_ms <= 2_000

    asyncio.run(turns())


@pytest.mark.parametrize("knobs", [{"odd_bytes": True}, {"wav_headers": True}, {"broken_json": True}, {"flood": 50}])
def test_odd_deliveries_change_no_sample(knobs: dict[str, Any]) -> None:
    async def turns() -> None:
        async with agent_with(**QUICK, **knobs) as agent:
            talk = Talk(agent)
            await talk.open(turn="manual")
            talk.say(speech(0.5))
            talk.send(Commit())
            await talk.until(ResponseDone)
            await talk.connection.close()
        pcm = b"".join(event.pcm for event in talk.of(AudioReceived))
        assert len(pcm) == 2 * round(0.3 * 24_000)
        assert [event.code for event in talk.of(PeerError)] == (["unreadable"] if "broken_json" in knobs else [])

    asyncio.run(turns())


def test_a_late_packet_of_a_manual_turn_stays_with_it() -> None:
    async def turns() -> None:
        async with agent_with(**QUICK, late_delta_ms=20) as agent:
            talk = Talk(agent)
            await talk.open(turn="manual")
            talk.say(speech(0.5))
            talk.send(Commit())
            await talk.until(ResponseDone)
            (done,) = talk.of(ResponseDone)
            async with asyncio.timeout(PATIENCE_S):  # by its place: it may be here already
                while talk.events.index(talk.of(AudioReceived)[-1]) < talk.events.index(done):  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
            await talk.connection.close()
        assert len(talk.of(ResponseStarted)) == 1
        assert {event.response for event in talk.of(AudioReceived)} == {"turn_1"}

    asyncio.run(turns())


def test_go_away_is_told_before_the_end() -> None:
    async def turns() -> None:
        async with agent_with(goaway_ms=50) as agent:
            talk = Talk(agent)
            await talk.open(turn="manual")
            await talk.until(ConnectionClosed)
            await talk.connection.close()
        (leaving,), (closed,) = talk.of(GoAway), talk.of(ConnectionClosed)
        assert leaving.time_left_ms is not None
        assert talk.events.index(leaving) < talk.events.index(closed)
        assert (closed.by, closed.code) == ("peer", 1001)

    asyncio.run(turns())


def test_the_reason_of_a_refusal_is_kept() -> None:
    async def turns() -> None:
        async with agent_with() as agent:
            wrong = json.dumps({"generationConfig": {"responseModalities": ["TEXT"]}})
            talk = Talk(agent, settings={"setup": wrong})
            with pytest.raises(ConnectorError, match=r"1007.*responseModalities"):
                await talk.open(turn="vad")

    asyncio.run(turns())


def test_the_wire_is_recorded_without_the_handle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_GEMINI_KEY", "k-secret-123")

    async def turns() -> None:
        async with agent_with() as agent:
            resume = json.dumps({"sessionResumption": {"handle": "handle-of-before"}})
            talk = Talk(agent, wire=True, key_env="TEST_GEMINI_KEY", settings={"setup": resume})
            await talk.open(turn="vad")
            await talk.connection.close()
            assert "k-secret-123" not in talk.peer.url
            assert "handle-of" not in str(talk.peer.config)
        texts = [event.text for event in talk.of(WireFrame)]
        assert any("setupComplete" in text for text in texts)
        assert [text for text in texts if "newHandle" in text]
        assert not [text for text in texts if "handle-of" in text]

    asyncio.run(turns())


def test_the_official_service_needs_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    with pytest.raises(PrerequisiteError, match="GEMINI_API_KEY"):
        GeminiLive(PeerOptions(), SystemClock())
    monkeypatch.setenv("GEMINI_API_KEY", "k-secret-123")
    peer = GeminiLive(PeerOptions(), SystemClock())
    assert peer._headers() == {"x-goog-api-key": "k-secret-123"}
    assert "v1beta.GenerativeService.BidiGenerateContent" in peer.url
    assert "k-secret" not in peer.url + str(peer.config) + peer.label
    monkeypatch.setenv("GEMINI_API_KEY", "auth_tokens/abc")
    peer = GeminiLive(PeerOptions(), SystemClock())
    assert peer._headers() == {"Authorization": "Token auth_tokens/abc"}
    assert peer.url.endswith("v1alpha.GenerativeService.BidiGenerateContentConstrained")
    vertex = "wss://eu-aiplatform.googleapis.com/ws/google.cloud.aiplatform.v1beta1.LlmBidiService/BidiGenerateContent"
    peer = GeminiLive(PeerOptions(target=vertex, key_env="GEMINI_API_KEY"), SystemClock())
    assert peer._headers()["Authorization"].startswith("Token ")
    monkeypatch.setenv("GEMINI_API_KEY", "ya29.token")
    peer = GeminiLive(PeerOptions(target=vertex, key_env="GEMINI_API_KEY"), SystemClock())
    assert peer._headers() == {"Authorization": "Bearer ya29.token"}
