"""A browser's call: its microphone as one run of samples with arrival instants, our sound to its loudspeaker.

Packets are put in order (`reorder.py`); a gap in the sender's timestamps is filled with as much silence, so that the
samples stay on the sender's own clock. What is not known is when the browser captured them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np
from aiortc.rtp import RtpPacket

from connectors.codecs.opus import LOOKAHEAD_SAMPLES, RATE_HZ, OpusDecoder
from connectors.transports.answered_call import AnsweredCall
from connectors.transports.ice_loopback import loopback_too
from connectors.transports.reorder import Arrived, ReorderBuffer
from harness.core.audio import NS_PER_MS, NS_PER_S, Int16, int16_to_pcm16, pcm16_to_int16, samples_to_ns
from harness.core.clock import Clock

WAIT_NS = 60 * NS_PER_MS
"""How long a packet waits for one that is missing before it: a phone's wireless network hands in late what it lost."""
LONGEST_FILL = 5 * RATE_HZ
"""A longer gap in the timestamps is a page that slept or a new beginning, not lost packets."""

OnSound = Callable[[Int16, int, bool], None]
"""Called as (samples, int16 of shape (n,) at 48 kHz; when their packet was read; whether some before them are lost)."""


class BrowserCall(AnsweredCall):
    """One call. on_sound: hears the microphone. lost, filled_samples: packets that never came, silence in their place.

    latency_ns: how far, at least, the sound lies behind in its packets: Opus' look-ahead (RFC 6716, section 2).
    """

    rate_hz = RATE_HZ
    latency_ns = samples_to_ns(LOOKAHEAD_SAMPLES, RATE_HZ)

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock, loopback_too)
        self.on_sound: OnSound = lambda samples, t_ns, lost: None
        self.on_packet = self._take
        self.filled_samples = 0
        self._buffer = ReorderBuffer(WAIT_NS)
        self._decoder = OpusDecoder()
        self._timer: asyncio.TimerHandle | None = None
        self._ssrc: int | None = None
        self._due = 0

    @property
    def lost(self) -> int:
        return self._buffer.counts.lost

    def play(self, samples: Int16) -> None:
        """Send 20 ms, int16 of shape (960,), to the loudspeaker now."""
        self.speak(int16_to_pcm16(samples))

    async def closed(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await super().closed()

    def _take(self, packet: RtpPacket, t_ns: int, wire_bytes: int) -> None:
        if packet.payload_type != self._payload_type():
            return
        payload: bytes = packet._data  # type: ignore[attr-defined]
        arrived = Arrived(t_ns, packet.ssrc, packet.sequence_number, packet.timestamp, payload, wire_bytes)
        self._hand_on(self._buffer.push(arrived))

    def _expire(self) -> None:
        self._timer = None
        self._hand_on(self._buffer.expire(self._now_ns()))

    def _hand_on(self, ready: list[Arrived]) -> None:
        for packet in ready:
            # Later, so that what goes wrong in hearing does not end aiortc's own task.
            self._loop.call_soon(self._hear, packet)
        deadline_ns = self._buffer.deadline_ns
        if deadline_ns is not None and self._timer is None:
            self._timer = self._loop.call_later(max(0, deadline_ns - self._now_ns()) / NS_PER_S, self._expire)

    def _hear(self, packet: Arrived) -> None:
        begins = packet.ssrc != self._ssrc
        if begins:
            self._decoder = OpusDecoder()
        pcm = self._decoder.decode(packet.payload) if packet.payload else None
        if not pcm:
            return
        samples = pcm16_to_int16(pcm)
        gap = 0 if begins else (packet.timestamp - self._due + 2**31) % 2**32 - 2**31
        lost = not 0 <= gap <= LONGEST_FILL or (begins and self._ssrc is not None)
        self._ssrc, self._due = packet.ssrc, (packet.timestamp + len(samples)) % 2**32
        if 0 < gap <= LONGEST_FILL:
            self.filled_samples += gap
            samples = np.concatenate([np.zeros(gap, np.int16), samples])
        self.on_sound(samples, packet.t_ns, lost)
