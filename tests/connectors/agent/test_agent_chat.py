"""The agent's chat completions: OpenAI's own Python client, the knobs, and our own client beside the truth log."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import wave
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest
import websockets
from openai import AsyncOpenAI, BadRequestError, InternalServerError, RateLimitError

from connectors.chat import ChatCompletions
from connectors.codecs.chat_completions_server import read_chat_request
from connectors.codecs.openai_requests import Invalid
from harness.core.clock import SystemClock
from harness.core.commands import AppendAudio, Cancel, Commit, Configure, CreateResponse
from harness.core.connector import PeerOptions
from harness.core.errors import ConfigError, ConnectorError
from harness.core.events import (
    AudioReceived,
    ConnectionClosed,
    ConnectionPhase,
    Event,
    PeerError,
    RawReceived,
    ResponseDone,
    ResponseStarted,
    TextReceived,
    WireFrame,
)
from harness.run.peers import make_peer
from tests.connectors.agent.talk import PATIENCE_S, RATE_HZ, agent_with, answer_samples, spoken

pytestmark = pytest.mark.loopback
CLOCK = SystemClock()
QUICK: dict[str, Any] = {"think_ms": 20, "burst_x": 0.0, "answer_s": 0.5}


def base_of(agent: Any) -> str:
    url: str = agent.url.replace("ws", "http", 1).removesuffix("/realtime")
    return url


def wav(pcm: bytes, rate_hz: int = RATE_HZ) -> str:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate_hz)
        out.writeframes(pcm)
    return base64.b64encode(file.getvalue()).decode()


def said(pcm: bytes) -> list[Any]:
    part = {"type": "input_audio", "input_audio": {"data": wav(pcm), "format": "wav"}}
    return [{"role": "user", "content": [part]}]


# --- OpenAI's client --------------------------------------------------------------------------------------------


def with_openai(knobs: dict[str, Any], body: Any) -> None:
    async def main() -> None:
        async with (
            agent_with(**knobs) as agent,
            AsyncOpenAI(api_key="x", base_url=base_of(agent), max_retries=0) as client,
        ):
            await body(agent, client)

    asyncio.run(main())


@pytest.mark.interop
def test_openais_client_streams_a_spoken_answer() -> None:
    async def body(agent: Any, client: AsyncOpenAI) -> None:
        stream = await client.chat.completions.create(
            model="gpt-audio-1.5",
            modalities=["text", "audio"],
            audio={"voice": "alloy", "format": "pcm16"},
            messages=said(spoken(seconds=0.5)),
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
        assert {chunk.id for chunk in chunks} == {"chatcmpl-1"}
        assert {chunk.model for chunk in chunks} == {"gpt-audio-1.5"}
        deltas = [chunk.choices[0].delta.to_dict() for chunk in chunks if chunk.choices]
        pieces: list[Any] = [delta.get("audio") for delta in deltas]
        audio = b"".join(base64.b64decode(piece["data"]) for piece in pieces if piece and "data" in piece)
        assert len(audio) == RATE_HZ  # half a second of two bytes a sample
        heard = "".join(piece.get("transcript", "") for piece in pieces if piece)
        (written,) = agent.truth.records("response")
        assert audio == answer_samples(written["answer"])[: len(audio)]
        assert heard.strip()
        assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
        assert chunks[-1].choices == []
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.total_tokens > 0

    with_openai(QUICK, body)


@pytest.mark.interop
def test_openais_client_takes_a_whole_answer_and_goes_on() -> None:
    async def body(agent: Any, client: AsyncOpenAI) -> None:
        messages = said(spoken(seconds=0.5))
        for turn in (1, 2):
            answer = await client.chat.completions.create(
                model="gpt-audio",
                modalities=["text", "audio"],
                audio={"voice": "alloy", "format": "wav"},
                messages=messages,
            )
            assert answer.id == f"chatcmpl-{turn}"
            audio = answer.choices[0].message.audio
            assert audio is not None
            with wave.open(io.BytesIO(base64.b64decode(audio.data))) as file:
                assert file.getparams()[:4] == (1, 2, RATE_HZ, RATE_HZ // 2)
            assert audio.transcript
            messages = [*messages, {"role": "assistant", "audio": {"id": audio.id}}, *said(spoken(seconds=0.5))]

    with_openai(QUICK, body)


@pytest.mark.interop
def test_openais_client_understands_every_refusal() -> None:
    ask: dict[str, Any] = {"model": "m", "messages": said(spoken(seconds=0.5)), "stream": True}
    ask |= {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "pcm16"}}

    async def limited(agent: Any, client: AsyncOpenAI) -> None:
        with pytest.raises(RateLimitError) as caught:
            await client.chat.completions.create(**ask)
        assert caught.value.code == "rate_limit_exceeded"
        assert caught.value.response.headers["retry-after"] == "1"

    async def broken(agent: Any, client: AsyncOpenAI) -> None:
        with pytest.raises(InternalServerError):
            await client.chat.completions.create(**{**ask, "stream": False, "audio": {"voice": "a", "format": "wav"}})

    async def wrong(agent: Any, client: AsyncOpenAI) -> None:
        with pytest.raises(BadRequestError, match="mp3"):
            await client.chat.completions.create(**{**ask, "audio": {"voice": "a", "format": "mp3"}})

    with_openai({**QUICK, "error": "rate_limit"}, limited)
    with_openai({**QUICK, "error": "server_error"}, broken)
    with_openai(QUICK, wrong)


# --- our client -------------------------------------------------------------------------------------------------


class Talk:
    """One session of our own client: its events, and a way to say something."""

    def __init__(self, connection: Any, events: list[Event]) -> None:
        self.connection, self.events = connection, events

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def ask(self, seconds: float = 0.5) -> int:
        """Upload a query; where its events begin."""
        pcm = spoken(seconds=seconds)
        begin = len(self.events)
        for command in (AppendAudio(pcm=pcm), Commit(), CreateResponse()):
            self.connection.send(self.connection.prepare(command))
        self.sent: list[int] = []
        self.connection.when_drained(self.sent.append)
        return begin

    async def until(self, kind: type, begin: int = 0) -> list[Event]:
        async with asyncio.timeout(PATIENCE_S):
            while not any(isinstance(event, kind) for event in self.events[begin:]):  # noqa: ASYNC110 - receive hook
                await asyncio.sleep(0.005)
        return self.events[begin:]

    async def turn(self) -> list[Event]:
        return await self.until(ResponseDone, self.ask())


def with_ours(
    knobs: dict[str, Any], body: Any, *, dialect: str = "openai", wire: bool = False, **settings: str
) -> None:
    async def main() -> None:
        async with agent_with(**knobs) as agent:
            options = PeerOptions(target=base_of(agent), settings={"dialect": dialect, **settings}, wire=wire)
            events: list[Event] = []
            async with ChatCompletions(options, CLOCK) as peer:
                connection = await peer.connect(Configure(turn="manual"), events.append)
                try:
                    await body(agent, Talk(connection, events))
                finally:
                    await connection.close()
                    await connection.close()
            assert [event.by for event in events if isinstance(event, ConnectionClosed)] == ["us"]

    asyncio.run(main())


KINDS: dict[str, tuple[str, dict[str, str]]] = {
    "openai": ("openai", {}),
    "dashscope": ("dashscope", {}),
    "vllm-omni wav": ("vllm-omni", {}),
    "vllm-omni pcm": ("vllm-omni", {"format": "pcm"}),
}
DELIVERIES: tuple[dict[str, Any], ...] = ({}, {"odd_bytes": True}, {"wav_headers": True}, {"empty_packets": 2})


@pytest.mark.parametrize(
    ("kind", "knobs"),
    [
        pytest.param(kind, knobs, id=f"{kind} {knobs}")
        for kind in KINDS
        for knobs in DELIVERIES
        if not (kind == "vllm-omni wav" and "odd_bytes" in knobs)  # a WAV file holds whole samples
    ],
)
def test_turns_of_a_session_in_each_dialect(kind: str, knobs: dict[str, Any]) -> None:
    dialect, settings = KINDS[kind]

    async def body(agent: Any, talk: Talk) -> None:
        for turn in (1, 2):
            events = await talk.turn()
            audio = [event for event in events if isinstance(event, AudioReceived)]
            answer = agent.truth.records("response")[-1]
            pcm = b"".join(event.pcm for event in audio)
            assert pcm == answer_samples(answer["answer"])[:RATE_HZ]
            assert {(event.rate_hz, event.response) for event in audio} == {(RATE_HZ, f"chatcmpl-{turn}")}
            text = "".join(event.text for event in events if isinstance(event, TextReceived))
            assert text.strip()
            order = [ResponseStarted, TextReceived, AudioReceived, ResponseDone]
            firsts = [next(i for i, event in enumerate(events) if isinstance(event, kind)) for kind in order]
            assert firsts == sorted(firsts)
            done = events[firsts[-1]]
            assert isinstance(done, ResponseDone)
            assert done.status == "completed"
            assert done.usage is not None
            # Truth: the body was complete before the answer was written, and both lie between our own instants.
            append = agent.truth.records("append")[-1]
            write = next(
                r for r in agent.truth.records("write") if r["kind"] == "audio" and r["conn"] == append["conn"]
            )
            first = next(event for event in audio if event.samples or "empty_packets" in knobs)
            assert talk.sent[0] <= append["t_ns"] + 1_000_000
            assert append["t_ns"] + 20_000_000 <= write["before_ns"] <= first.t_ns
        assert [r["dialect"].split("/")[1] for r in agent.truth.records("open")] == [dialect] * 2
        assert [event.phase for event in talk.of(ConnectionPhase)] == ["started", "dns", "tcp", "ready", "configured"]

    with_ours({**QUICK, **knobs}, body, dialect=dialect, **settings)


def test_the_text_may_come_after_the_audio() -> None:
    async def body(agent: Any, talk: Talk) -> None:
        events = await talk.turn()
        kinds = [type(event) for event in events if isinstance(event, AudioReceived | TextReceived)]
        assert kinds.index(TextReceived) > kinds.index(AudioReceived)
        assert kinds[-1] is TextReceived

    with_ours({**QUICK, "text": "after"}, body)


def test_other_rates_floods_and_broken_chunks() -> None:
    async def body(agent: Any, talk: Talk) -> None:
        events = await talk.turn()
        assert [event.code for event in events if isinstance(event, PeerError)] == ["unreadable"]
        assert sum(isinstance(event, RawReceived) and event.name == "agent.flood" for event in events) == 500
        audio = [event for event in events if isinstance(event, AudioReceived)]
        assert {event.rate_hz for event in audio} == {16_000}
        assert sum(event.samples for event in audio) == 8_000

    with_ours({**QUICK, "broken_json": True, "flood": 500, "audio_rate_hz": 16_000}, body, dialect="vllm-omni")


def test_a_late_delta_comes_after_done_and_the_session_goes_on() -> None:
    async def body(agent: Any, talk: Talk) -> None:
        events = await talk.turn()
        done = next(i for i, event in enumerate(events) if isinstance(event, ResponseDone))
        late = await talk.until(AudioReceived, talk.events.index(events[done]))
        assert any(isinstance(event, AudioReceived) for event in late)
        assert any(isinstance(event, AudioReceived) for event in await talk.turn())

    with_ours({**QUICK, "late_delta_ms": 50}, body)


@pytest.mark.parametrize(
    ("knobs", "code", "words"),
    [
        ({"error": "rate_limit"}, "429", "HTTP 429: Rate limit reached. (rate_limit_exceeded); try again in 1 s"),
        ({"error": "server_error"}, "server_error", "The server had an error."),
        ({"session_limit": 0}, "429", "session_limit_reached"),
        ({"close_after_ms": 50, "answer_s": 5, "burst_x": 1.0}, "closed", "mid-answer"),
        ({"close_after_ms": 50, "answer_s": 5, "burst_x": 1.0, "close_code": 0}, "closed", ""),
        ({"goaway_ms": 300, "never_answer": True}, "closed", ""),
    ],
    ids=str,
)
def test_failures_end_the_answer_and_not_the_session(knobs: dict[str, Any], code: str, words: str) -> None:
    async def body(agent: Any, talk: Talk) -> None:
        for _ in range(2):
            events = await talk.turn()
            error = next(event for event in events if isinstance(event, PeerError))
            done = next(event for event in events if isinstance(event, ResponseDone))
            assert (error.code, error.fatal, done.status) == (code, False, "failed")
            assert words in error.message
        assert not talk.of(ConnectionClosed)

    with_ours({**QUICK, **knobs}, body)


def test_a_refused_key_is_fatal() -> None:
    async def body(agent: Any, talk: Talk) -> None:
        events = await talk.turn()
        error = next(event for event in events if isinstance(event, PeerError))
        assert error.fatal
        assert "HTTP 401: refused as told" in error.message

    with_ours({"refuse_with": 401}, body)


def test_a_peer_that_never_answers_is_left_for_the_next_turn() -> None:
    async def body(agent: Any, talk: Talk) -> None:
        talk.ask()
        async with asyncio.timeout(PATIENCE_S):
            while not agent.truth.records("append"):  # noqa: ASYNC110 - the agent's log
                await asyncio.sleep(0.01)
        talk.ask()
        async with asyncio.timeout(PATIENCE_S):
            while len(agent.truth.records("append")) < 2:  # noqa: ASYNC110 - the agent's log
                await asyncio.sleep(0.01)
        assert talk.sent
        assert not talk.of(ResponseDone)
        async with asyncio.timeout(PATIENCE_S):
            while not agent.truth.records("close"):  # noqa: ASYNC110 - the agent notices that its client went
                await asyncio.sleep(0.01)
        assert agent.truth.records("close")[0]["by"] == "client"

    with_ours({"never_answer": True}, body)


def test_cancelling_ends_the_answer_with_its_connection() -> None:
    async def body(agent: Any, talk: Talk) -> None:
        begin = talk.ask()
        await talk.until(AudioReceived, begin)
        talk.connection.send(talk.connection.prepare(Cancel()))
        (done,) = talk.of(ResponseDone)
        assert done.status == "cancelled"
        heard = len(talk.of(AudioReceived))
        talk.connection.send(talk.connection.prepare(Cancel()))
        await talk.until(ResponseDone, talk.ask(0.6))
        assert len(talk.of(ResponseDone)) >= 1
        assert len(talk.of(AudioReceived)) >= heard

    with_ours({"think_ms": 10, "delivery": "paced", "chunk_ms": 20, "answer_s": 3, "close_after_ms": 400}, body)


def test_recorded_messages_hold_no_audio_of_the_user_and_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")

    async def body(agent: Any, talk: Talk) -> None:
        await talk.turn()
        frames = talk.of(WireFrame)
        sent = next(frame.text for frame in frames if frame.direction == "out")
        assert json.loads(sent)["messages"][-1]["role"] == "user"
        assert len(sent) < 1_000
        assert "[DONE]" in [frame.text for frame in frames if frame.direction == "in"]

    with_ours(QUICK, body, wire=True)


def test_nobody_there_is_said_at_once() -> None:
    async def main() -> None:
        async with agent_with() as agent:
            options = PeerOptions(target=base_of(agent))
        with pytest.raises(ConnectorError) as caught:
            await ChatCompletions(options, CLOCK).connect(Configure(), lambda event: None)
        assert caught.value.retryable

    asyncio.run(main())


def test_tls() -> None:
    from connectors.agent import Knobs, serve

    async def main() -> None:
        async with serve(Knobs(**QUICK), tls=True, keep_truth=True) as agent:
            events: list[Event] = []
            options = PeerOptions(target=base_of(agent), settings={"ca": str(agent.ca)})
            connection = await ChatCompletions(options, CLOCK).connect(Configure(), events.append)
            talk = Talk(connection, events)
            done = next(event for event in await talk.turn() if isinstance(event, ResponseDone))
            await connection.close()
            assert done.status == "completed"
            phases = [event.phase for event in talk.of(ConnectionPhase)]
            assert phases == ["started", "dns", "tcp", "tls", "ready", "configured"]

    asyncio.run(main())


# --- options ----------------------------------------------------------------------------------------------------


def peer(target: str = "", **options: Any) -> ChatCompletions:
    made = make_peer(f"chat:{target}", PeerOptions(**options), CLOCK)
    assert isinstance(made, ChatCompletions)
    return made


def test_targets_models_and_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("DASHSCOPE_API_KEY", "sk-other")
    assert peer().url == "https://api.openai.com/v1/chat/completions"
    assert peer().label == "chat-gpt-audio-1.5"
    assert peer(model="gpt-audio-mini").label == "chat-gpt-audio-mini"
    ours = peer("http://127.0.0.1:8091/v1?dialect=vllm-omni&x=1")
    assert ours.url == "http://127.0.0.1:8091/v1/chat/completions?x=1"
    assert ours.dialect.name == "vllm-omni"
    assert ours.profile.input_rate_hz == 16_000
    assert peer("http://127.0.0.1:8091").url == "http://127.0.0.1:8091/v1/chat/completions"
    assert peer("http://h/openai/chat/completions").url == "http://h/openai/chat/completions"
    alibaba = peer(settings={"dialect": "dashscope"})
    assert alibaba.url == "https://dashscope.aliyuncs.com/compatible-mode/v1/chat/completions"
    assert alibaba.config["key_env"] == "DASHSCOPE_API_KEY"
    assert "sk-" not in str(msgspec.to_builtins(alibaba.config))


@pytest.mark.parametrize(
    ("target", "settings", "words"),
    [
        ("", {"dialect": "vllm-omni"}, "everybody runs their own vllm-omni"),
        ("http://h/v1?dialect=gopher", {}, "dialect=gopher"),
        ("ws://h/v1", {}, "no HTTP URL"),
        ("http://h/v1", {"body": "[]"}, "not a JSON object"),
        ("http://h/v1", {"inputrate": "1"}, "did you mean input_rate_hz"),
        ("http://h/v1", {"input_rate_hz": "1"}, "between"),
        ("http://h/v1?api_key=1", {}, "put no key into the URL"),
    ],
)
def test_wrong_options_are_one_line(target: str, settings: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        peer(target, settings=settings)


# --- requests that are none -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "invalid_json"),
        (b"[]", "invalid_json"),
        (b"{}", "missing_required_parameter"),
        (b'{"messages":[1,null]}', "invalid_value"),
        (b'{"messages":[{"role":"user","content":[{"input_audio":{"data":"*"}}]}]}', "invalid_value"),
        (b'{"messages":[{"role":"user"}],"audio":{"format":"opus"}}', "unsupported_value"),
    ],
)
def test_a_wrong_request_is_told_why(body: bytes, code: str) -> None:
    found = read_chat_request(body)
    assert isinstance(found, Invalid)
    assert found.code == code

    async def main() -> None:
        async with agent_with() as agent, aiohttp.ClientSession() as session:
            async with session.post(f"{base_of(agent)}/chat/completions", data=body) as answer:
                assert answer.status == 400
                assert (await answer.json())["error"]["code"] == code
            assert [record["code"] for record in agent.truth.records("error")] == [code]

    asyncio.run(main())


async def _until_closed(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(PATIENCE_S):
        return await reader.read()


@pytest.mark.parametrize("begun", [b"PO", b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"])
def test_a_request_whose_head_never_ends_is_dropped(monkeypatch: pytest.MonkeyPatch, begun: bytes) -> None:
    monkeypatch.setattr("connectors.agent.server.HANDSHAKE_TIMEOUT_S", 0.2)

    async def main() -> None:
        async with agent_with(**QUICK) as agent:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(agent.url.split(":")[2].split("/")[0]))
            writer.write(begun)
            assert await _until_closed(reader) == b""
            writer.close()
            assert not agent.truth.records("open", "append")
            async with aiohttp.ClientSession() as session, session.get(base_of(agent)) as answer:
                assert answer.status == 404  # whoever ends a head is still heard

    asyncio.run(main())


def test_a_request_may_come_byte_by_byte_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectors.agent.http_wire.BODY_TIMEOUT_S", 0.3)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n"

    async def main() -> None:
        async with agent_with(**QUICK) as agent:
            for body, status in ((b"{}", b" 400 "), (b"{", b" 408 ")):
                reader, writer = await asyncio.open_connection("127.0.0.1", int(agent.url.split(":")[2].split("/")[0]))
                for byte in head + body:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(0)
                async with asyncio.timeout(PATIENCE_S):
                    assert status in await reader.readline()
                writer.close()

    asyncio.run(main())


def test_a_refusal_without_end_is_read_no_further_than_needed() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 500 No\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"sorry " * 10_000)
                await writer.drain()

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        events: list[Event] = []
        async with server, ChatCompletions(PeerOptions(target=url), CLOCK) as peer:
            connection = await peer.connect(Configure(turn="manual"), events.append)
            talk = Talk(connection, events)
            connection.send(connection.prepare(CreateResponse()))
            async with asyncio.timeout(PATIENCE_S):
                while not any(isinstance(event, ResponseDone) for event in talk.events):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            await connection.close()
        (error,) = [event for event in events if isinstance(event, PeerError)]
        assert error.code == "500"
        assert "sorry" in error.message

    asyncio.run(main())


def test_a_written_question_gets_a_spoken_answer() -> None:
    async def main() -> None:
        async with agent_with(**QUICK) as agent, aiohttp.ClientSession() as session:
            body = {"messages": [{"role": "user", "content": "Hello?"}], "stream": True}
            async with session.post(f"{base_of(agent)}/chat/completions", json=body) as answer:
                assert answer.status == 200
                text = (await answer.read()).decode()
        assert text.endswith("data: [DONE]\n\n")
        assert '"modality":"audio"' in text

    asyncio.run(main())


def test_a_message_without_end_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectors.agent.server.MAX_MESSAGE_BYTES", 1 << 20)

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(1000):
            yield bytes(1 << 16)

    async def main() -> None:
        async with agent_with(**QUICK) as agent, websockets.connect(agent.url) as socket:
            with contextlib.suppress(websockets.ConnectionClosed):
                await socket.send(pieces())
            async with asyncio.timeout(PATIENCE_S):
                await socket.wait_closed()
            assert socket.close_code == 1009

    asyncio.run(main())
