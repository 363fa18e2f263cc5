"""The dialects as peers: addresses, keys, rates, and what goes over a real socket."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import serve

from connectors import openai
from connectors.codecs.openai_dialects import DIALECTS
from connectors.openai import OpenAIRealtime, peer_of
from harness.core.clock import SystemClock
from harness.core.commands import AppendAudio, Commit, Configure, CreateResponse
from harness.core.connector import PeerOptions
from harness.core.errors import ConfigError
from harness.core.events import AudioReceived, ConnectionPhase, Event, ResponseDone, SessionReady

CLOCK = SystemClock()
DOCS = Path(openai.__file__).parent / "docs" / "openai-family.md"
KEYS = {row.key_env: f"secret-of-{row.key_env}" for row in DIALECTS.values() if row.key_env}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def peer(name: str, target: str = "", model: str | None = None, **settings: str) -> OpenAIRealtime:
    return peer_of(name)(PeerOptions(target=target, model=model, settings=settings), CLOCK)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("name", "target", "model", "url", "label"),
    [
        ("openai", "", None, "wss://api.openai.com/v1/realtime?model=gpt-realtime", "openai-gpt-realtime"),
        (
            "openai",
            "wss://api.openai.com/v1/realtime?model=gpt-realtime-mini",
            None,
            "wss://api.openai.com/v1/realtime?model=gpt-realtime-mini",
            "openai-gpt-realtime-mini",
        ),
        ("azure", "mine", "dep", "wss://mine.openai.azure.com/openai/v1/realtime?model=dep", "azure-dep"),
        (
            "azure",
            "wss://mine.openai.azure.com",
            "dep",
            "wss://mine.openai.azure.com/openai/v1/realtime?model=dep",
            "azure-dep",
        ),
        (
            "azure-voice-live",
            "wss://mine.cognitiveservices.azure.com?api-version=2027-01-01",
            "m",
            "wss://mine.cognitiveservices.azure.com/voice-live/realtime?api-version=2027-01-01&model=m",
            "azure-voice-live-m",
        ),
        ("xai", "", None, "wss://api.x.ai/v1/realtime?model=grok-voice-latest", "xai-grok-voice-latest"),
        ("stepfun", "wss://api.stepfun.ai", "s", "wss://api.stepfun.ai/v1/realtime?model=s", "stepfun-s"),
        (
            "qwen-omni",
            "wss://ws1.ap-southeast-1.maas.aliyuncs.com",
            "q",
            "wss://ws1.ap-southeast-1.maas.aliyuncs.com/api-ws/v1/realtime?model=q",
            "qwen-omni-q",
        ),
        ("glm", "", None, "wss://open.bigmodel.cn/api/paas/v4/realtime", "glm-glm-realtime-flash"),
        ("vllm-omni-turns", "ws://h:1", "m", "ws://h:1/v1/realtime?duplex=0", "vllm-omni-turns-h:1"),
        ("hf-s2s", "", None, "ws://127.0.0.1:8765/v1/realtime", "hf-s2s-127.0.0.1:8765"),
        ("unmute", "ws://h:2", None, "ws://h:2/v1/realtime", "unmute-h:2"),
    ],
)
def test_address_and_label(name: str, target: str, model: str | None, url: str, label: str) -> None:
    made = peer(name, target, model)
    assert (made.url, made.label) == (url, label)


@pytest.mark.unit
@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_can_be_described_and_made(name: str) -> None:
    kind, row = peer_of(name), DIALECTS[name]
    assert kind.kind == name
    assert kind.declared == row.profile
    assert kind.evidence == row.evidence
    assert row.title in (kind.__doc__ or "").splitlines()[0]
    made = peer(name, "mine" if "{target}" in row.url else "", "m")
    assert made.profile == row.profile
    assert made.config["dialect"] == name
    if row.key_env:
        assert KEYS[row.key_env] in made._headers()[row.key_header]
        assert KEYS[row.key_env] not in str(made.config)


@pytest.mark.unit
def test_each_entry_point_name_exists_once() -> None:
    made = [kind for kind in vars(openai).values() if isinstance(kind, type) and issubclass(kind, OpenAIRealtime)]
    assert {kind.kind for kind in made} == set(DIALECTS) - {"openai-beta"}
    assert len(made) == len(DIALECTS) - 1


@pytest.mark.unit
@pytest.mark.parametrize("name", [name for name, row in DIALECTS.items() if row.hosts])
def test_a_key_goes_to_its_own_hosts_only(name: str) -> None:
    for target in (
        "wss://evil.example/v1",
        f"wss://{DIALECTS[name].hosts[0].strip('.')}.evil.example",
        "wss://notopenai.azure.com",
    ):
        made = peer(name, target, "m")
        assert not any("secret" in value for value in made._headers().values())


@pytest.mark.unit
def test_one_row_by_a_setting() -> None:
    made = OpenAIRealtime(PeerOptions(target="ws://h:1", settings={"dialect": "unmute"}), CLOCK)
    assert made.profile == DIALECTS["unmute"].profile
    assert OpenAIRealtime(PeerOptions(target="ws://h:1", settings={"dialect": "beta"}), CLOCK).label == "openai-h:1"


@pytest.mark.unit
@pytest.mark.parametrize(
    ("name", "target", "model", "settings", "words"),
    [
        ("azure", "", "d", {}, "azure needs your resource's name: --peer azure:RESOURCE"),
        ("azure", "mine", None, {}, "azure needs --model: --model is the deployment's name"),
        ("vllm-omni-turns", "", None, {}, "vllm-omni-turns needs --model: the name of a model that it has$"),
        ("azure", "mi/ne", "m", {}, "resource's name"),
        ("openai", "", None, {"dialect": "stepfunn"}, "did you mean stepfun"),
        ("qwen-omni", "", None, {"input_rate_hz": "24000"}, "qwen-omni has 16000 Hz"),
        ("xai", "", None, {"output_rate_hz": "12345"}, "xai has 8000, 11025, 16000"),
        ("hf-s2s", "", None, {"input_rate_hz": "1"}, "hf-s2s has 24000 Hz"),
        ("openai", "", None, {"binary": "true"}, "no binary audio"),
        ("openai", "", None, {"auth": "basic"}, "auth=basic"),
        ("openai", "ws://[::", None, {}, "cannot be read"),
    ],
)
def test_what_cannot_be_is_one_clear_line(
    name: str, target: str, model: str | None, settings: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError, match=words.replace("(", r"\(")) as caught:
        peer(name, target, model, **settings)
    assert "\n" not in str(caught.value)


@pytest.mark.unit
def test_rates_and_key_header_by_setting() -> None:
    made = peer("xai", input_rate_hz="16000", output_rate_hz="48000")
    assert (made.profile.input_rate_hz, made.profile.output_rate_hz) == (16_000, 48_000)
    bearer = peer("azure", "mine", "d", auth="bearer")._headers()
    assert bearer == {"Authorization": f"Bearer {KEYS['AZURE_OPENAI_API_KEY']}"}


class Server:
    """Plays the server frames of one turn; keeps what it was told."""

    def __init__(self, hello: list[Any], after: dict[str, list[Any]]) -> None:
        self.hello, self.after = hello, after
        self.got: list[dict[str, Any]] = []
        self.request: Any = None

    async def __call__(self, socket: Any) -> None:
        self.request = socket.request
        for frame in self.hello:
            await socket.send(json.dumps(frame))
        async for message in socket:
            said = json.loads(message)
            self.got.append(said)
            key = said["type"] + (f" {said['final']}".lower() if "final" in said else "")
            for frame in self.after.get(key, []):
                await socket.send(json.dumps(frame))


async def turn(server: Server, made: Any, target: str, subprotocols: list[Any] | None = None) -> list[Event]:
    events: list[Event] = []
    async with serve(server, "127.0.0.1", 0, subprotocols=subprotocols) as listening:
        port = listening.sockets[0].getsockname()[1]
        talker = made(PeerOptions(target=target.format(port), model="m"), CLOCK)
        connection = await talker.connect(Configure(turn="manual"), events.append)
        try:
            commands = [AppendAudio(pcm=b"\1\0" * 480)]
            commands += [Commit(), CreateResponse()] if "manual" in talker.profile.turns else []
            for command in commands:
                connection.send(connection.prepare(command))
            async with asyncio.timeout(20):
                while not any(isinstance(event, ResponseDone) for event in events):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        finally:
            await connection.close()
    return events


@pytest.mark.loopback
def test_the_handshake_without_a_session_object() -> None:
    answer = [
        {"type": "transcription.delta", "delta": "Hi"},
        {"type": "response.output_audio.delta", "audio": "AQD//w==", "format": "pcm16", "sample_rate_hz": 24000},
        {"type": "response.output_audio.done", "has_audio": True},
    ]
    server = Server([{"type": "session.created", "id": "sess-1"}], {"input_audio_buffer.commit true": answer})
    events = asyncio.run(turn(server, openai.VllmOmniTurns, "ws://127.0.0.1:{}"))
    told = [(said["type"], said.get("final"), said.get("model")) for said in server.got]
    assert told == [
        ("session.update", None, "m"),
        ("input_audio_buffer.commit", False, None),
        ("input_audio_buffer.append", None, None),
        ("input_audio_buffer.commit", True, None),
    ]
    phases = [event.phase for event in events if isinstance(event, ConnectionPhase)]
    assert phases[-2:] == ["ready", "configured"]
    assert [event.samples for event in events if isinstance(event, AudioReceived)] == [2]


@pytest.mark.loopback
def test_settings_first_and_a_subprotocol() -> None:
    server = Server(
        [],
        {
            "session.update": [{"type": "session.updated", "session": {"voice": None}}],
            "input_audio_buffer.append": [
                {"type": "response.created", "response": {"status": "in_progress"}},
                {"type": "response.audio.done"},
            ],
        },
    )
    events = asyncio.run(turn(server, openai.Unmute, "ws://127.0.0.1:{}", ["realtime"]))
    assert server.request.headers["Sec-WebSocket-Protocol"] == "realtime"
    assert [said["type"] for said in server.got] == ["session.update", "input_audio_buffer.append"]
    assert set(server.got[0]["session"]) == {"instructions", "voice", "allow_recording"}
    assert [event.phase for event in events if isinstance(event, SessionReady)] == ["updated"]


@pytest.mark.unit
@pytest.mark.parametrize("name", DIALECTS)
def test_the_docs_tell_of_each_dialect(name: str) -> None:
    row, called = DIALECTS[name], "openai?dialect=beta" if name == "openai-beta" else name
    told = [line for line in DOCS.read_text("utf-8").splitlines() if line.startswith(f"| `{called}` |")]
    assert len(told) == 2
    assert row.evidence in told[0]
    assert row.section in told[0]
    assert (row.key_env or "") in told[0]
    assert (row.model or "") in told[0] or name == "openai-beta"
    assert ", ".join(row.turns) in told[1]
    for rate_hz in (row.input_rates_hz[0], row.output_rates_hz[0]):
        assert str(rate_hz) in told[1]
