"""OpenAI over WebRTC and SmallWebRTC: how a call is set up, authorised, held and ended; what servers can do wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
from aiohttp import web

from connectors.codecs.opus import LOOKAHEAD_SAMPLES, PACKET_SAMPLES, OpusEncoder
from connectors.openai_webrtc import OpenAIWebRTC
from connectors.small_webrtc import SmallWebRTC
from harness.core.audio import int16_to_pcm16, pcm16_to_int16
from harness.core.clock import SystemClock
from harness.core.commands import AppendAudio, Cancel, Commit, Configure, CreateResponse
from harness.core.connector import PeerOptions
from harness.core.errors import ConfigError, ConnectorError, PrerequisiteError
from harness.core.events import (
    AudioReceived,
    ConnectionClosed,
    ConnectionPhase,
    Event,
    Note,
    PeerError,
    PlaybackState,
    RawReceived,
    ResponseDone,
    RoundTrip,
    SessionReady,
    UserSpeechStarted,
)
from tests.connectors.transports.rtc_server import Call, RtcServer, rtc_server, until

pytestmark = pytest.mark.loopback
CLOCK = SystemClock()
KEY = "sk-not-for-the-record-123"
TONE = int16_to_pcm16((9000 * np.sin(2 * np.pi * 440 * np.arange(25 * PACKET_SAMPLES) / 48_000)).astype(np.int16))
ANSWER = OpusEncoder().encode(TONE)
SILENCE = OpusEncoder().encode(bytes(2 * PACKET_SAMPLES))
SESSION = {"type": "realtime", "id": "sess_1", "model": "gpt-realtime"}


def greeting(call: Call) -> None:
    """The order of the protocol sheet, section 3: session.created when the channel opens, the answer on the track."""

    async def play() -> None:
        call.say(type="output_audio_buffer.started", response_id="resp_1")
        for payload in ANSWER:
            call.speak(payload)
            await asyncio.sleep(0.01)
        call.say(type="response.done", response={"id": "resp_1", "status": "completed"})
        call.say(type="output_audio_buffer.stopped", response_id="resp_1")

    def take(text: str) -> None:
        kind = json.loads(text)["type"]
        if kind == "session.update":
            call.say(type="session.updated", session=SESSION)
        elif kind == "input_audio_buffer.commit":
            call.say(type="input_audio_buffer.committed", item_id="item_1")
        elif kind == "response.create":
            call.say(type="response.created", response={"id": "resp_1"})
            tasks.append(asyncio.get_running_loop().create_task(play()))

    async def greet() -> None:
        await call.opened.wait()
        call.say(type="session.created", session=SESSION)

    tasks: list[asyncio.Task[None]] = []
    call.on_message = take
    tasks.append(asyncio.get_running_loop().create_task(greet()))


Body = Callable[[RtcServer, list[Event]], Awaitable[Any]]


def served(body: Body) -> tuple[RtcServer, list[Event]]:
    async def main() -> tuple[RtcServer, list[Event]]:
        events: list[Event] = []
        async with rtc_server() as server:
            server.on_call = greeting
            await body(server, events)
        return server, events

    return asyncio.run(main())


def of(events: list[Event], kind: type) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def client(server: RtcServer, model: str | None = None, key_env: str | None = None, **settings: str) -> OpenAIWebRTC:
    options = PeerOptions(
        target=f"{server.url}/v1/realtime/calls", model=model, key_env=key_env, settings=settings, timeout_s=20
    )
    return OpenAIWebRTC(options, CLOCK)


def test_a_manual_turn():
    async def body(server: RtcServer, events: list[Event]) -> None:
        connection = await client(server).connect(Configure(turn="manual", voice="marin"), events.append)
        connection.ping()
        for at in range(0, len(TONE), 2 * PACKET_SAMPLES):
            assert connection.send(connection.prepare(AppendAudio(pcm=TONE[at : at + 2 * PACKET_SAMPLES]))) == 0
            await asyncio.sleep(0.002)
        connection.send(connection.prepare(Commit()))
        connection.send(connection.prepare(CreateResponse()))
        await until(lambda: [e for e in of(events, PlaybackState) if e.state == "stopped"])
        connection.send(connection.prepare(Cancel(response="resp_1")))
        await until(lambda: "output_audio_buffer.clear" in server.calls[0].messages[-1])
        await until(lambda: len(server.calls[0].heard) >= 25)
        await until(lambda: of(events, RoundTrip))
        await connection.close()
        await connection.close()

    server, events = served(body)
    (call,) = server.calls
    said = [json.loads(text) for text in call.messages]
    assert [each["type"] for each in said] == [
        "session.update",
        "input_audio_buffer.commit",
        "response.create",
        "response.cancel",
        "output_audio_buffer.clear",
    ]
    audio = said[0]["session"]["audio"]
    assert "format" not in audio["input"]
    assert audio["output"] == {"voice": "marin"}
    assert [event.phase for event in of(events, ConnectionPhase)] == [
        "started",
        "tcp",
        "upgrade",
        "ready",
        "configured",
    ]
    assert not of(events, Note)
    assert not of(events, PeerError)
    assert of(events, RawReceived)[0].name == "201 /v1/realtime/calls/rtc_1"
    heard = np.concatenate([pcm16_to_int16(event.pcm) for event in of(events, AudioReceived)])
    assert np.abs(heard).max() > 5000
    assert {event.rate_hz for event in of(events, AudioReceived)} == {48_000}
    assert [event.by for event in of(events, ConnectionClosed)] == ["us"]
    assert [(method, path) for method, path, *_ in server.requests] == [
        ("POST", "/v1/realtime/calls"),
        ("DELETE", "/v1/realtime/calls/rtc_1"),
    ]
    _, _, headers, offer = server.requests[0]
    assert headers["Content-Type"] == "application/sdp"
    assert headers["Accept"] == "application/sdp"
    assert offer.startswith(b"v=0")
    assert "Authorization" not in headers


def test_the_session_goes_up_with_the_offer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RTC_TEST_KEY", KEY)

    async def body(server: RtcServer, events: list[Event]) -> None:
        peer = client(server, "gpt-realtime-mini", "RTC_TEST_KEY", auth="multipart")
        connection = await peer.connect(Configure(turn="vad", instructions="Be brief."), events.append)
        await connection.close()
        assert KEY not in json.dumps(peer.config)

    server, events = served(body)
    _, path, headers, sent = server.requests[0]
    assert path == "/v1/realtime/calls"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert headers["Content-Type"].startswith("multipart/form-data")
    assert b'name="sdp"' in sent
    assert b"Content-Type: application/sdp" in sent
    part = sent.split(b'name="session"')[1].partition(b"\r\n\r\n")[2].split(b"\r\n--")[0]
    session = json.loads(part)
    assert (session["type"], session["model"], session["instructions"]) == (
        "realtime",
        "gpt-realtime-mini",
        "Be brief.",
    )
    assert session["audio"]["input"]["turn_detection"] == {"type": "server_vad"}
    assert server.requests[1][2]["Authorization"] == f"Bearer {KEY}"
    assert KEY not in repr(events)


def test_an_ephemeral_secret_is_bought_first(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RTC_TEST_KEY", KEY)

    async def body(server: RtcServer, events: list[Event]) -> None:
        peer = client(server, "gpt-realtime", "RTC_TEST_KEY", auth="ephemeral")
        await (await peer.connect(Configure(), events.append)).close()

    server, events = served(body)
    mint, call, _ = server.requests
    assert (mint[0], mint[1]) == ("POST", "/v1/realtime/client_secrets")
    assert mint[2]["Authorization"] == f"Bearer {KEY}"
    assert json.loads(mint[3])["session"]["model"] == "gpt-realtime"
    assert (call[1], call[2]["Authorization"]) == ("/v1/realtime/calls", "Bearer ek_test_1")
    assert "ek_test_1" not in repr(events)


def test_headers_of_the_user_stay_masked_beside_an_ephemeral_secret(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TEST_KEY", "sk-test")
    monkeypatch.setenv("TEST_HEADER", "tenant-sesame")

    def refuse(request: web.BaseRequest) -> web.Response | None:
        if request.path.endswith("/client_secrets"):
            return None
        return web.Response(status=401, text="sk-test ek_test_1 tenant-sesame")

    async def body(server: RtcServer, events: list[Event]) -> None:
        server.refuse = refuse
        options = PeerOptions(
            target=f"{server.url}/v1/realtime/calls",
            key_env="TEST_KEY",
            headers=("X-Tenant: $TEST_HEADER",),
            settings={"auth": "ephemeral"},
        )
        with pytest.raises(ConnectorError) as caught:
            await OpenAIWebRTC(options, CLOCK).connect(Configure(), events.append)
        assert "([key] [key] [key])" in str(caught.value)

    served(body)


@pytest.mark.parametrize("location", ["http://[::1/x", "//[bad", ""])
def test_a_location_that_is_none_is_let_go(location: str):
    async def body(server: RtcServer, events: list[Event]) -> None:
        server.location = location
        connection = await client(server).connect(Configure(), events.append)
        await connection.close()

    server, _ = served(body)
    assert [method for method, *_ in server.requests] == ["POST"]


def test_the_model_stands_in_the_url_where_nothing_else_says_it():
    async def body(server: RtcServer, events: list[Event]) -> None:
        await (await client(server, "mini").connect(Configure(), events.append)).close()

    server, _ = served(body)
    assert server.requests[0][1] == "/v1/realtime/calls?model=mini"


def test_the_key_does_not_follow_a_location_elsewhere(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RTC_TEST_KEY", KEY)

    async def body(server: RtcServer, events: list[Event]) -> None:
        server.location = "http://127.0.0.2:9/v1/realtime/calls/rtc_1"
        await (await client(server, None, "RTC_TEST_KEY").connect(Configure(), events.append)).close()

    server, events = served(body)
    assert len(server.requests) == 1
    assert not of(events, RawReceived)


REFUSALS = [
    (401, "the key is wrong or missing", False),
    (404, "no such path", False),
    (429, "rate limit reached", True),
    (503, "refused", True),
    (302, "refused", False),
]


@pytest.mark.parametrize(("status", "words", "retryable"), REFUSALS)
def test_a_refusal(status: int, words: str, retryable: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RTC_TEST_KEY", KEY)

    async def body(server: RtcServer, events: list[Event]) -> None:
        headers = {"Retry-After": "7", "Location": "http://127.0.0.1:9/"}
        text = f"you sent {KEY}\nand it is wrong"
        server.refuse = lambda request: web.Response(status=status, text=text, headers=headers)
        with pytest.raises(ConnectorError, match=words) as caught:
            await client(server, None, "RTC_TEST_KEY").connect(Configure(), events.append)
        error = caught.value
        assert (error.kind, error.code, error.retryable, error.retry_after_s) == ("peer", str(status), retryable, 7.0)
        assert "you sent [key] and it is wrong" in str(error)
        assert KEY not in repr(error)

    served(body)


def test_nobody_listens():
    async def main() -> None:
        options = PeerOptions(target="http://127.0.0.1:9/v1/realtime/calls")
        with pytest.raises(ConnectorError, match="nothing listens there") as caught:
            await OpenAIWebRTC(options, CLOCK).connect(Configure(), lambda event: None)
        assert caught.value.retryable

    asyncio.run(main())


def test_a_server_that_never_opens_the_session():
    async def body(server: RtcServer, events: list[Event]) -> None:
        server.on_call = lambda call: None
        peer = OpenAIWebRTC(PeerOptions(target=server.url, timeout_s=2.0), CLOCK)
        with pytest.raises(ConnectorError, match="did not open the session"):
            await peer.connect(Configure(), events.append)
        await until(lambda: server.requests[-1][0] == "DELETE")

    served(body)


def test_a_peer_that_leaves_in_the_middle():
    async def body(server: RtcServer, events: list[Event]) -> None:
        connection = await client(server).connect(Configure(), events.append)
        await server.calls[0].pc.close()
        await until(lambda: of(events, ConnectionClosed))
        with pytest.raises(ConnectorError, match="closed"):
            connection.send(connection.prepare(Commit()))
        await connection.close()

    _, events = served(body)
    assert [event.by for event in of(events, ConnectionClosed)] == ["peer"]


def test_an_error_while_setting_up_is_the_peers_own():
    def busy(call: Call) -> None:
        async def say() -> None:
            await call.opened.wait()
            call.say(type="error", error={"code": "session_limit_reached", "message": "one at a time"})

        call.on_message = lambda text: None
        running.append(asyncio.get_running_loop().create_task(say()))

    running: list[asyncio.Task[None]] = []

    async def body(server: RtcServer, events: list[Event]) -> None:
        server.on_call = busy
        with pytest.raises(ConnectorError, match="one at a time") as caught:
            await client(server).connect(Configure(), events.append)
        assert caught.value.retryable

    _, events = served(body)
    assert of(events, PeerError)[0].code == "session_limit_reached"


def test_options():
    def make(target: str = "http://127.0.0.1:1", **settings: str) -> OpenAIWebRTC:
        return OpenAIWebRTC(PeerOptions(target=target, settings=settings), CLOCK)

    with pytest.raises(ConfigError, match="did you mean buffer_ms"):
        make(bufer_ms="1")
    with pytest.raises(ConfigError, match="buffer_ms"):
        make(buffer_ms="-1")
    with pytest.raises(ConfigError, match="no HTTP URL"):
        make("ws://127.0.0.1:1")
    with pytest.raises(ConfigError, match="not a JSON object"):
        make(session="[]")
    peer = make()
    assert peer.url == "http://127.0.0.1:1/v1/realtime/calls"
    assert peer.profile.encoder_lookahead_samples == LOOKAHEAD_SAMPLES
    assert peer.config["buffer_ms"] == 40
    with pytest.raises(ConfigError, match="name the bot"):
        SmallWebRTC(PeerOptions(), CLOCK)


def test_the_official_service_needs_a_key(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(PrerequisiteError, match="OPENAI_API_KEY"):
        OpenAIWebRTC(PeerOptions(), CLOCK)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    peer = OpenAIWebRTC(PeerOptions(), CLOCK)
    assert (peer.label, peer.url) == ("openai-webrtc-gpt-realtime", "https://api.openai.com/v1/realtime/calls")


# --- SmallWebRTC --------------------------------------------------------------------------------------------------


def bot(call: Call) -> None:
    def rtvi(kind: str, **data: Any) -> None:
        call.say(label="rtvi-ai", type=kind, data=data)

    async def play() -> None:
        rtvi("bot-ready", version="2.2.0", about={"library": "pipecat-ai"})
        rtvi("user-started-speaking")
        rtvi("bot-llm-started")
        rtvi("bot-llm-stopped")
        rtvi("bot-started-speaking")
        for payload in ANSWER + SILENCE:
            call.speak(payload)
            await asyncio.sleep(0.005)
        rtvi("bot-stopped-speaking")

    def take(text: str) -> None:
        if text != "ping" and json.loads(text)["type"] == "client-ready":
            tasks.append(asyncio.get_running_loop().create_task(play()))

    tasks: list[asyncio.Task[None]] = []
    call.on_message = take


def test_a_call_to_a_bot():
    async def body(server: RtcServer, events: list[Event]) -> None:
        server.on_call = bot
        settings = {"request_data": '{"who": "me"}'}
        peer = SmallWebRTC(PeerOptions(target=server.url, settings=settings), CLOCK)
        connection = await peer.connect(Configure(), events.append)
        with pytest.raises(ConfigError, match="RTVI has no message for commit"):
            connection.prepare(Commit())
        await until(lambda: of(events, ResponseDone))
        await until(lambda: server.calls[0].messages.count("ping") >= 2)
        await connection.close()

    server, events = served(body)
    ((method, path, _, sent),) = server.requests
    assert (method, path) == ("POST", "/api/offer")
    offer = json.loads(sent)
    assert (offer["type"], offer["request_data"]) == ("offer", {"who": "me"})
    assert [event.phase for event in of(events, ConnectionPhase)] == [
        "started",
        "tcp",
        "upgrade",
        "ready",
        "configured",
    ]
    assert of(events, SessionReady)[0].model == "pipecat-ai"
    assert of(events, UserSpeechStarted)
    assert [event.state for event in of(events, PlaybackState)] == ["started", "stopped"]
    heard = np.concatenate([pcm16_to_int16(event.pcm) for event in of(events, AudioReceived)])
    assert np.abs(heard).max() > 5000


@pytest.mark.parametrize("body_sent", [b"", b"{}", b'{"sdp": 5}', b"[]", b'{"sdp": "x", "type": "answer"}'])
def test_an_answer_of_a_bot_that_is_none(body_sent: bytes):
    async def body(server: RtcServer, events: list[Event]) -> None:
        server.refuse = lambda request: web.Response(body=body_sent, content_type="application/json")
        with pytest.raises(ConnectorError, match="answer") as caught:
            await SmallWebRTC(PeerOptions(target=server.url), CLOCK).connect(Configure(), events.append)
        assert caught.value.kind == "protocol"

    served(body)
