"""Length-prefixed frames, sans-IO: bytes in, whole messages out with the stamps of the reads that brought them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

PREFIX = struct.Struct("<I")
LIMIT = 64 << 20
"""Longest payload, bytes: twenty minutes of 24 kHz audio. More is a broken stream."""


class FramingError(ValueError):
    """A length that no peer would send: the stream is not ours or is out of step."""


class Message(NamedTuple):
    """One payload. t_ns: the read that completed it; first_byte_ns: the read that brought its prefix's first byte."""

    payload: bytes
    t_ns: int
    first_byte_ns: int

    @property
    def wire_bytes(self) -> int:
        return PREFIX.size + len(self.payload)


def frame(payload: bytes) -> bytes:
    """`payload` with its prefix: little-endian 32-bit length."""
    return PREFIX.pack(len(payload)) + payload


class Framer:
    """Reassembles one direction of a stream. Any split of the bytes gives the same payloads."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._first_byte_ns = 0

    def feed(self, data: bytes, t_ns: int) -> Iterator[Message]:
        """Take the bytes of one read made at `t_ns`; yield each message that they complete. Raises FramingError."""
        if not self._buffer:
            self._first_byte_ns = t_ns
        self._buffer += data
        start, held = 0, len(self._buffer)
        try:
            while held - start >= PREFIX.size:
                (length,) = PREFIX.unpack_from(self._buffer, start)
                if length > LIMIT:
                    raise FramingError(f"a frame of {length} bytes is announced, the limit is {LIMIT}")
                end = start + PREFIX.size + length
                if end > held:
                    break
                payload = bytes(memoryview(self._buffer)[start + PREFIX.size : end])
                first_byte_ns, self._first_byte_ns, start = self._first_byte_ns, t_ns, end
                yield Message(payload, t_ns, first_byte_ns)
        finally:
            del self._buffer[:start]
