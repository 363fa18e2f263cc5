"""The receiving side of an audio track: RTP packets in, ordered, decoded, and handed on with their arrival instants.

Stands in the place of aiortc's jitter buffer, which adds 80 ms and 200 more for good after one loss. Rules:
- an `AudioReceived` has the instant at which its packet's datagram was read, however long it waited for another;
- where the sender's clock goes on and no packet came (lost ones, or a sender that pauses between answers), silence of
  our own is put in, no more than the time in which there was nothing to hear; it has no bytes on the wire
  (`wire_bytes` 0) and its instant is its begin. A pause is filled while it lasts, so that a quiet peer is heard to be
  quiet; a late packet, whose timestamp leaves no gap, is waited for and shows as an underrun;
- a listener who has fallen behind (a packet was late, the rest came on time) catches up as every WebRTC receiver does:
  of packets without sound so much is left out as he is behind. What was left out is counted.
"""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np

from connectors.codecs.opus import RATE_HZ, OpusDecoder
from connectors.transports.reorder import Arrived, ReorderBuffer
from connectors.transports.rtp_stamp import DatagramStamps
from harness.core.audio import NS_PER_MS, PCM16_BYTES, ns_to_samples, samples_to_ns
from harness.core.clock import Clock
from harness.core.connector import Sink
from harness.core.events import AudioReceived, RtpBuffered, RtpReceived

PAUSE_NS = 600 * NS_PER_MS
"""Nothing for so long is a pause: shorter ones join what is said to one utterance (timing definitions, section 1)."""
PAUSE_STEP_S = 0.1
"""How often silence is put into a pause that lasts."""
BEHIND_NS = 5 * NS_PER_MS
"""A listener is this late before anything is left out: jitter of a millisecond or two is not worth a cut each time."""
SOUNDLESS = 104
"""Peak below which a packet has no sound: -50 dBFS, 10 dB below what counts as audible."""


class RtpAudio:
    """One track's audio, for one session. `stop` hands over what still waits and says how it went."""

    def __init__(self, stamps: DatagramStamps, clock: Clock, sink: Sink, wait_ns: int) -> None:
        self._stamps = stamps
        self._clock = clock
        self._sink = sink
        self._buffer = ReorderBuffer(wait_ns)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._pause: asyncio.TimerHandle | None = None
        self._decoder = OpusDecoder()
        self._ssrc: int | None = None
        self._due = 0
        """Timestamp at which the next packet should begin."""
        self._last_ns = 0
        self._heard_ns = 0
        """When a listener without a buffer has heard everything so far; 0 before the first packet."""
        self._filled = self._skipped = self._unreadable = 0

    def add(self, packet: Any) -> tuple[bool, None]:
        """aiortc's receiver calls this for every packet that was decrypted; there is never a frame for its decoder."""
        t_ns = self._stamps.read_ns or self._clock.now_ns()
        self._sink(
            RtpReceived(
                t_ns=t_ns,
                wire_bytes=self._stamps.read_bytes,
                ssrc=packet.ssrc,
                sequence=packet.sequence_number,
                timestamp=packet.timestamp,
                payload_type=packet.payload_type,
                marker=bool(packet.marker),
            )
        )
        arrived = Arrived(
            t_ns, packet.ssrc, packet.sequence_number, packet.timestamp, packet.payload, self._stamps.read_bytes
        )
        for ready in self._buffer.push(arrived):
            self._hear(ready)
        self._wait()
        return False, None

    def stop(self) -> None:
        """Nothing more will come."""
        for timer in (self._timer, self._pause):
            if timer is not None:
                timer.cancel()
        self._timer = self._pause = None
        now_ns = self._clock.now_ns()
        for ready in self._buffer.flush(now_ns):
            self._hear(ready)
        counts = self._buffer.counts
        if not counts.received:
            return
        self._sink(
            RtpBuffered(
                t_ns=now_ns,
                wait_ns=self._buffer.wait_ns,
                received=counts.received,
                delivered=counts.delivered,
                lost=counts.lost,
                late=counts.late,
                duplicates=counts.duplicates,
                reordered=counts.reordered,
                held_ns=counts.held_ns,
                max_held_ns=counts.max_held_ns,
                unreadable=self._unreadable,
                filled_samples=self._filled,
                skipped_samples=self._skipped,
            )
        )

    def _wait(self) -> None:
        """One timer for the packet that is missing. It may be late by some milliseconds, and moves no stamp."""
        deadline_ns = self._buffer.deadline_ns
        if deadline_ns is None or self._timer is not None:
            return
        delay_s = max(0, deadline_ns - self._clock.now_ns()) / 1e9
        self._timer = self._loop.call_later(delay_s, self._expire)

    def _expire(self) -> None:
        self._timer = None
        for ready in self._buffer.expire(self._clock.now_ns()):
            self._hear(ready)
        self._wait()

    def _hear(self, packet: Arrived) -> None:
        """Decode one packet, in its turn."""
        if packet.ssrc != self._ssrc:
            self._ssrc, self._decoder = packet.ssrc, OpusDecoder()
            self._due = packet.timestamp
        pcm = self._decoder.decode(packet.payload) if packet.payload else b""
        if pcm is None:
            self._unreadable += 1
            return
        if not pcm:
            return
        self._fill(packet)
        samples = len(pcm) // PCM16_BYTES
        self._due = (packet.timestamp + samples) % 2**32
        self._last_ns = packet.t_ns
        if self._pause is None:
            self._pause = self._loop.call_later(PAUSE_STEP_S, self._look)
        behind_ns = self._heard_ns - packet.t_ns
        if behind_ns >= BEHIND_NS and _soundless(pcm):
            cut = min(samples, ns_to_samples(behind_ns, RATE_HZ))
            self._skipped += cut
            pcm = pcm[cut * PCM16_BYTES :]
        if pcm:
            self._emit(packet.t_ns, pcm, packet.wire_bytes)

    def _fill(self, packet: Arrived) -> None:
        """Silence for the time between the packet before and this one."""
        gap = (packet.timestamp - self._due + 2**31) % 2**32 - 2**31
        if self._heard_ns and gap > 0:
            begin_ns = max(self._heard_ns, packet.t_ns - samples_to_ns(gap, RATE_HZ))
            self._silence(begin_ns, packet.t_ns)

    def _silence(self, begin_ns: int, end_ns: int) -> None:
        samples = ns_to_samples(end_ns - begin_ns, RATE_HZ) if end_ns > begin_ns else 0
        if samples:
            self._filled += samples
            self._emit(begin_ns, bytes(samples * PCM16_BYTES), 0)

    def _look(self) -> None:
        """Whether the sender pauses; silence fills the pause while it lasts."""
        now_ns = self._clock.now_ns()
        if now_ns - self._last_ns >= PAUSE_NS:
            self._silence(self._heard_ns, now_ns)
        self._pause = self._loop.call_later(PAUSE_STEP_S, self._look)

    def _emit(self, t_ns: int, pcm: bytes, wire_bytes: int) -> None:
        samples = len(pcm) // PCM16_BYTES
        self._heard_ns = max(self._heard_ns, t_ns) + samples_to_ns(samples, RATE_HZ)
        self._sink(AudioReceived(t_ns=t_ns, wire_bytes=wire_bytes, samples=samples, rate_hz=RATE_HZ, pcm=pcm))


def _soundless(pcm: bytes) -> bool:
    samples = np.frombuffer(pcm, dtype="<i2")
    return int(samples.min()) > -SOUNDLESS and int(samples.max()) < SOUNDLESS
