"""The agent over WebRTC, driven by a plain aiortc caller that knows no codec of ours."""

from __future__ import annotations

import asyncio
import fractions
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import av
import numpy as np
import pytest
import soxr
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription

from connectors.agent import Agent, Knobs, serve
from connectors.transports.ice_loopback import loopback_only
from tests.connectors.agent.talk import spoken

pytestmark = pytest.mark.loopback
RATE_HZ = 48_000
PATIENCE_S = 30.0


class Voice(MediaStreamTrack):
    """A microphone: half a second of silence, the speech, silence without end."""

    kind = "audio"

    def __init__(self, samples: np.ndarray) -> None:
        super().__init__()
        self.falls_silent = False
        self._samples = np.concatenate([np.zeros(RATE_HZ // 2, np.int16), samples])
        self._at = 0
        self._began: float | None = None
        self.hold = asyncio.Event()

    @property
    def sent(self) -> int:
        """Samples that have gone out as packets."""
        return self._at

    def say_again(self) -> None:
        """The same speech once more, from now on."""
        silence = np.zeros(self._at - len(self._samples), np.int16)
        self._samples = np.concatenate([self._samples, silence, self._samples[RATE_HZ // 2 :]])

    async def recv(self) -> av.AudioFrame:
        await self.hold.wait()
        if self.falls_silent and self._at >= len(self._samples):
            await asyncio.Event().wait()  # no more packets, as with DTX
        loop = asyncio.get_running_loop()
        self._began = self._began if self._began is not None else loop.time()
        await asyncio.sleep(max(0.0, self._began + self._at / RATE_HZ - loop.time()))
        piece = self._samples[self._at : self._at + 960]
        frame = av.AudioFrame.from_ndarray(np.pad(piece, (0, 960 - len(piece))).reshape(1, -1), "s16", "mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE_HZ, self._at, fractions.Fraction(1, RATE_HZ)
        self._at += 960
        return frame


class Caller:
    """One call: the data channel's messages and the track's samples."""

    def __init__(self, pc: RTCPeerConnection, channel: Any, voice: Voice) -> None:
        self.pc = pc
        self.channel = channel
        self.voice = voice
        self.messages: list[dict[str, Any]] = []
        self.samples: list[np.ndarray] = []
        channel.on("message", lambda message: self.messages.append(json.loads(message)))

    def types(self) -> list[str]:
        return [message["type"] for message in self.messages]

    async def until(self, name: str) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            while name not in self.types():  # noqa: ASYNC110 - messages come from aiortc's own task
                await asyncio.sleep(0.01)
        return next(message for message in self.messages if message["type"] == name)

    def send(self, name: str, **body: Any) -> None:
        self.channel.send(json.dumps({"type": name, **body}))


@asynccontextmanager
async def calling(agent: Agent, path: str, *, multipart: dict[str, Any] | None = None) -> AsyncIterator[Caller]:
    pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    said = soxr.resample(np.frombuffer(spoken(seconds=1.2), "<i2"), 24_000, RATE_HZ)
    voice = Voice(said)
    pc.addTrack(voice)
    caller = Caller(pc, pc.createDataChannel("oai-events"), voice)

    @pc.on("track")
    async def on_track(track: MediaStreamTrack) -> None:
        while True:
            try:
                frame = await track.recv()
            except Exception:
                return
            caller.samples.append(frame.to_ndarray().reshape(-1, 2)[:, 0])

    with loopback_only():
        await pc.setLocalDescription(await pc.createOffer())
    base = agent.url.replace("ws", "http", 1).removesuffix("/v1/realtime")
    sdp = pc.localDescription.sdp
    async with aiohttp.ClientSession() as http:
        if path == "/api/offer":
            async with http.post(base + path, json={"sdp": sdp, "type": "offer"}) as answer:
                assert answer.status == 200
                back = (await answer.json())["sdp"]
        else:
            form: Any = sdp
            headers = {"Content-Type": "application/sdp"}
            if multipart is not None:
                form, headers = aiohttp.FormData(), {}
                form.add_field("sdp", sdp, content_type="application/sdp")
                form.add_field("session", json.dumps(multipart), content_type="application/json")
            async with http.post(base + path, data=form, headers=headers) as answer:
                assert answer.status == 201
                assert answer.headers["Location"].startswith("/v1/realtime/calls/rtc_")
                back = await answer.text()
                where = answer.headers["Location"]
        await pc.setRemoteDescription(RTCSessionDescription(sdp=back, type="answer"))
        try:
            yield caller
        finally:
            if path != "/api/offer":
                async with http.delete(base + where) as answer:
                    assert answer.status in (200, 404)
            await pc.close()


def loudest(samples: list[np.ndarray]) -> int:
    return int(max((np.abs(piece).max() for piece in samples), default=0))


def test_a_call_hears_and_answers() -> None:
    async def main() -> None:
        async with serve(Knobs(answer_s=0.6, think_ms=50), keep_truth=True) as agent:
            async with calling(agent, "/v1/realtime/calls") as caller:
                await caller.until("session.created")
                caller.voice.hold.set()
                await caller.until("input_audio_buffer.speech_stopped")
                await caller.until("output_audio_buffer.stopped")
                names = caller.types()
                assert "response.output_audio.delta" not in names
                assert "response.output_audio_transcript.delta" in names
                order = ["response.created", "output_audio_buffer.started", "output_audio_buffer.stopped"]
                assert [name for name in names if name in order] == order
                assert loudest(caller.samples) > 1000
            writes = [each for each in agent.truth.records("write") if each["kind"] == "audio"]
            assert sum(each["samples"] for each in writes) == round(0.6 * RATE_HZ)
            assert not agent.truth.records("error")
        assert agent.calls == {}

    asyncio.run(main())


def test_a_manual_turn_with_the_settings_in_the_offer() -> None:
    session = {"type": "realtime", "audio": {"input": {"turn_detection": None}}}

    async def main() -> None:
        async with (
            serve(Knobs(answer_s=5.0, think_ms=20), keep_truth=True) as agent,
            calling(agent, "/v1/realtime/calls", multipart=session) as caller,
        ):
            created = await caller.until("session.created")
            assert created["session"]["audio"]["input"]["turn_detection"] is None
            caller.voice.hold.set()
            await asyncio.sleep(1.0)
            caller.send("input_audio_buffer.commit")
            caller.send("response.create")
            await caller.until("output_audio_buffer.started")
            caller.send("response.cancel")
            caller.send("output_audio_buffer.clear")
            await caller.until("output_audio_buffer.cleared")
            assert "output_audio_buffer.stopped" not in caller.types()
            assert [each["source"] for each in agent.truth.records("endpoint")] == ["commit"]

    asyncio.run(main())


def test_small_webrtc() -> None:
    async def main() -> None:
        async with serve(Knobs(answer_s=0.4, think_ms=50), keep_truth=True) as agent:
            async with calling(agent, "/api/offer") as caller:
                async with asyncio.timeout(PATIENCE_S):
                    while caller.channel.readyState != "open":  # noqa: ASYNC110 - aiortc's own task opens it
                        await asyncio.sleep(0.01)
                caller.channel.send("ping")
                caller.channel.send(json.dumps({"label": "rtvi-ai", "type": "client-ready", "id": "1", "data": {}}))
                await caller.until("bot-ready")
                caller.voice.hold.set()
                await caller.until("bot-stopped-speaking")
                order = ["user-started-speaking", "user-stopped-speaking", "bot-llm-text", "bot-started-speaking"]
                names = list(dict.fromkeys(caller.types()))
                assert [name for name in names if name in order] == order
                assert loudest(caller.samples) > 1000
            assert not agent.truth.records("error")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("path", "kind", "body"),
    [
        ("/v1/realtime/calls", "application/sdp", "nonsense"),
        ("/v1/realtime/calls", "application/json", "{}"),
        ("/api/offer", "application/json", "{"),
        ("/api/offer", "application/json", '{"sdp": "v=0", "type": "offer"}'),
    ],
)
def test_a_bad_offer_is_refused_in_words(path: str, kind: str, body: str) -> None:
    async def main() -> None:
        async with serve(Knobs()) as agent, aiohttp.ClientSession() as http:
            base = agent.url.replace("ws", "http", 1).removesuffix("/v1/realtime")
            async with http.post(base + path, data=body, headers={"Content-Type": kind}) as answer:
                assert answer.status == 400
                assert (await answer.json())["error"]["message"]
        assert agent.calls == {}

    asyncio.run(main())


async def good_offer() -> str:
    pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    pc.addTransceiver("audio")
    pc.createDataChannel("oai-events")
    with loopback_only():
        await pc.setLocalDescription(await pc.createOffer())
    sdp: str = pc.localDescription.sdp
    await pc.close()
    return sdp


SPOILT = {
    "port": lambda sdp: sdp.replace("m=audio ", "m=audio 99999999999 ", 1),
    "fingerprint": lambda sdp: sdp.replace("a=fingerprint", "a=x"),
    "candidate": lambda sdp: sdp.replace("a=candidate:", "a=candidate:x\r\na=candidate:", 1),
    "candidates": lambda sdp: sdp + "a=candidate:1 1 udp 1 127.0.0.1 9 typ host\r\n" * 300,
    "setup": lambda sdp: sdp.replace("actpass", "holdconn"),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT.keys())
def test_an_offer_that_aiortc_chokes_on_leaves_nothing_behind(spoil: Any) -> None:
    async def main() -> None:
        async with serve(Knobs()) as agent, aiohttp.ClientSession() as http:
            base = agent.url.replace("ws", "http", 1).removesuffix("/v1/realtime")
            sdp = spoil(await good_offer())
            before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
            for _ in range(20):
                async with http.post(base + "/api/offer", json={"sdp": sdp, "type": "offer"}) as answer:
                    assert answer.status == 400
                    assert (await answer.json())["error"]["message"]
            assert agent.calls == {}
            assert not before or len(os.listdir("/proc/self/fd")) <= before + 4

    asyncio.run(main())


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", b"junk"),
        ("multipart/form-data; boundary=x", b"junk"),
        (
            "multipart/form-data; boundary=x",
            b"--x\r\nContent-Type: multipart/mixed; boundary=y\r\n\r\n--y--\r\n--x--\r\n",
        ),
    ],
)
def test_a_multipart_body_that_is_none_is_refused_in_words(kind: str, body: bytes) -> None:
    async def main() -> None:
        async with serve(Knobs()) as agent, aiohttp.ClientSession() as http:
            base = agent.url.replace("ws", "http", 1).removesuffix("/v1/realtime")
            async with http.post(base + "/v1/realtime/calls", data=body, headers={"Content-Type": kind}) as answer:
                assert answer.status == 400
                assert (await answer.json())["error"]["message"]
            assert agent.calls == {}

    asyncio.run(main())


def test_a_call_that_is_never_connected_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectors.transports.answered_call.CONNECT_TIMEOUT_S", 0.3)

    async def main() -> None:
        async with serve(Knobs(), keep_truth=True) as agent, aiohttp.ClientSession() as http:
            base = agent.url.replace("ws", "http", 1).removesuffix("/v1/realtime")
            async with http.post(base + "/api/offer", json={"sdp": await good_offer(), "type": "offer"}) as answer:
                assert answer.status == 200
            assert agent.calls
            async with asyncio.timeout(PATIENCE_S):
                while agent.calls:  # noqa: ASYNC110 - aiortc's own tasks end it
                    await asyncio.sleep(0.02)
            assert agent.truth.records("close")

    asyncio.run(main())


def test_a_caller_who_sends_no_more_packets_is_heard_as_silence() -> None:
    async def main() -> None:
        async with (
            serve(Knobs(answer_s=0.3, think_ms=20), keep_truth=True) as agent,
            calling(agent, "/v1/realtime/calls") as caller,
        ):
            caller.voice.falls_silent = True
            await caller.until("session.created")
            caller.voice.hold.set()
            await caller.until("output_audio_buffer.stopped")
            sent = caller.voice.sent
            (endpoint,) = agent.truth.records("endpoint")
            assert endpoint["source"] == "silero"
            assert endpoint["received_samples"] > sent  # more than ever came: the silence behind it
            writes = [each for each in agent.truth.records("write") if each["kind"] == "audio"]
            assert sum(each["samples"] for each in writes) == round(0.3 * RATE_HZ)

    asyncio.run(main())


def test_a_paced_answer_starts_and_stops_once_and_is_truncated_by_speech() -> None:
    async def main() -> None:
        async with (
            serve(Knobs(answer_s=20, think_ms=20, delivery="paced"), keep_truth=True) as agent,
            calling(agent, "/v1/realtime/calls") as caller,
        ):
            await caller.until("session.created")
            caller.voice.hold.set()
            await caller.until("output_audio_buffer.started")
            await asyncio.sleep(0.7)
            caller.voice.say_again()
            cut = await caller.until("conversation.item.truncated")
            names = caller.types()
            assert names.count("output_audio_buffer.started") == 1
            assert "output_audio_buffer.stopped" not in names
            assert names.count("output_audio_buffer.cleared") == 1
            said = sum(each["samples"] for each in agent.truth.records("write") if each["kind"] == "audio")
            assert cut["audio_end_ms"] == said * 1000 // RATE_HZ

    asyncio.run(main())
