"""Opus packets: PCM16 mono in, any packet out as PCM16 mono at 48 kHz. libopus through PyAV; no container, no RTP."""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import Any, Literal

import av
import numpy as np
from av.audio.codeccontext import AudioCodecContext
from av.audio.frame import AudioFrame
from av.error import FFmpegError
from av.packet import Packet

from harness.core.audio import PCM16_BYTES, ms_to_samples

RATE_HZ = 48_000
"""Rate of the decoder, of RTP timestamps, granule positions and the pre-skip, whatever was encoded (RFC 7587, section
4.1; RFC 7845, section 4)."""
RATES_HZ = (8_000, 12_000, 16_000, 24_000, 48_000)
PacketMs = Literal[10, 20, 40, 60]
PACKET_MS: PacketMs = 20
"""What every WebRTC peer sends and takes (RFC 7587, section 4.2)."""
PACKET_SAMPLES = 960
"""Of 20 ms at 48 kHz."""
LOOKAHEAD_SAMPLES = 312
"""`OpusEncoder.lookahead_samples` of an encoder without arguments (measured by correlation, and its own word)."""
BIT_RATE = 48_000
"""Fullband mono speech (RFC 6716, section 2.1.1, gives 28-40 kb/s)."""
COMPLEXITY = 5
"""Of 10: half the time of the default, no loss that a recogniser would notice."""

HEAD = struct.Struct("<8sBBHIhB")
"""An OpusHead (RFC 7845, section 5.1); its fourth field is the pre-skip."""


class OpusEncoder:
    """One stream of packets of `packet_ms`, without arguments as a browser encodes speech.

    rate_hz: of the PCM16. bit_rate: bits a second. complexity: 0 to 10.
    packet_samples: of one packet, at `rate_hz`. head: the stream's OpusHead. pre_skip: the encoder's look-ahead as that
    header tells it, at 48 kHz. lookahead_samples: how far the sound lies behind in the packets, at `rate_hz`: input
    sample s is complete with the packet that holds s + lookahead_samples.
    Raises ValueError for a rate or a packet length that Opus has not.
    """

    def __init__(
        self,
        rate_hz: int = RATE_HZ,
        *,
        packet_ms: PacketMs = PACKET_MS,
        bit_rate: int = BIT_RATE,
        application: Literal["lowdelay", "audio", "voip"] = "voip",
        complexity: int = COMPLEXITY,
    ) -> None:
        if packet_ms not in (10, 20, 40, 60):
            raise ValueError(f"Opus has no packets of {packet_ms} ms")
        self.packet_samples = ms_to_samples(packet_ms, rate_hz)
        self._rate_hz = rate_hz
        self._codec = _context("w", rate_hz)
        self._codec.bit_rate = bit_rate
        self._codec.time_base = Fraction(1, rate_hz)
        options = {"application": application, "frame_duration": str(packet_ms), "compression_level": str(complexity)}
        self._codec.options = options
        self._codec.open()
        self._samples = 0
        self.head = bytes(self._codec.extradata or b"")
        self.pre_skip = int(HEAD.unpack_from(self.head)[3])
        self.lookahead_samples = self.pre_skip * rate_hz // RATE_HZ

    def encode(self, pcm: bytes) -> list[bytes]:
        """One packet for every `packet_samples` of `pcm`; a rest is filled up with silence."""
        step = self.packet_samples * PCM16_BYTES
        return [self._packet(pcm[at : at + step].ljust(step, b"\0")) for at in range(0, len(pcm), step)]

    def _packet(self, pcm: bytes) -> bytes:
        frame = AudioFrame.from_ndarray(np.frombuffer(pcm, dtype="<i2")[None, :], format="s16", layout="mono")
        frame.sample_rate = self._rate_hz
        frame.pts = self._samples
        self._samples += self.packet_samples
        return b"".join(bytes(packet) for packet in self._codec.encode(frame))


class OpusDecoder:
    """One stream, packets in their order. A packet of two channels comes out as one."""

    def __init__(self) -> None:
        self._codec = _context("r", RATE_HZ)

    def decode(self, packet: bytes) -> bytes | None:
        """PCM16 mono at 48 kHz; None for what is no Opus packet. An empty packet would end the stream: leave it out."""
        try:
            frames = self._codec.decode(Packet(packet))
        except (FFmpegError, ValueError):
            return None
        return b"".join(frame.to_ndarray().astype("<i2", copy=False).tobytes() for frame in frames)


def _context(direction: Literal["r", "w"], rate_hz: int) -> AudioCodecContext:
    if rate_hz not in RATES_HZ:
        raise ValueError(f"Opus has no rate of {rate_hz} Hz")
    context: Any = av.CodecContext.create("libopus", direction)
    context.format, context.layout, context.sample_rate = "s16", "mono", rate_hz
    return context  # type: ignore[no-any-return]
