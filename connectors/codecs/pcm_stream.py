"""PCM16 that arrives in pieces cut anywhere: odd bytes carried over, WAV headers taken off."""

from __future__ import annotations

LOWEST_RATE_HZ, HIGHEST_RATE_HZ = 4_000, 384_000
"""Sample rates outside are no audio; such a word of a peer is taken as none."""

_RIFF_MARK = 12
"""Bytes by which a WAV header is recognised: RIFF, a length, WAVE."""
_LONGEST_HEADER = 65_536
"""A header with more metadata than this is no header that any server puts before a packet."""


def usable_rate(said: object) -> int:
    """A rate in Hz as a peer wrote it; 0 for anything that is no rate of audio."""
    if not isinstance(said, int) or isinstance(said, bool):
        return 0
    return said if LOWEST_RATE_HZ <= said <= HIGHEST_RATE_HZ else 0


class PcmStream:
    """One answer's audio. Feed it each packet's bytes; it returns the whole samples among them.

    rate_hz: what the last WAV header said; 0 as long as none said a rate that audio has.
    """

    def __init__(self) -> None:
        self.rate_hz = 0
        self._odd = b""
        self._head = b""

    def push(self, data: bytes) -> bytes:
        """PCM16 little-endian, an even number of bytes (perhaps none), without headers.

        A header is seen only at the start of a packet; one that the packet cuts off is completed by the next.
        """
        if not self._odd and not self._head and len(data) % 2 == 0 and data[:4] != b"RIFF":
            return data
        data = self._strip_header(self._head + data)
        data = self._odd + data
        even = len(data) & ~1
        self._odd = data[even:]
        return data[:even]

    def _strip_header(self, data: bytes) -> bytes:
        self._head = b""
        if len(data) < _RIFF_MARK or data[:4] != b"RIFF" or data[8:12] != b"WAVE":
            return data
        at = _RIFF_MARK
        while at + 8 <= len(data):
            size = int.from_bytes(data[at + 4 : at + 8], "little")
            if data[at : at + 4] == b"data":
                return data[at + 8 :]
            if data[at : at + 4] == b"fmt " and at + 16 <= len(data):
                rate_hz = int.from_bytes(data[at + 12 : at + 16], "little")
                if LOWEST_RATE_HZ <= rate_hz <= HIGHEST_RATE_HZ:
                    self.rate_hz = rate_hz
            at += 8 + size + size % 2
        if len(data) > _LONGEST_HEADER:
            return data
        self._head = data
        return b""
