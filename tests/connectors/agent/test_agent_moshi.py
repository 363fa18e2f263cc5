"""The agent as a Moshi server: a plain WebSocket client, then our own client with a whole recorded session."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import websockets
from websockets.asyncio.client import ClientConnection

from connectors.agent import Agent
from connectors.codecs.ogg_opus import OggOpusDecoder, OggOpusEncoder
from connectors.moshi import Moshi, PersonaPlex
from harness.core.clock import SystemClock
from harness.core.commands import Configure
from harness.core.connector import PeerOptions
from harness.core.errors import ConfigError
from harness.core.events import AudioReceived, AudioSent, CommandSent, ConnectionPhase, Event, TextReceived
from harness.core.run_directory import RunDirectory
from harness.core.session.reader import Session, load_session
from harness.run.rig import Rig
from harness.run.session_plan import SessionOptions
from harness.run.suite import PeerRun, Suite, SuiteOptions
from scoring.timing.recording import Recording
from scoring.timing.rows import session_rows
from tests.connectors.agent.talk import PATIENCE_S, agent_with, silence, spoken
from tests.run.fakes import ToneQuery

pytestmark = pytest.mark.loopback
UNIT_BYTES = 3_840


def address(agent: Agent) -> str:
    return agent.url.replace("/v1/realtime", "/api/chat")


class MoshiTalk:
    """One connection past the handshake. messages: everything received, in order."""

    def __init__(self, ws: ClientConnection, agent: Agent) -> None:
        self.ws = ws
        self.agent = agent
        self.messages: list[bytes] = []
        self._encoder = OggOpusEncoder(24_000)
        self._decoder = OggOpusDecoder(24_000)
        self.heard = b""

    async def say(self, pcm: bytes) -> None:
        """Whole packets, faster than real time."""
        for at in range(0, len(pcm), 960):
            await self.ws.send(b"\x01" + self._encoder.push(pcm[at : at + 960]))

    async def next(self) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            message = await self.ws.recv()
        assert isinstance(message, bytes)
        self.messages.append(message)
        if message[0] == 1:
            self.heard += self._decoder.push(message[1:])
        return message

    async def echo(self) -> None:
        """Wait until everything said so far has been read."""
        async with asyncio.timeout(PATIENCE_S):
            await (await self.ws.ping())

    async def frames(self, count: int) -> None:
        """Wait for so many frames of sound from now on."""
        while count:
            count -= (await self.next())[0] == 1

    def text(self) -> str:
        return "".join(message[1:].decode() for message in self.messages if message[0] == 2)

    def truth(self, *kinds: str) -> list[dict[str, Any]]:
        return self.agent.truth.records(*kinds)


@asynccontextmanager
async def talking(query: str = "", **knobs: Any) -> AsyncIterator[MoshiTalk]:
    async with (
        agent_with(**knobs) as agent,
        websockets.connect(address(agent) + query, compression=None, max_queue=None) as ws,
    ):
        talk = MoshiTalk(ws, agent)
        assert await talk.next() == b"\x00"
        yield talk


def test_a_frame_for_every_frame_and_none_without() -> None:
    async def main() -> None:
        async with talking(never_answer=True) as talk:
            await talk.say(silence(0.08 + 0.8))
            await talk.frames(10)
            await talk.say(silence(0.06))
            await talk.echo()
            await talk.say(silence(0.02))
            await talk.frames(1)
            assert [message[0] for message in talk.messages] == [0] + [1] * 11
            assert not np.frombuffer(talk.heard, "<i2").any()
            assert len(talk.heard) == 11 * UNIT_BYTES - 2 * 76
            appends = talk.truth("append")
            assert appends[-1]["end_sample"] == 12 * 1_920

    asyncio.run(main())


def test_an_answer_with_a_piece_of_text_behind_each_frame() -> None:
    async def main() -> None:
        async with talking(answer_s=0.8, think_ms=0, endpoint_ms=300, burst_x=0) as talk:
            await talk.say(spoken(seconds=1.0) + silence(0.8))
            while not talk.truth("done"):
                await talk.echo()
            await talk.say(silence(1.2))
            await talk.frames(36)
            tags = [message[0] for message in talk.messages]
            first = tags.index(2)
            assert all(tags[at - 1] == 1 for at, tag in enumerate(tags) if tag == 2)
            said = np.abs(np.frombuffer(talk.heard, "<i2").astype(int))
            assert said.max() > 1_000
            assert talk.text()
            writes = talk.truth("write")
            sound = [write for write in writes if write["kind"] == "audio"]
            assert sum(write["samples"] for write in sound) == 19_200
            texts = [write["before_ns"] for write in writes if write["kind"] == "text"]
            assert sound[0]["after_ns"] <= texts[0] <= sound[1]["before_ns"]
            # The frame of the truth log's first write is the one before the first text on the wire.
            began = tags[:first].count(1) - 1
            assert said[: began * 1_920 - 76].max() == 0

    asyncio.run(main())


def test_speech_silences_the_answer() -> None:
    async def main() -> None:
        async with talking(answer_s=8, think_ms=0, endpoint_ms=300, burst_x=0) as talk:
            await talk.say(spoken(seconds=1.0) + silence(0.8))
            while not talk.truth("done"):
                await talk.echo()
            await talk.say(silence(0.8) + spoken("answer-en-02", seconds=1.0))
            await talk.say(silence(0.16))
            await talk.echo()
            (stop,) = talk.truth("stop")
            assert stop["reason"] == "barge_in"
            sound = [write for write in talk.truth("write") if write["kind"] == "audio"]
            sound = [write for write in sound if write["response"] == stop["response"]]
            assert 0 < sum(write["samples"] for write in sound) < 8 * 24_000
            assert all(write["before_ns"] < stop["t_ns"] for write in sound)

    asyncio.run(main())


def test_what_comes_before_a_slow_handshake_waits() -> None:
    async def main() -> None:
        async with (
            agent_with(slow_ready_ms=150, never_answer=True) as agent,
            websockets.connect(address(agent), compression=None, max_queue=None) as ws,
        ):
            talk = MoshiTalk(ws, agent)
            await talk.say(silence(0.24))
            await talk.frames(2)
            assert [message[0] for message in talk.messages] == [0, 1, 1]

    asyncio.run(main())


@pytest.mark.parametrize("data", [b"", b"\x2a", b"\x01OggS nonsense", b"\x02hello"])
def test_odd_messages_are_ignored(data: bytes) -> None:
    async def main() -> None:
        async with talking(never_answer=True) as talk:
            await talk.ws.send(data)
            await talk.ws.send("text")
            await talk.say(silence(0.16))
            await talk.frames(1)
            await talk.echo()
            assert [message[0] for message in talk.messages] == [0, 1]
            assert talk.truth("append")[-1]["end_sample"] == 2 * 1_920
            assert not talk.truth("speech_start", "close")

    asyncio.run(main())


# --- with our own client ----------------------------------------------------------------------------------------


def hold(out: Path, kind: type[Moshi] = Moshi, *, instructions: str | None = None, **knobs: Any) -> tuple[Any, Session]:
    """One recorded session; the agent, with its truth log, and the session."""
    options = SuiteOptions(session=SessionOptions(turn="vad", timeout_s=8.0, instructions=instructions))

    async def main() -> Agent:
        async with agent_with(**knobs) as agent, Rig() as rig:
            peer = kind(PeerOptions(target=address(agent)), SystemClock())
            run = PeerRun(peer=peer, directory=RunDirectory(out), queries=(ToneQuery(ms=900),), suite="t")
            await Suite(rig, [run], options, lambda *done: None).run()
            return agent

    agent = asyncio.run(main())
    (name,) = RunDirectory(out).finished()
    return agent, load_session(RunDirectory(out).sessions / name)


SCRIPTED = {"endpointer": "scripted", "endpoint_sample": 26_400, "think_ms": 100, "answer_s": 0.8}


@pytest.mark.exact
def test_a_recorded_session_has_every_figure(tmp_path: Path) -> None:
    agent, session = hold(tmp_path, **SCRIPTED)
    (row,) = session_rows(session)
    assert row["status"] == "ok"
    first = next(write for write in agent.truth.records("write") if write["kind"] == "audio")
    first_audible_ns = row["anchors"]["first_audible"] + Recording(session).origin_ns
    # Inside the answer's first frame: the clip begins 2 ms late, the encoder adds 2.5 ms, our filter 0.7 ms.
    assert 2e6 < first_audible_ns - first["before_ns"] < 80e6
    assert row["anchors"]["first_text"] is not None
    assert row["first_packet_ms"] is None
    assert 0 < row["unit_lag_ms"] <= row["unit_lag_p99_ms"]
    assert 0 <= row["unit_miss_rate"] <= 1
    assert {event.samples for event in session.of(AudioSent)} == {1_920}
    assert not list(session.of(CommandSent))
    assert "".join(event.text for event in session.of(TextReceived)).split()


def test_units_pair_with_the_truth_log(tmp_path: Path) -> None:
    """Output j comes after append j + 1, and its lag is at least the time from there on to its arrival."""
    agent, session = hold(tmp_path, **SCRIPTED)
    heard = agent.truth.records("append")
    received = list(session.of(AudioReceived))
    assert [event.samples + event.skipped for event in received] == [1_920] * len(received)
    assert [append["end_sample"] for append in heard] == [1_920 * (number + 1) for number in range(len(heard))]
    assert len(received) <= len(heard) - 1
    sent = sorted(session.of(AudioSent), key=lambda event: event.sample)
    for number, event in enumerate(received):
        assert sent[number + 1].started_ns <= heard[number + 1]["t_ns"] <= event.t_ns


def test_personaplex_always_names_both_prompts(tmp_path: Path) -> None:
    agent, _ = hold(tmp_path, PersonaPlex, instructions="Be wise & brief.", **SCRIPTED)
    (opened,) = agent.truth.records("open")
    assert opened["path"] == "/api/chat?voice_prompt=NATF2.pt&text_prompt=Be+wise+%26+brief."
    bare = PersonaPlex(PeerOptions(target="wss://127.0.0.1:8998"), SystemClock())
    assert bare.url == "wss://127.0.0.1:8998/api/chat?voice_prompt=NATF2.pt&text_prompt="


def test_a_handshake_in_the_same_read_as_the_upgrade() -> None:
    """The phases keep their order, though the session is ready before the library says that it is open."""
    phases: list[str] = []

    gone = asyncio.Event()

    class Eager(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self.transport, self.request = transport, b""

        def data_received(self, data: bytes) -> None:
            self.request += data
            if b"\r\n\r\n" not in self.request or not self.request.startswith(b"GET"):
                return
            lines, self.request = self.request.split(b"\r\n"), b"open"
            key = next(line.split(b": ")[1] for line in lines if line.startswith(b"Sec-WebSocket-Key"))
            accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
            self.transport.write(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n" + bytes.fromhex("82 01 00")
            )

        def connection_lost(self, exc: Exception | None) -> None:
            gone.set()

    def sink(event: Event) -> None:
        if isinstance(event, ConnectionPhase):
            phases.append(event.phase)

    async def main() -> None:
        async with await asyncio.get_running_loop().create_server(Eager, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            peer = Moshi(PeerOptions(target=f"ws://127.0.0.1:{port}", timeout_s=PATIENCE_S), SystemClock())
            connection = await peer.connect(Configure(), sink)
            await connection.close()
            await gone.wait()

    asyncio.run(main())
    assert phases == ["started", "dns", "tcp", "upgrade", "ready", "configured"]


@pytest.mark.parametrize(
    ("target", "settings", "said"),
    [
        ("", {}, "name the server: --peer moshi:ws://127.0.0.1:8998/api/chat"),
        ("http://h", {}, "is no WebSocket URL"),
        ("ws://h", {"voice_prompt": "x"}, "no setting 'voice_prompt'"),
        ("ws://h", {"unit_delay": "-1"}, "must lie between"),
    ],
)
def test_what_cannot_be_is_one_clear_line(target: str, settings: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        Moshi(PeerOptions(target=target, settings=settings), SystemClock())


def test_the_rust_servers_settings_go_into_the_url() -> None:
    options = PeerOptions(target="ws://h:8998", settings={"text_topk": "25", "audio_temperature": "0.8"})
    assert Moshi(options, SystemClock()).url == "ws://h:8998/api/chat?text_topk=25&audio_temperature=0.8"
