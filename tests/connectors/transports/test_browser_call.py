"""A browser's call: what comes is put in order on the sender's clock, what is played goes out."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import numpy as np
import pytest
from aiortc.rtp import RtpPacket

from connectors.codecs.opus import LOOKAHEAD_SAMPLES, PACKET_SAMPLES, OpusEncoder
from connectors.transports import ice_loopback
from connectors.transports.browser_call import LONGEST_FILL, BrowserCall
from connectors.transports.webrtc import open_webrtc
from harness.core.audio import Int16, int16_to_pcm16
from harness.core.clock import SystemClock
from harness.core.events import AudioReceived, Event
from scenarios.pack import load_pack
from tests.connectors.transports.rtc_server import until

pytestmark = pytest.mark.loopback
CLOCK = SystemClock()
OPUS = 96


def tone(packets: int, hz: float = 440.0) -> Int16:
    return (9000 * np.sin(2 * np.pi * hz * np.arange(packets * PACKET_SAMPLES) / 48_000)).astype(np.int16)


def spoken() -> Int16:
    """Speech of 1.2 s in whole packets."""
    clip = next(clip for clip in load_pack("queries").clips if clip.id == "en-03").at_rate(48_000)
    begin = clip.speech_start
    return clip.samples[begin : begin + 60 * PACKET_SAMPLES]


LOUD = OpusEncoder().encode(int16_to_pcm16(tone(20)))


class Fed(BrowserCall):
    """A call whose packets the test hands over; blocks: what came of them."""

    def __init__(self) -> None:
        super().__init__(CLOCK)
        self._opus_type = OPUS
        self.blocks: list[tuple[Int16, int, bool]] = []
        self.on_sound = lambda samples, t_ns, lost: self.blocks.append((samples, t_ns, lost))

    def feed(self, number: int, *, at: int | None = None, t_ns: int | None = None, ssrc: int = 7) -> None:
        packet: Any = RtpPacket(payload_type=OPUS, sequence_number=number % 2**16)
        packet.timestamp = (number * PACKET_SAMPLES if at is None else at) % 2**32
        packet.ssrc, packet._data = ssrc, LOUD[number % len(LOUD)]
        self.on_packet(packet, CLOCK.now_ns() if t_ns is None else t_ns, 60)


def with_call(steps: Any) -> Fed:
    async def main() -> Fed:
        call = Fed()
        await steps(call)
        await asyncio.sleep(0)
        await call.closed()
        return call

    return asyncio.run(main())


def test_packets_out_of_order_come_in_order_with_their_own_instants() -> None:
    async def steps(call: Fed) -> None:
        for number, t_ns in ((0, 100), (2, 140), (1, 150), (3, 160)):
            call.feed(number, t_ns=t_ns)

    call = with_call(steps)
    assert [t_ns for _, t_ns, _ in call.blocks] == [100, 150, 140, 160]
    assert [len(samples) for samples, _, _ in call.blocks] == [960] * 4
    assert not any(lost for _, _, lost in call.blocks)


def test_a_lost_packet_is_silence_of_its_length() -> None:
    async def steps(call: Fed) -> None:
        for number in (0, 1, 3):
            call.feed(number)
        assert call.blocks == []
        await until(lambda: len(call.blocks) == 3)

    call = with_call(steps)
    last, _, lost = call.blocks[2]
    assert len(last) == 2 * PACKET_SAMPLES
    assert not last[:PACKET_SAMPLES].any()
    assert last[PACKET_SAMPLES:].any()
    assert not lost
    assert (call.lost, call.filled_samples) == (1, PACKET_SAMPLES)


def test_a_page_that_slept_or_began_anew_is_told() -> None:
    async def steps(call: Fed) -> None:
        call.feed(0)
        call.feed(1, at=LONGEST_FILL + 10 * PACKET_SAMPLES)
        call.feed(2, at=LONGEST_FILL + 11 * PACKET_SAMPLES)
        call.feed(40, ssrc=8)

    call = with_call(steps)
    assert [lost for _, _, lost in call.blocks] == [False, True, False, True]
    assert call.filled_samples == 0


def test_other_codecs_are_no_sound() -> None:
    async def steps(call: Fed) -> None:
        call._opus_type = OPUS + 1
        call.feed(0)

    assert with_call(steps).blocks == []


def test_a_call_over_the_loopback_both_ways() -> None:
    async def main() -> tuple[list[tuple[Int16, int, bool]], list[Event], list[str]]:
        call = BrowserCall(CLOCK)
        events: list[Event] = []
        told: list[str] = []
        blocks: list[tuple[Int16, int, bool]] = []
        call.on_sound = lambda samples, t_ns, lost: blocks.append((samples, t_ns, lost))
        call.on_open, call.on_gone = lambda: told.append("open"), lambda: told.append("gone")
        transport = await open_webrtc(
            call.answer,
            label="firstpacket",
            clock=CLOCK,
            sink=events.append,
            on_message=lambda *said: None,
            on_phase=lambda phase, t_ns: None,
            on_rtt=lambda t_ns, rtt_ns: None,
            on_closed=lambda t_ns, by, code, reason: None,
            loopback=True,
        )
        await until(lambda: bool(told))
        said = spoken()
        for at in range(0, len(said), PACKET_SAMPLES):
            transport.write(transport.prepare(int16_to_pcm16(said[at : at + PACKET_SAMPLES])))
            call.play(said[at : at + PACKET_SAMPLES])
            await asyncio.sleep(0)
        await until(lambda: len(blocks) >= len(said) // PACKET_SAMPLES)
        await transport.close()
        await until(lambda: "gone" in told)
        await call.closed()
        return blocks, events, told

    blocks, events, told = asyncio.run(main())
    assert told == ["open", "gone"]
    heard = np.concatenate([samples for samples, _, _ in blocks])
    # Sample s of what was said is sample s + look-ahead of what is heard.
    said, n = spoken(), 1 << 18
    match = np.fft.irfft(np.fft.rfft(heard, n) * np.conj(np.fft.rfft(said, n)), n)
    assert int(np.argmax(match)) == pytest.approx(LOOKAHEAD_SAMPLES, abs=10)
    assert all(a[1] <= b[1] for a, b in itertools.pairwise(blocks))
    played = b"".join(event.pcm for event in events if isinstance(event, AudioReceived))
    assert np.abs(np.frombuffer(played, "<i2")).max() > 5_000


def test_addresses_are_this_machines_loopback_and_its_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ice_loopback, "_gathered", lambda use_ipv4, use_ipv6: ["192.0.2.7"])
    with ice_loopback.loopback_too():
        assert ice_loopback._addresses(True, True) == ["127.0.0.1", "192.0.2.7"]
        with ice_loopback.loopback_only():
            assert ice_loopback._addresses(True, True) == ["127.0.0.1"]
    assert ice_loopback._addresses(True, True) == ["192.0.2.7"]
