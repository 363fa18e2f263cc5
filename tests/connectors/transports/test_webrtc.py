"""The WebRTC transport against a bare aiortc answerer: instants, loss, order, round trips, ends of all kinds."""

from __future__ import annotations

import asyncio
import os
import random
import struct
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from connectors.codecs.opus import PACKET_SAMPLES, OpusEncoder
from connectors.transports.rtp_voice import TAIL_PACKETS, at_once
from connectors.transports.webrtc import WebRtcTransport, open_webrtc, usable_sdp
from harness.core.audio import int16_to_pcm16
from harness.core.clock import SystemClock
from harness.core.errors import ConfigError, ConnectorError
from harness.core.events import AudioReceived, Event, RtpBuffered, RtpReceived
from scoring.timing.rtp import packets
from tests.connectors.transports.rtc_server import Call, until

pytestmark = pytest.mark.loopback
CLOCK = SystemClock()
MS = 1_000_000


def tone(packet_count: int, hz: float = 440.0) -> bytes:
    n = np.arange(packet_count * PACKET_SAMPLES)
    return int16_to_pcm16((9000 * np.sin(2 * np.pi * hz * n / 48_000)).astype(np.int16))


LOUD = OpusEncoder().encode(tone(150))


class Line:
    """A client's transport and the call at its other end, in one loop."""

    def __init__(self) -> None:
        self.call = Call()
        self.events: list[Event] = []
        self.phases: list[str] = []
        self.messages: list[tuple[bytes, bool, int, int]] = []
        self.round_trips: list[int] = []
        self.closed: list[tuple[str, str]] = []
        self.hung_up = 0
        self.transport: WebRtcTransport

    async def open(self, exchange: Callable[[str], Awaitable[str]] | None = None, **more: Any) -> None:
        async def hang_up() -> None:
            self.hung_up += 1
            raise ConnectorError("who cares", kind="connect")

        self.transport = await open_webrtc(
            exchange or self.call.answer,
            label="oai-events",
            clock=CLOCK,
            sink=self.events.append,
            on_message=lambda *said: self.messages.append(said),
            on_phase=lambda phase, t_ns: self.phases.append(phase),
            on_rtt=lambda t_ns, rtt_ns: self.round_trips.append(rtt_ns),
            on_closed=lambda t_ns, by, code, reason: self.closed.append((by, reason)),
            hang_up=hang_up,
            loopback=True,
            **more,
        )
        await until(self.call.opened.is_set)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def on_a_line(body: Callable[[Line], Awaitable[None]], **more: Any) -> Line:
    async def main() -> Line:
        line = Line()
        try:
            await line.open(**more)
            try:
                await body(line)
            finally:
                await line.transport.close()
                await line.transport.close()
        finally:
            await line.call.close()
        return line

    return asyncio.run(main())


def test_text_goes_both_ways_and_is_stamped():
    async def body(line: Line) -> None:
        assert line.phases == ["started", "upgrade"]
        before_ns = CLOCK.now_ns()
        line.call.say(type="hello", text="早上好")
        await until(lambda: line.messages)
        data, is_text, t_ns, _ = line.messages[0]
        assert "早上好" in data.decode() or b"\\u65e9" in data
        assert is_text
        assert before_ns <= t_ns <= CLOCK.now_ns()
        drained: list[int] = []
        frames = line.transport.prepare('{"type":"a"}') + line.transport.prepare('{"type":"b"}')
        line.transport.write(frames)
        line.transport.when_drained(drained.append)
        await until(lambda: len(line.call.messages) == 2 and drained)
        assert line.call.messages == ['{"type":"a"}', '{"type":"b"}']

    line = on_a_line(body)
    assert line.closed == [("us", "")]
    assert line.hung_up == 1


@pytest.mark.exact
def test_our_audio_is_heard_by_another_decoder_and_never_waits():
    async def body(line: Line) -> None:
        pcm = tone(50, hz=1000)
        for at in range(0, len(pcm), 2 * PACKET_SAMPLES):
            frames = line.transport.prepare(pcm[at : at + 2 * PACKET_SAMPLES])
            assert line.transport.write(frames) == 0
            await asyncio.sleep(0.002)
        line.transport.write(line.transport.prepare(b""))  # the stream ends: a little silence pushes the rest out
        await until(lambda: len(line.call.heard) >= 50)
        heard = np.concatenate(line.call.heard[5:45]).astype(float)
        spectrum = np.abs(np.fft.rfft(heard))
        assert abs(np.fft.rfftfreq(len(heard), 1 / 48_000)[spectrum.argmax()] - 1000) < 20
        assert np.diff(line.call.pts[:50]).tolist() == [PACKET_SAMPLES] * 49

    on_a_line(body)


def test_the_timestamp_goes_on_while_the_stream_pauses():
    async def body(line: Line) -> None:
        chunk = tone(1)
        for _ in range(10):
            line.transport.write(line.transport.prepare(chunk))
        await asyncio.sleep(0.3)
        for _ in range(10):
            line.transport.write(line.transport.prepare(chunk))
        await until(lambda: len(line.call.pts) >= 15)
        steps = np.diff(line.call.pts)
        assert steps[:9].tolist() == [PACKET_SAMPLES] * 9
        assert steps[9] >= 0.25 * 48_000
        assert steps[9] % PACKET_SAMPLES == 0

    on_a_line(body)


def test_a_stream_that_goes_on_gets_no_tail_and_a_cut_chunk_is_the_last():
    async def body(line: Line) -> None:
        line.transport.write(line.transport.prepare(tone(1)[:600]))
        with pytest.raises(ConfigError, match="multiple"):
            line.transport.prepare(tone(1))
        line.transport.write(line.transport.prepare(b""))
        line.transport.write(line.transport.prepare(tone(1)))
        await asyncio.sleep(0.03 * TAIL_PACKETS)
        assert line.transport._voice is not None
        assert line.transport._voice._sequence == 2

    on_a_line(body)


async def speak(line: Line, count: int, *, lost: frozenset[int] = frozenset(), pace_s: float = 0.02) -> None:
    begin_ns = CLOCK.now_ns()
    for number in range(count):
        line.call.speak(LOUD[number], lose=number in lost)
        await asyncio.sleep(max(0.0, (begin_ns - CLOCK.now_ns()) / 1e9 + (number + 1) * pace_s))


@pytest.mark.parametrize("buffer_ms", [40, 200])
def test_five_percent_loss_is_reported_and_survives(buffer_ms: int):
    chance = random.Random(11)
    lost = frozenset(number for number in range(1, 119) if chance.random() < 0.05)
    assert 3 <= len(lost) <= 12

    async def body(line: Line) -> None:
        await speak(line, 120, lost=lost)
        await until(lambda: len([e for e in line.of(AudioReceived) if e.wire_bytes]) == 120 - len(lost))

    line = on_a_line(body, buffer_ms=buffer_ms)
    rtp = line.of(RtpReceived)
    sent = dict(line.call.sent)
    assert packets(rtp) == (120 - len(lost), 120)
    (report,) = line.of(RtpBuffered)
    assert (report.lost, report.received) == (len(lost), 120 - len(lost))
    assert report.wait_ns == buffer_ms * MS
    assert report.max_held_ns >= buffer_ms * MS
    # The stamps are the datagrams' own, whatever the buffer waited for: each a moment after its packet was sent.
    delays = [event.t_ns - sent[event.sequence] for event in rtp]
    assert min(delays) >= 0
    assert np.median(delays) < 15 * MS
    heard = [event.t_ns for event in line.of(AudioReceived) if event.wire_bytes]
    assert heard == [event.t_ns for event in rtp]


def test_disorder_on_the_wire():
    async def body(line: Line) -> None:
        for number in range(40):
            if number % 10 == 3:  # sent after its follower
                sequence, timestamp = line.call.sequence, line.call.timestamp
                line.call.sequence, line.call.timestamp = (sequence + 1) % 2**16, (timestamp + 960) % 2**32
                line.call.speak(LOUD[number + 1])
                line.call.sequence, line.call.timestamp = sequence, timestamp
                line.call.speak(LOUD[number])
                line.call.sequence, line.call.timestamp = (sequence + 2) % 2**16, (timestamp + 1920) % 2**32
            elif number % 10 != 4:
                line.call.speak(LOUD[number])
            await asyncio.sleep(0.004)
        await until(lambda: len(line.of(AudioReceived)) >= 40)

    line = on_a_line(body)
    (report,) = line.of(RtpBuffered)
    assert (report.reordered, report.lost, report.delivered) == (4, 0, 40)


def test_a_round_trip_is_asked_for_by_stun():
    async def body(line: Line) -> None:
        for _ in range(3):
            line.transport.ping()
        await until(lambda: len(line.round_trips) == 3)
        assert all(rtt_ns > 0 for rtt_ns in line.round_trips)

    on_a_line(body)


def test_the_peer_hangs_up():
    async def body(line: Line) -> None:
        await line.call.pc.close()
        await until(lambda: line.closed)
        with pytest.raises(ConnectorError, match="closed"):
            line.transport.write(line.transport.prepare("late"))
        line.transport.ping()

    line = on_a_line(body)
    assert [by for by, _ in line.closed] == ["peer"]
    assert line.hung_up == 0


@pytest.mark.parametrize("answer", ["", "nonsense", "v=0\r\n", "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n"])
def test_an_answer_that_is_none(answer: str):
    async def exchange(offer: str) -> str:
        assert "m=audio" in offer
        assert "opus/48000" in offer
        assert "PCMU" not in offer
        return answer

    async def main() -> None:
        line = Line()
        with pytest.raises(ConnectorError, match="SDP answer") as caught:
            await line.open(exchange)
        assert caught.value.kind == "protocol"
        await line.call.close()

    asyncio.run(main())


def test_a_peer_that_answers_and_is_never_there():
    async def main() -> None:
        line = Line()
        other = Call()

        async def exchange(offer: str) -> str:
            answer = await other.answer(offer)
            await other.close()
            return answer

        with pytest.raises(ConnectorError, match="within 1 s"):
            await line.open(exchange, timeout_s=1.0)
        assert line.hung_up == 1
        await line.call.close()

    asyncio.run(main())


def test_an_ice_url_that_is_none():
    async def main() -> None:
        line = Line()
        with pytest.raises(ConfigError, match="ice"):
            await line.open(ice=("stunning:server",))
        await line.call.close()

    asyncio.run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="counts open files in /proc")
def test_a_peer_of_many_sources_cannot_keep_our_sockets_open():
    """aiortc's own report on more than 31 of them fails, and its close then waits without end."""

    def open_files() -> int:
        return len(os.listdir("/proc/self/fd"))

    async def main() -> None:
        before = open_files()
        line = Line()
        await line.open()
        transceiver = line.call.pc.getTransceivers()[0]
        for number in range(100):
            header = struct.pack("!BBHII", 0x80, transceiver._codecs[0].payloadType, number, number * 960, 7 + number)
            at_once(transceiver.sender.transport._send_rtp(header + LOUD[0]))
            await asyncio.sleep(0.001)
        await asyncio.sleep(1.5)  # a report is due
        await line.transport.close()
        await line.call.close()
        await asyncio.sleep(0.1)
        assert open_files() <= before

    asyncio.run(main())


def test_candidates_of_multicast_dns_are_left_out() -> None:
    lines = [
        "v=0",
        "a=fingerprint:sha-256 AA",
        "a=candidate:1 1 udp 1 0f1e.local 5000 typ host",
        "a=candidate:2 1 udp 1 127.0.0.1 5000 typ host",
        "",
    ]
    assert usable_sdp("\r\n".join(lines)) == "\r\n".join(line for line in lines if ".local" not in line)
