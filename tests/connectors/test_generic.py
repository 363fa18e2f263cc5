"""A home-made server, described by the map in the docs: real sockets, both turn modes, maps that are wrong."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.server import serve

import connectors
from connectors.codecs.generic_client import GenericClient
from connectors.codecs.generic_map import read_map
from connectors.generic import MAPS, GenericWebSocket, load_map
from harness.core.clock import SystemClock
from harness.core.commands import (
    AddHistory,
    AppendAudio,
    Cancel,
    ClearInput,
    Command,
    Commit,
    Configure,
    CreateResponse,
    Truncate,
)
from harness.core.connector import PeerOptions
from harness.core.errors import ConfigError, PrerequisiteError
from harness.core.events import (
    AnyEvent,
    AudioReceived,
    ConnectionPhase,
    Event,
    GoAway,
    Interrupted,
    Note,
    PeerError,
    RawReceived,
    ResponseDone,
    ResponseStarted,
    SessionReady,
    TextReceived,
    UserSpeechStopped,
    UserTranscript,
    WireFrame,
)

CLOCK = SystemClock()
DOCS = Path(connectors.__file__).parent / "docs" / "generic.md"
EXAMPLE = re.search(r"```toml\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)[1]  # type: ignore[index]
SOUND = bytes(range(1, 251)) * 4 + b"\1"  # 1,001 bytes: its last one is no sample
LEAST = """
[input]
rate_hz = 16000
[output]
rate_hz = 8000
"""


class HomeMade:
    """The server of the docs' example: JSON with an `op` in, JSON with a `kind` out, sound cut at odd places."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.heard = b""

    async def __call__(self, socket: Any) -> None:
        await socket.send(json.dumps({"kind": "welcome", "info": {"id": "s-1"}}))
        answers = 0
        async for message in socket:
            said = json.loads(message)
            self.got.append(said)
            if said["op"] == "hello":
                await socket.send(json.dumps({"kind": "accepted"}))
                await socket.send(json.dumps({"kind": "ping", "nonce": 7}))
            elif said["op"] == "pcm":
                self.heard += base64.b64decode(said["data"])
            elif said["op"] == "end":
                answers += 1
                await self.answer(socket, f"a{answers}")

    async def answer(self, socket: Any, answer: str) -> None:
        frames: list[dict[str, Any]] = [{"kind": "heard", "words": "noon?"}]
        frames.append({"kind": "answer", "phase": "begin", "answer_id": answer})
        cuts = [0, 3, 4, 501, 501, len(SOUND)]
        for begin, end in itertools.pairwise(cuts):
            sound = base64.b64encode(SOUND[begin:end]).decode()
            frames.append({"kind": "answer", "phase": "part", "say": ["no"], "sound": sound, "answer_id": answer})
        frames.append({"kind": "mood", "value": 3})
        frames.append({"kind": "answer", "phase": "end", "answer_id": answer, "how": "completed"})
        for frame in frames:
            await socket.send(json.dumps(frame))


class Raw:
    """Binary both ways, no word at the start: answers the third message with sound and an end."""

    def __init__(self) -> None:
        self.got: list[str | bytes] = []

    async def __call__(self, socket: Any) -> None:
        async for message in socket:
            self.got.append(message)
            if len(self.got) == 3:
                for part in (SOUND[:3], SOUND[3:]):
                    await socket.send(part)
                await socket.send(json.dumps({"type": "eos"}))


Body = Callable[[Any, list[Event], Any], Awaitable[None]]


def with_server(
    server: Any, text: str, tmp_path: Path, body: Body, configure: Configure, **options: Any
) -> list[Event]:
    (tmp_path / "map.toml").write_text(text, "utf-8")
    events: list[Event] = []

    async def main() -> None:
        async with serve(server, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            settings = {"map": str(tmp_path / "map.toml")}
            made = GenericWebSocket(
                PeerOptions(target=f"ws://127.0.0.1:{port}/ws", settings=settings, **options), CLOCK
            )
            async with made as peer:
                connection = await peer.connect(configure, events.append)
                try:
                    await body(connection, events, peer)
                finally:
                    await connection.close()
                    await connection.close()

    asyncio.run(main())
    return events


async def until(events: list[Event], kind: type, count: int = 1) -> None:
    async with asyncio.timeout(20):
        while sum(isinstance(event, kind) for event in events) < count:  # noqa: ASYNC110 - from the receive hook
            await asyncio.sleep(0.01)


def of(events: list[Event], kind: type) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.loopback
def test_the_example_of_the_docs_holds_manual_turns(tmp_path: Path) -> None:
    server = HomeMade()

    async def body(connection: Any, events: list[Event], peer: GenericWebSocket) -> None:
        assert peer.profile.turns == ("vad", "manual")
        assert (peer.profile.input_rate_hz, peer.profile.output_rate_hz, peer.profile.chunk_ms) == (16_000, 24_000, 40)
        assert peer.profile.cancel
        assert not peer.profile.truncate
        for turn in (1, 2):
            for command in (AppendAudio(pcm=b"\1\0" * 640), AppendAudio(pcm=b"\2\0" * 640), Commit(), CreateResponse()):
                connection.send(connection.prepare(command))
            await until(events, ResponseDone, turn)
        connection.send(connection.prepare(Cancel()))

    configure = Configure(turn="manual", instructions="Be brief.", language="en")
    events = with_server(server, EXAMPLE, tmp_path, body, configure)
    assert server.heard == (b"\1\0" * 640 + b"\2\0" * 640) * 2
    assert [said["op"] for said in server.got if said["op"] != "pong"][:6] == [
        "hello",
        "talk",
        "pcm",
        "pcm",
        "end",
        "talk",
    ]
    assert {"op": "pong", "nonce": 7} in server.got
    assert server.got[0] == {"op": "hello", "prompt": "Be brief.", "rate": 16_000, "mode": "manual"}
    phases = [event.phase for event in of(events, ConnectionPhase)]
    assert (phases[0], phases[-2:]) == ("started", ["ready", "configured"])
    assert [ready.phase for ready in of(events, SessionReady)] == ["created", "updated"]
    assert of(events, SessionReady)[0].peer_session == "s-1"
    audio = of(events, AudioReceived)
    assert b"".join(event.pcm for event in audio) == SOUND[:1000] * 2
    assert [event.samples for event in audio][:5] == [1, 1, 248, 0, 250]
    assert {event.rate_hz for event in audio} == {24_000}
    assert [event.response for event in of(events, ResponseDone)] == ["a1", "a2"]
    assert {event.response for event in audio} == {"a1", "a2"}
    assert [event.text for event in of(events, UserTranscript)] == ["noon?", "noon?"]
    assert len(of(events, TextReceived)) == 10
    assert "mood" not in [event.name for event in of(events, RawReceived)]  # the example says nothing of names
    assert all(event.first_byte_ns <= event.t_ns for event in audio)


@pytest.mark.loopback
def test_binary_both_ways_and_no_hello(tmp_path: Path) -> None:
    text = LEAST + '[[receive]]\nevent="audio"\nbinary=true\n[[receive]]\nevent="response_done"\nwhen={type="eos"}\n'
    server = Raw()

    async def body(connection: Any, events: list[Event], peer: GenericWebSocket) -> None:
        assert peer.profile.turns == ("vad",)
        for number in range(3):
            connection.send(connection.prepare(AppendAudio(pcm=bytes([number, 0]))))
        with pytest.raises(ConfigError, match="no message for commit"):
            connection.prepare(Commit())
        await until(events, ResponseDone)

    events = with_server(server, text, tmp_path, body, Configure(turn="vad"))
    assert server.got == [b"\0\0", b"\1\0", b"\2\0"]
    assert [event.phase for event in of(events, ConnectionPhase)][-2:] == ["ready", "configured"]
    assert b"".join(event.pcm for event in of(events, AudioReceived)) == SOUND[:1000]
    assert not of(events, Note)


@pytest.mark.loopback
def test_a_secret_of_the_environment_enters_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FP_TOKEN", "tok-123")
    text = (
        LEAST + '[send]\nstart={token="$env.FP_TOKEN"}\n[[receive]]\nevent="error"\nwhen={type="no"}\nmessage="why"\n'
    )

    async def server(socket: Any) -> None:
        async for message in socket:
            assert json.loads(message) == {"token": "tok-123"}
            await socket.send('{"type":"no","why":"tok-123 is wrong"}')

    async def body(connection: Any, events: list[Event], peer: GenericWebSocket) -> None:
        await until(events, PeerError)
        assert "tok-123" not in str(peer.config)
        assert "$env.FP_TOKEN" in str(peer.config)

    events = with_server(server, text, tmp_path, body, Configure(), wire=True)
    assert of(events, WireFrame)
    assert of(events, PeerError)[0].message == "[key] is wrong"
    assert "tok-123" not in str(events)
    assert [note.code for note in of(events, Note)] == ["no_end_rule"]
    monkeypatch.delenv("FP_TOKEN")
    settings = {"map": str(tmp_path / "map.toml")}
    with pytest.raises(PrerequisiteError, match="FP_TOKEN"):
        GenericWebSocket(PeerOptions(target="ws://h:1", settings=settings), CLOCK)


# --- without a socket -------------------------------------------------------------------------------------------


def codec(rules: str = "", send: str = "") -> GenericClient:
    return GenericClient(read_map(f"{LEAST}\n[send]\n{send}\n{rules or RULE}", "map"))


def decode(client: GenericClient, frame: Any) -> list[Event]:
    return [msgspec.structs.replace(event, t_ns=0) for event in client.decode(json.dumps(frame).encode(), 0, 0)]


RULE = '[[receive]]\nevent="ignore"\nhas=["x"]'
PARTS = """
[[receive]]
event = "audio"
has = ["a"]
audio = "a"
output_rate_hz = "r"
[[receive]]
event = "text"
has = ["t"]
text = "t"
"""


@pytest.mark.unit
@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("[input]\nrate_hz = = 1", "line 2"),
        ("[inptu]\nrate_hz = 1\n[output]\nrate_hz=8000", "line 1: inptu: did you mean input"),
        (LEAST + RULE + '\naudo = "x"', "line 9: receive[0].audo: did you mean audio"),
        (LEAST + "[send]\ncomit={}\n" + RULE, "line 7: send.comit: did you mean commit"),
        (LEAST + "[send.comit]\nx=1\n" + RULE, "line 6: send.comit: did you mean commit"),
        (LEAST.replace("16000", '"16000"') + RULE, "line 3: input.rate_hz: expected `int`, got `str`"),
        (LEAST.replace("16000", "16") + RULE, "line 3: input.rate_hz: 16 Hz is no sample rate"),
        (LEAST, "map: needs receive"),
        ("[output]\nrate_hz=8000\n" + RULE, "needs input"),
        (
            LEAST + '[[receive]]\nevent="audoi"\nhas=["x"]',
            "line 7: receive[0].event: no event is called 'audoi': did you mean audio",
        ),
        (LEAST + '[[receive]]\nhas=["x"]', "line 6: receive[0]: needs event"),
        (
            LEAST + RULE + '\n[[receive]]\nevent="text"\nhas=["x"]',
            "line 10: receive[1].event: a rule for text needs text",
        ),
        (
            LEAST + '[[receive]]\nevent="text"\nhas=["x"]\ntext="x"\naudio="a"',
            "line 10: receive[0].audio: a rule for text takes item, response, text",
        ),
        (LEAST + '[[receive]]\nevent="audio"\naudio="a"', "line 7: receive[0].event: say which messages it fits"),
        (LEAST + '[[receive]]\nevent="text"\nbinary=true', "line 8: receive[0].binary: binary messages are audio"),
        (
            LEAST + '[send]\nstart={a="$modle"}\n' + RULE,
            "line 7: send.start: $modle stands for nothing: did you mean model",
        ),
        (LEAST + '[send]\nstart={a="$in.x"}\n' + RULE, "$in.x stands for nothing"),
        (LEAST + '[send]\naudio={a="audio"}\n' + RULE, 'send.audio: no field is "$audio"'),
        ('turns=["manual"]\n' + LEAST + RULE, "line 1: turns: manual turns need a commit"),
        ('turns=["maunal"]\n' + LEAST + RULE, "turns"),
        (LEAST.replace("16000", "16000\nchunk_ms=0") + RULE, "line 4: input.chunk_ms"),
    ],
)
def test_a_wrong_map_is_one_clear_line(broken: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_map(broken, "map")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("map")


@pytest.mark.unit
def test_what_a_message_means() -> None:
    client = codec(PARTS)
    audio, text = decode(client, {"a": "AQD//w==", "t": "hi", "r": 48_000})
    assert isinstance(audio, AudioReceived)
    assert (audio.samples, audio.rate_hz, audio.wire_bytes > 0) == (2, 48_000, True)
    assert isinstance(text, TextReceived)
    (event,) = decode(client, {"a": "!!", "b": 1})
    assert isinstance(event, PeerError)
    assert (event.code, event.message) == ("unreadable", "no base64 audio at a")
    for odd in ({"t": None}, {"type": "new"}, {"type": 3}, [], "x", 3, None):
        (event,) = decode(client, odd)
        assert isinstance(event, RawReceived)
    for broken in (b"", b"{", b'{"a": "AQ', b"\xff\xfe"):
        (event,) = client.decode(broken, 1, 1)
        assert isinstance(event, PeerError)


@pytest.mark.unit
def test_conditions_tell_numbers_from_booleans_and_paths_from_nothing() -> None:
    client = codec('[[receive]]\nevent="go_away"\nwhen={"a.0.b"=1}\ntime_left_ms="ms"')
    assert decode(client, {"a": [{"b": 1}], "ms": 900.7})[0] == GoAway(t_ns=0, wire_bytes=30, time_left_ms=900)
    for other in ({"a": [{"b": True}]}, {"a": [{"b": "1"}]}, {"a": []}, {"a": {"0": {}}}, {"a": [[]]}):
        assert isinstance(decode(client, other)[0], RawReceived)


@pytest.mark.unit
def test_every_event_of_the_language() -> None:
    rules = {
        "user_speech_stopped": 'audio_ms="v"',
        "response_started": 'response="v"',
        "interrupted": 'reason="v"',
        "error": 'code="v"\nmessage="w"\nfatal=true',
        "response_done": 'status="v"\nusage="u"',
        "user_transcript": 'text="w"\nfinal=false',
    }
    text = "\n".join(f'[[receive]]\nevent="{name}"\nwhen={{is="{name}"}}\n{rest}' for name, rest in rules.items())
    client = codec(text)
    got = {name: decode(client, {"is": name, "v": 7, "w": "a\nb", "u": {"n": 2**70}})[0] for name in rules}
    kinds = [UserSpeechStopped, ResponseStarted, Interrupted, PeerError, ResponseDone, UserTranscript]
    assert [type(event) for event in got.values()] == kinds
    assert getattr(got["user_speech_stopped"], "audio_ms", 0) == 7
    assert getattr(got["response_started"], "response", "") == "7"
    assert (getattr(got["error"], "message", ""), getattr(got["error"], "fatal", False)) == ("a b", True)
    assert getattr(got["response_done"], "usage", None) == {"n": str(2**70)}
    assert getattr(got["response_done"], "response", "") == "7"
    assert getattr(got["user_transcript"], "final", True) is False


@pytest.mark.unit
def test_commands_and_placeholders() -> None:
    send = """
start = [{ a = "$voice", b = ["$language", "$$literal", 1], c = { d = "$model" } }, { second = true }]
start_manual = { mode = "hands" }
start_vad = { mode = "ears" }
commit = [{ c = 1 }, { c = 2 }]
create = { go = true }
clear = { clear = true }
cancel = { stop = "$response" }
history = { who = "$role", what = "$text" }
"""
    client = codec(send=send)

    def said(command: Command) -> list[Any]:
        return [json.loads(message) for message in client.encode(command)]

    first = {"a": "v", "b": ["$literal", 1], "c": {}}
    assert said(Configure(turn="manual", voice="v")) == [first, {"second": True}, {"mode": "hands"}]
    assert said(Configure(turn="vad", language="en"))[0]["b"] == ["en", "$literal", 1]
    assert said(Commit()) == [{"c": 1}, {"c": 2}]
    assert said(CreateResponse()) == [{"go": True}]
    assert said(ClearInput()) == [{"clear": True}]
    assert said(Cancel()) == [{}]
    assert said(Cancel(response="r")) == [{"stop": "r"}]
    assert said(AddHistory(role="user", text="t")) == [{"who": "user", "what": "t"}]
    assert client.encode(AppendAudio(pcm=b"\1\0")) == [b"\1\0"]
    assert client.replies() == []
    with pytest.raises(ConfigError, match="no message for truncate"):
        client.encode(Truncate(item="i", audio_end_ms=1))


@pytest.mark.unit
@given(pcm=st.binary(max_size=300), cuts=st.lists(st.integers(0, 400), max_size=9), binary=st.booleans())
def test_any_cut_gives_the_same_samples(pcm: bytes, cuts: list[int], binary: bool) -> None:
    client = codec(PARTS + '\n[[receive]]\nevent="audio"\nbinary=true')
    bounds = [0, *sorted(cut % (len(pcm) + 1) for cut in cuts), len(pcm)]
    got: list[Event] = []
    for begin, end in itertools.pairwise(bounds):
        part = pcm[begin:end]
        frame = part if binary else json.dumps({"a": base64.b64encode(part).decode()}).encode()
        got += client.decode(frame, 1, 1, is_text=not binary)
    assert b"".join(event.pcm for event in got if isinstance(event, AudioReceived)) == pcm[: len(pcm) & ~1]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("atrvwsu"), inner, max_size=4),
)


@pytest.mark.unit
@given(value=JSON)
def test_nonsense_raises_nothing_and_can_be_passed_on(value: Any) -> None:
    rules = PARTS + "".join(
        f'\n[[receive]]\nevent="{event}"\nhas=["v"]\n{rest}'
        for event, rest in {
            "error": 'code="v"\nmessage="w"',
            "response_done": 'usage="u"\nstatus="s"\nresponse="v"',
            "user_speech_started": 'audio_ms="v"\nitem="s"',
            "ready": 'output_rate_hz="v"\nmodel="s"',
        }.items()
    )
    for event in codec(rules).decode(json.dumps(value).encode(), 1, 1):
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(event), type=AnyEvent) == event


# --- ready-made maps --------------------------------------------------------------------------------------------

DEEPGRAM = [  # protocol sheet, section 10
    ({"type": "Welcome", "request_id": "q"}, SessionReady(t_ns=0, phase="created", peer_session="q")),
    ({"type": "SettingsApplied"}, SessionReady(t_ns=0, phase="updated")),
    (
        {"type": "ConversationText", "role": "user", "content": "Noon?"},
        UserTranscript(t_ns=0, text="Noon?", final=True),
    ),
    ({"type": "AgentThinking", "content": "hm"}, RawReceived(t_ns=0, name="AgentThinking")),
    (
        {"type": "ConversationText", "role": "assistant", "content": "Yes."},
        TextReceived(t_ns=0, text="Yes.", kind="transcript"),
    ),
    ({"type": "AgentStartedSpeaking", "total_latency": 0.4}, RawReceived(t_ns=0, name="AgentStartedSpeaking")),
    (b"\1\0\2\0", AudioReceived(t_ns=0, samples=2, rate_hz=24_000, pcm=b"\1\0\2\0")),
    ({"type": "AgentAudioDone"}, ResponseDone(t_ns=0)),
    ({"type": "Error", "description": "no credit", "code": "402"}, PeerError(t_ns=0, code="402", message="no credit")),
    ({"type": "Novelty"}, RawReceived(t_ns=0, name="Novelty")),
]
ELEVENLABS = [
    (
        {
            "type": "conversation_initiation_metadata",
            "conversation_initiation_metadata_event": {
                "conversation_id": "c",
                "agent_output_audio_format": "pcm_16000",
                "user_input_audio_format": "pcm_16000",
            },
        },
        SessionReady(t_ns=0, phase="updated", peer_session="c"),
    ),
    ({"type": "ping", "ping_event": {"event_id": 9, "ping_ms": 50}}, RawReceived(t_ns=0, name="ping")),
    (
        {"type": "user_transcript", "user_transcription_event": {"user_transcript": "Noon?"}},
        UserTranscript(t_ns=0, text="Noon?", final=True),
    ),
    (
        {"type": "agent_response", "agent_response_event": {"agent_response": "Yes."}},
        TextReceived(t_ns=0, text="Yes.", kind="transcript"),
    ),
    (
        {"type": "audio", "audio_event": {"audio_base_64": "AQACAA==", "event_id": 1}},
        AudioReceived(t_ns=0, samples=2, rate_hz=16_000, pcm=b"\1\0\2\0"),
    ),
    ({"type": "interruption", "interruption_event": {"event_id": 1}}, Interrupted(t_ns=0)),
    ({"type": "vad_score"}, RawReceived(t_ns=0, name="vad_score")),
]
READY = [("deepgram-agent", DEEPGRAM), ("elevenlabs-agent", ELEVENLABS)]


def bare(events: list[Event]) -> list[Event]:
    return [msgspec.structs.replace(event, t_ns=0, wire_bytes=0) for event in events]


@pytest.mark.unit
@pytest.mark.parametrize(("name", "turn"), READY)
def test_a_ready_made_map_reads_a_whole_turn(name: str, turn: list[Any]) -> None:
    client = GenericClient(load_map(name))
    for frame, event in turn:
        binary = isinstance(frame, bytes)
        data = frame if binary else json.dumps(frame).encode()
        assert bare(client.decode(data, 0, 0, is_text=not binary)) == [event]
        if not binary:
            renamed = json.dumps({**frame, "type": "x"}).encode()
            assert bare(client.decode(renamed, 0, 0)) != [event]
            (cut,) = client.decode(data[:-1], 0, 0)
            assert isinstance(cut, PeerError)


@pytest.mark.unit
def test_what_the_ready_made_maps_send() -> None:
    deepgram = GenericClient(load_map("deepgram-agent"))
    (settings,) = [json.loads(m) for m in deepgram.encode(Configure(instructions="Be brief."))]
    assert settings["type"] == "Settings"
    assert settings["audio"]["output"] == {"encoding": "linear16", "sample_rate": 24_000, "container": "none"}
    assert settings["agent"]["think"]["prompt"] == "Be brief."
    assert deepgram.encode(AppendAudio(pcm=b"\1\0")) == [b"\1\0"]
    assert deepgram.opening == "created_first"
    eleven = GenericClient(load_map("elevenlabs-agent"))
    assert eleven.encode(AppendAudio(pcm=b"\1\0\2\0")) == ['{"user_audio_chunk":"AQACAA=="}']
    eleven.decode(json.dumps(ELEVENLABS[1][0]).encode(), 0, 0)
    assert eleven.replies() == ['{"type":"pong","event_id":9}']
    assert eleven.replies() == []
    assert eleven.opening == "configure_first"


@pytest.mark.unit
def test_every_ready_made_map_is_a_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPGRAM_API_KEY", "dg-secret")
    names = {file.stem for file in MAPS.glob("*.toml")}
    assert names == {name for name, _ in READY}
    for name in names:
        assert f"`{name}`" in DOCS.read_text("utf-8")
        peer = GenericWebSocket(PeerOptions(model="agent1", settings={"map": name}), CLOCK)
        assert peer.label == name
        assert "dg-secret" not in str(peer.config)
    assert (
        "agent_id=agent1"
        in GenericWebSocket(PeerOptions(model="agent1", settings={"map": "elevenlabs-agent"}), CLOCK).url
    )


@pytest.mark.unit
@pytest.mark.parametrize(
    ("target", "settings", "words"),
    [
        ("ws://h:1", {}, "needs --set map=FILE.toml"),
        ("ws://h:1", {"map": "deepgram"}, "did you mean deepgram-agent"),
        ("ws://h:1", {"map": "/nowhere/x.toml"}, "map=/nowhere/x.toml: No such file"),
        ("ws://h:1", {"mpa": "x"}, "did you mean map"),
    ],
)
def test_a_missing_map_is_one_clear_line(target: str, settings: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        GenericWebSocket(PeerOptions(target=target, settings=settings), CLOCK)


@pytest.mark.unit
def test_an_address_is_needed_and_the_map_must_be_text(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(LEAST + RULE)
    with pytest.raises(ConfigError, match="say where the server is"):
        GenericWebSocket(PeerOptions(settings={"map": str(tmp_path / "a.toml")}), CLOCK)
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_map(str(tmp_path / "b.toml"))
