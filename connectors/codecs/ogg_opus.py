"""Ogg-Opus as a live stream: PCM16 in, pages out; bytes cut anywhere in, PCM16 out. Sans-IO, mono.

Opus itself is in `opus.py`, which decodes at 48 kHz; a lower rate is reached by a short symmetric filter whose
delay is taken off like the pre-skip. Sources: RFC 7845 (Ogg-Opus), RFC 6716 (Opus), RFC 3533 (Ogg).
"""

from __future__ import annotations

import struct
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from connectors.codecs.ogg import FIRST, OggPacket, OggReader, write_page
from connectors.codecs.opus import HEAD, PACKET_MS, RATES_HZ, OpusDecoder, OpusEncoder, PacketMs
from connectors.codecs.opus import RATE_HZ as OPUS_RATE_HZ
from harness.core.audio import PCM16_BYTES
from harness.core.errors import ConfigError

MAX_PUSH_S = 120
"""Sound that one push may hold; a stream that goes beyond is given up (three bytes of Opus can mean 120 ms)."""
BIT_RATE = 64_000
"""Bits a second of mono speech: transparent at every rate here (RFC 6716, section 2.1.1, asks for 28-40 kb/s)."""
COMPLEXITY = 10
"""Of 10, libopus' own default."""
VENDOR = b"firstpacket"

_SERIAL = 1
_HALF_TAPS = 16
"""The low-pass before decimation looks this many output samples to either side."""


class OggOpusEncoder:
    """Turns a stream of PCM16 at `rate_hz` into pages, one for each packet of `packet_ms`.

    lookahead_samples: how far the sound lies behind in the packets, at `rate_hz` (60 at 24 kHz, 2.5 ms, with
    `lowdelay`): a receiver that does not take off the pre-skip hears sample 0 that many samples late, and sample s is
    complete with the packet that holds s + lookahead_samples.
    Raises ValueError for a rate or a packet length that Opus has not.
    """

    def __init__(
        self,
        rate_hz: int,
        *,
        packet_ms: PacketMs = PACKET_MS,
        bit_rate: int = BIT_RATE,
        application: Literal["lowdelay", "audio", "voip"] = "lowdelay",
    ) -> None:
        self._encoder = OpusEncoder(
            rate_hz, packet_ms=packet_ms, bit_rate=bit_rate, application=application, complexity=COMPLEXITY
        )
        self.packet_samples = self._encoder.packet_samples
        self.lookahead_samples = self._encoder.lookahead_samples
        self._rate_hz = rate_hz
        self._granule_step = self.packet_samples * OPUS_RATE_HZ // rate_hz
        self._pcm = bytearray()
        self._packets = 0
        self._pages = 0

    def push_whole(self, pcm16: bytes) -> bytes:
        """`push` for a microphone's chunks: nothing may be held back, since a held sample would leave later than the
        record of its chunk says. Raises ConfigError for a chunk that is no whole number of packets."""
        pages = self.push(pcm16)
        if self._pcm:
            packet_ms = self.packet_samples * 1000 // self._rate_hz
            raise ConfigError(f"Opus goes out in packets of {packet_ms} ms: take a multiple of it for --chunk-ms")
        return pages

    def push(self, pcm16: bytes) -> bytes:
        """Pages for every packet that `pcm16` completes, before the first one the two header pages (even for no
        samples at all); less than a packet is held back."""
        pages = [] if self._pages else [self._page(self._encoder.head, FIRST), self._page(_tags())]
        self._pcm += pcm16
        whole = len(self._pcm) // (self.packet_samples * PCM16_BYTES) * self.packet_samples * PCM16_BYTES
        for packet in self._encoder.encode(bytes(self._pcm[:whole])):
            self._packets += 1
            pages.append(self._page(packet))
        del self._pcm[:whole]
        return b"".join(pages)

    def _page(self, packet: bytes, flags: int = 0) -> bytes:
        granule = self._packets * self._granule_step
        page = write_page([packet], serial=_SERIAL, sequence=self._pages, granule=granule, flags=flags)
        self._pages += 1
        return page


class OggOpusDecoder:
    """Turns the bytes of one Ogg-Opus stream, in pieces cut anywhere, into PCM16 mono at `rate_hz`.

    The pre-skip is taken off, unless `trim` is False (Kyutai's servers leave it in). skipped: samples at `rate_hz`
    taken off so far (with those that the filter holds back, always 16 below 48 kHz), so every decoded packet's samples
    count in `push` or here. errors: packets that are no Opus. lost_bytes: what could not be used. broken: nothing more
    will come out. Not applied: the output gain (0 in every live stream), end trimming. A new stream that follows the
    first (chained) is taken up with its own header.
    Raises ValueError for a rate that Opus has not; nothing that is pushed raises.
    """

    def __init__(self, rate_hz: int, *, trim: bool = True) -> None:
        if rate_hz not in RATES_HZ:
            raise ValueError(f"Opus has no rate of {rate_hz} Hz")
        self.rate_hz = rate_hz
        self._trims = trim
        self.skipped = 0
        self.errors = 0
        self._reader = OggReader()
        self._serial: int | None = None
        self._headers = 0
        self._opus: OpusDecoder | None = None
        self._too_long = False
        self._down = _Decimator(OPUS_RATE_HZ // rate_hz)
        self._to_skip = 0

    @property
    def broken(self) -> bool:
        return self._reader.broken or self._too_long

    @property
    def lost_bytes(self) -> int:
        return self._reader.lost_bytes

    @property
    def started(self) -> bool:
        """Whether an Opus header has been seen."""
        return self._opus is not None

    def push(self, data: bytes) -> bytes:
        """The samples that `data` completes: of no, one or many packets."""
        pieces, left = [], MAX_PUSH_S * self.rate_hz * PCM16_BYTES
        for packet in self._reader.push(data) if not self._too_long else ():
            pieces.append(self._packet(packet))
            left -= len(pieces[-1])
            if left < 0:
                self._too_long = True
                break
        return b"".join(pieces)

    def _packet(self, packet: OggPacket) -> bytes:
        if packet.first:
            self._open(packet)
            return b""
        if packet.serial != self._serial or self._opus is None:
            return b""  # another stream's, or sound before any header
        if self._headers == 1:
            self._headers = 2
            if packet.data.startswith(b"OpusTags"):
                return b""
        if not packet.data:
            return b""  # an empty packet is a lost one; to the decoder it would mean the end
        pcm = self._opus.decode(packet.data)
        if pcm is None:
            self.errors += 1
            return b""
        return self._trim(np.frombuffer(pcm, dtype="<i2"))

    def _open(self, packet: OggPacket) -> None:
        data = packet.data
        if len(data) < HEAD.size or not data.startswith(b"OpusHead") or data[8] >> 4:
            return  # another kind of stream beside ours, or a version that cannot be read
        self._serial, self._headers = packet.serial, 1
        self._opus = OpusDecoder()
        self._down = _Decimator(OPUS_RATE_HZ // self.rate_hz)
        if self._trims:
            self._to_skip = self._down.delay + int(HEAD.unpack_from(data)[3]) * self.rate_hz // OPUS_RATE_HZ

    def _trim(self, samples: NDArray[np.int16]) -> bytes:
        out = self._down.push(samples)
        skip = min(self._to_skip, len(out))
        self._to_skip -= skip
        self.skipped += skip
        return out[skip:].astype("<i2", copy=False).tobytes()


class _Decimator:
    """Keeps every `factor`-th sample behind a linear-phase low-pass (windowed sinc, 70 dB). delay: output samples by
    which the sound comes out late; input comes in multiples of `factor`."""

    def __init__(self, factor: int) -> None:
        self._factor = factor
        self.delay = _HALF_TAPS if factor > 1 else 0
        half = _HALF_TAPS * factor
        offsets = np.arange(-half, half + 1) / factor
        taps = np.sinc(0.92 * offsets) * np.kaiser(2 * half + 1, 7.0)
        self._taps: NDArray[np.float64] = taps / taps.sum()
        self._past: NDArray[np.float64] = np.zeros(2 * half)

    def push(self, samples: NDArray[np.int16]) -> NDArray[np.int16]:
        if self._factor == 1:
            return samples
        block = np.concatenate((self._past, samples.astype(np.float64)))
        self._past = block[len(block) - len(self._past) :]
        filtered = np.convolve(block, self._taps, "valid")[:: self._factor]
        return np.clip(np.rint(filtered), -32768, 32767).astype(np.int16)


def _tags() -> bytes:
    return b"OpusTags" + struct.pack("<I", len(VENDOR)) + VENDOR + bytes(4)
