"""Ogg pages, in and out: lacing, checksum, resynchronisation. Sans-IO and incremental; knows nothing of Opus.

Sources: RFC 3533 (page layout in section 6), RFC 7845 section 3 (what a page of Opus holds).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

CONTINUED, FIRST, LAST = 1, 2, 4
"""Bits of a page's flags: its first packet began on an earlier page; first, last page of its stream."""
NO_GRANULE = -1
"""Granule position of a page on which no packet ends."""
MAX_PACKET_BYTES = 61_440
"""A packet that grows beyond is dropped; RFC 7845, section 6, asks for no more of a player."""
MAX_BAD_PAGES = 100
"""Pages that fail their checksum before a stream is given up: each costs a look at up to 64 KiB."""

_MARK = b"OggS"
_HEAD = struct.Struct("<4sBBqIIIB")
_CRC_AT = 22
_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def checksum(data: bytes) -> int:
    """Ogg's CRC-32: polynomial 0x04C11DB7, most significant bit first, nothing inverted (RFC 3533, section 6).

    zlib's has the same polynomial with all bits in the other order, and inverts at both ends.
    """
    mirrored = zlib.crc32(data.translate(_REVERSED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int.from_bytes(mirrored.to_bytes(4, "little").translate(_REVERSED), "big")


def write_page(packets: Sequence[bytes], *, serial: int, sequence: int, granule: int, flags: int = 0) -> bytes:
    """One page with whole packets. Raises ValueError for more than 255 segments (at most 65,025 bytes)."""
    lacing = b"".join(b"\xff" * (len(packet) // 255) + bytes((len(packet) % 255,)) for packet in packets)
    if len(lacing) > 255:
        raise ValueError("the packets do not fit into one Ogg page")
    head = _HEAD.pack(_MARK, 0, flags, granule, serial, sequence, 0, len(lacing))
    page = bytearray(b"".join((head, lacing, *packets)))
    struct.pack_into("<I", page, _CRC_AT, checksum(bytes(page)))
    return bytes(page)


class OggPacket(NamedTuple):
    """A packet as it was put together. first: it began on its stream's first page."""

    data: bytes
    serial: int
    first: bool = False


class OggReader:
    """Finds the packets in a byte stream that is cut anywhere. Keeps at most one page and the packets under way.

    lost_bytes: what belonged to no page or was dropped. broken: given up, everything from then on is lost.
    Packets of one page come out when the page is complete and its checksum is right.
    """

    def __init__(self) -> None:
        self.lost_bytes = 0
        self.broken = False
        self._buffer = bytearray()
        self._bad = 0
        self._serial: int | None = None
        self._under_way: bytearray | None = None

    def push(self, data: bytes) -> list[OggPacket]:
        """Packets that `data` completes, in order; never raises."""
        if self.broken:
            self.lost_bytes += len(data)
            return []
        self._buffer += data
        packets: list[OggPacket] = []
        at = 0
        while not self.broken:
            at = self._seek(at)
            size = self._page_size(at)
            if not size or len(self._buffer) < at + size:
                break
            page = bytes(self._buffer[at : at + size])
            if page[4] == 0 and checksum(page[:_CRC_AT] + bytes(4) + page[_CRC_AT + 4 :]) == _crc_of(page):
                packets += self._packets(page)
                at += size
            else:
                self._bad += 1
                self.broken = self._bad >= MAX_BAD_PAGES
                self.lost_bytes += 1
                at += 1
        if self.broken:
            self.lost_bytes += len(self._buffer) - at
            at = len(self._buffer)
        del self._buffer[:at]
        return packets

    def _seek(self, at: int) -> int:
        """Where the next page may begin; what lies before is lost."""
        found = self._buffer.find(_MARK, at)
        if found < 0:
            tail = min(len(self._buffer) - at, len(_MARK) - 1)
            while tail and not _MARK.startswith(self._buffer[len(self._buffer) - tail :]):
                tail -= 1
            found = len(self._buffer) - tail
        self.lost_bytes += found - at
        return found

    def _page_size(self, at: int) -> int:
        """Length of the page that begins at `at`; 0 while that cannot be told."""
        if len(self._buffer) < at + _HEAD.size:
            return 0
        segments = self._buffer[at + _HEAD.size - 1]
        body = at + _HEAD.size + segments
        return body - at + sum(self._buffer[at + _HEAD.size : body]) if len(self._buffer) >= body else 0

    def _packets(self, page: bytes) -> list[OggPacket]:
        _, _, flags, _, serial, _, _, segments = _HEAD.unpack_from(page)
        if serial != self._serial or flags & FIRST:
            self._drop()
            self._serial = serial
        elif not flags & CONTINUED:
            self._drop()
        held = self._under_way
        skipping = held is None and bool(flags & CONTINUED)
        held = held if held is not None else bytearray()
        packets, at = [], _HEAD.size + segments
        for length in page[_HEAD.size : at]:
            held += page[at : at + length]
            at += length
            if len(held) > MAX_PACKET_BYTES:
                skipping = True
                self.lost_bytes += len(held)
                held.clear()
            if length == 255:
                continue
            if skipping:
                self.lost_bytes += len(held)
            else:
                packets.append(OggPacket(bytes(held), serial, bool(flags & FIRST)))
            held, skipping = bytearray(), False
        open_ended = segments > 0 and page[_HEAD.size + segments - 1] == 255
        self._under_way = held if open_ended and not skipping else None
        return packets

    def _drop(self) -> None:
        """Forget the packet under way: its rest will not come."""
        if self._under_way is not None:
            self.lost_bytes += len(self._under_way)
            self._under_way = None


def _crc_of(page: bytes) -> int:
    return int.from_bytes(page[_CRC_AT : _CRC_AT + 4], "little")
