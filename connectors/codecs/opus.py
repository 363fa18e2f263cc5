"""Opus packets as RTP carries them: 20 ms of PCM16 mono at 48 kHz in, any packet out as PCM16 mono. libopus, PyAV."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

import av
import numpy as np
from av.audio.codeccontext import AudioCodecContext
from av.audio.frame import AudioFrame
from av.error import FFmpegError
from av.packet import Packet

from harness.core.audio import PCM16_BYTES

RATE_HZ = 48_000
"""Clock of RTP timestamps and of the decoder, whatever was encoded (RFC 7587, section 4.1)."""
PACKET_SAMPLES = 960
"""20 ms, what every peer sends and takes (RFC 7587, section 4.2)."""
LOOKAHEAD_SAMPLES = 312
"""How far the sound lies behind in the packets of `OpusEncoder` (measured by correlation, and the encoder's own word):
input sample s is complete with the packet that holds s + 312."""
BIT_RATE = 48_000
"""Fullband mono speech (RFC 6716, section 2.1.1, gives 28-40 kb/s)."""
COMPLEXITY = 5
"""Of 10: half the time of the default, no loss that a recogniser would notice."""


class OpusEncoder:
    """One stream, as a browser encodes speech (`voip`)."""

    def __init__(self) -> None:
        self._codec = _context("w")
        self._codec.bit_rate = BIT_RATE
        self._codec.time_base = Fraction(1, RATE_HZ)
        self._codec.options = {"application": "voip", "frame_duration": "20", "compression_level": str(COMPLEXITY)}
        self._codec.open()
        self._samples = 0

    def encode(self, pcm: bytes) -> list[bytes]:
        """One packet for every 20 ms of `pcm`; a rest is filled up with silence."""
        step = PACKET_SAMPLES * PCM16_BYTES
        return [self._packet(pcm[at : at + step].ljust(step, b"\0")) for at in range(0, len(pcm), step)]

    def _packet(self, pcm: bytes) -> bytes:
        frame = AudioFrame.from_ndarray(np.frombuffer(pcm, dtype="<i2")[None, :], format="s16", layout="mono")
        frame.sample_rate = RATE_HZ
        frame.pts = self._samples
        self._samples += PACKET_SAMPLES
        return b"".join(bytes(packet) for packet in self._codec.encode(frame))


class OpusDecoder:
    """One stream, packets in their order."""

    def __init__(self) -> None:
        self._codec = _context("r")

    def decode(self, packet: bytes) -> bytes | None:
        """PCM16 mono at 48 kHz; None for what is no Opus packet."""
        try:
            frames = self._codec.decode(Packet(packet))
        except (FFmpegError, ValueError):
            return None
        return b"".join(frame.to_ndarray().astype("<i2", copy=False).tobytes() for frame in frames)


def _context(direction: Literal["r", "w"]) -> AudioCodecContext:
    context: Any = av.CodecContext.create("libopus", direction)
    context.format, context.layout, context.sample_rate = "s16", "mono", RATE_HZ
    return context  # type: ignore[no-any-return]
