"""What a listener is given of an RTP stream: arrival instants, silence for gaps, no idle packets that are behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from connectors.codecs.opus import PACKET_SAMPLES, OpusEncoder
from connectors.transports.rtp_audio import RtpAudio
from harness.core.audio import int16_to_pcm16
from harness.core.clock import VirtualClock
from harness.core.events import AudioReceived, Event, RtpBuffered, RtpReceived
from harness.core.playout import Packet, play

pytestmark = pytest.mark.unit
MS = 1_000_000
START_NS = 1_000_000 * MS


def opus(packets: int, level: int) -> list[bytes]:
    n = packets * PACKET_SAMPLES
    tone = (level * np.sin(2 * np.pi * 440 * np.arange(n) / 48_000)).astype(np.int16)
    return OpusEncoder().encode(int16_to_pcm16(tone))


LOUD, SILENT = opus(200, 12_000), opus(200, 0)


class Track:
    """An `RtpAudio` fed by hand."""

    def __init__(self, wait_ms: int = 40) -> None:
        self.clock = VirtualClock(START_NS)
        self.stamps: Any = SimpleNamespace(read_ns=0, read_bytes=0)
        self.events: list[Event] = []
        self.audio = RtpAudio(self.stamps, self.clock, self.events.append, wait_ms * MS)

    def arrive(self, number: int, t_ms: float, payload: bytes, timestamp: int | None = None, base: int = 0) -> None:
        self.clock.advance_to(START_NS + round(t_ms * MS))
        self.stamps.read_ns, self.stamps.read_bytes = self.clock.now_ns(), len(payload) + 22
        packet = SimpleNamespace(
            ssrc=5,
            sequence_number=(65_536 - base + number) % 65_536,
            timestamp=((number - base) * PACKET_SAMPLES if timestamp is None else timestamp) % 2**32,
            payload_type=96,
            marker=0,
            payload=payload,
        )
        assert self.audio.add(packet) == (False, None)

    def heard(self) -> list[AudioReceived]:
        return [event for event in self.events if isinstance(event, AudioReceived)]

    def report(self) -> RtpBuffered:
        self.audio.stop()
        return next(event for event in self.events if isinstance(event, RtpBuffered))


def driven(body: Callable[[], None]) -> None:
    async def main() -> None:
        body()

    asyncio.run(main())


def test_each_packet_has_its_own_arrival():
    def body() -> None:
        track = Track()
        instants = [0, 20.1, 41, 60, 80.7]
        for number, t_ms in enumerate(instants):
            track.arrive(number, t_ms, LOUD[number])
        heard = track.heard()
        assert [event.t_ns - START_NS for event in heard] == [round(t_ms * MS) for t_ms in instants]
        assert {event.samples for event in heard} == {PACKET_SAMPLES}
        assert all(len(event.pcm) == 2 * event.samples for event in heard)
        rtp = [event for event in track.events if isinstance(event, RtpReceived)]
        assert [event.sequence for event in rtp] == [0, 1, 2, 3, 4]
        assert [event.wire_bytes for event in rtp] == [len(payload) + 22 for payload in LOUD[:5]]

    driven(body)


@pytest.mark.parametrize("base", [0, 10])
def test_a_lost_packet_becomes_silence_of_its_own_length(base: int):
    def body() -> None:
        track = Track()
        for number in [number for number in range(30) if number != 12]:
            track.arrive(number, 20 * number, LOUD[number], base=base)
        heard = track.heard()
        fillers = [event for event in heard if not event.wire_bytes]
        assert [(event.t_ns - START_NS, event.samples) for event in fillers] == [(240 * MS, PACKET_SAMPLES)]
        assert not any(fillers[0].pcm)
        arrivals = [event.t_ns - START_NS for event in heard if event.wire_bytes]
        assert arrivals == [20 * number * MS for number in range(30) if number != 12]
        assert sum(event.samples for event in heard) == 30 * PACKET_SAMPLES
        report = track.report()
        assert (report.lost, report.filled_samples, report.received) == (1, PACKET_SAMPLES, 29)
        assert report.max_held_ns == 40 * MS

    driven(body)


def test_the_buffer_moves_no_stamp_and_its_delay_is_told():
    def body() -> None:
        stamps, reports = [], []
        for wait_ms in (20, 200):
            track = Track(wait_ms)
            for number in [number for number in range(60) if number % 17 != 5]:
                track.arrive(number, 20 * number + number % 3, LOUD[number])
            reports.append(track.report())
            stamps.append([event.t_ns for event in track.heard() if event.wire_bytes])
        assert stamps[0] == stamps[1]
        assert reports[0].lost == reports[1].lost == 4
        assert reports[1].held_ns > 4 * reports[0].held_ns

    driven(body)


def test_silence_puts_a_listener_who_fell_behind_back_on_time():
    """300 ms of packets come late in one burst; after that, sound begins when it arrives, not 300 ms later."""

    def body() -> None:
        track = Track()
        for number in range(100):
            on_time = 20 * number
            t_ms = max(on_time, 800) if 25 <= number < 41 else on_time
            track.arrive(number, t_ms, LOUD[number] if number >= 60 else SILENT[number])
        heard = track.heard()
        played = play(
            [
                Packet(arrival_ns=e.t_ns, samples=e.samples, rate_hz=e.rate_hz)
                for e in heard
                if e.t_ns - START_NS <= 1200 * MS
            ]
        )
        late_ns = played[-1].start_ns - (START_NS + 1200 * MS)
        assert 0 <= late_ns <= 5 * MS
        assert track.report().skipped_samples >= 13 * PACKET_SAMPLES

    driven(body)


def test_sound_is_never_left_out():
    def body() -> None:
        track = Track()
        for number in range(50):
            track.arrive(number, 0, LOUD[number])  # all at once: a listener is a second behind
        assert len(track.heard()) == 50
        assert track.report().skipped_samples == 0

    driven(body)


def test_a_sender_that_pauses_leaves_silence_of_the_pause():
    """No packets between answers, the timestamp goes on (RFC 7587): the answer after it begins at its own arrival."""

    def body() -> None:
        track = Track()
        track.arrive(0, 0, LOUD[0])
        track.arrive(1, 5000, LOUD[1], timestamp=240_000)
        first, filler, second = track.heard()
        assert (first.wire_bytes > 0, filler.wire_bytes, second.wire_bytes > 0) == (True, 0, True)
        assert filler.t_ns == first.t_ns + 20 * MS
        assert filler.samples == 240_000 - PACKET_SAMPLES
        assert second.t_ns == START_NS + 5000 * MS

    driven(body)


def test_a_clock_that_jumps_is_no_pause():
    def body() -> None:
        track = Track()
        track.arrive(0, 0, LOUD[0])
        track.arrive(1, 20, LOUD[1], timestamp=2_000_000_000)
        track.arrive(2, 40, LOUD[2], timestamp=2_000_000_960)
        assert [event.samples for event in track.heard()] == [PACKET_SAMPLES] * 3

    driven(body)


def test_a_pause_is_heard_while_it_lasts():
    async def main() -> None:
        track = Track()
        track.arrive(0, 0, LOUD[0])
        async with asyncio.timeout(20):
            while len(track.heard()) < 2:
                await asyncio.sleep(0.05)
                track.clock.advance_to(track.clock.now_ns() + 300 * MS)
        first, filler = track.heard()[:2]
        assert filler.t_ns == first.t_ns + 20 * MS
        assert filler.wire_bytes == 0
        assert filler.samples >= 0.5 * 48_000
        track.audio.stop()
        n = len(track.events)
        track.clock.advance_to(track.clock.now_ns() + 5000 * MS)
        await asyncio.sleep(0.25)
        assert len(track.events) == n

    asyncio.run(main())


def test_a_packet_that_is_missing_at_the_end_is_given_up_by_time():
    async def main() -> None:
        track = Track(wait_ms=20)
        track.arrive(0, 0, LOUD[0])
        track.arrive(2, 40, LOUD[2])
        assert len(track.heard()) == 1
        track.clock.advance_to(START_NS + 70 * MS)
        async with asyncio.timeout(20):
            while len(track.heard()) < 3:  # noqa: ASYNC110 - what is tested is a timer
                await asyncio.sleep(0.01)
        assert track.heard()[-1].t_ns == START_NS + 40 * MS
        track.audio.stop()

    asyncio.run(main())


@pytest.mark.parametrize("payload", [b"", b"\xff", b"\x03\xff\xff", bytes(1500)])
def test_what_is_no_opus_harms_nothing(payload: bytes):
    def body() -> None:
        track = Track()
        track.arrive(0, 0, LOUD[0])
        track.arrive(1, 20, payload)
        track.arrive(2, 40, LOUD[2])
        assert track.heard()[-1].t_ns == START_NS + 40 * MS
        assert track.report().received == 3

    driven(body)
