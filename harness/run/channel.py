"""Messages between the measuring process and the writer process: length-prefixed msgpack."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec

from harness.core.events import AnyEvent
from harness.core.session.header import Header


class OpenSession(msgspec.Struct, frozen=True, tag="open", array_like=True):
    """Begin session number `number` in the directory `sessions`."""

    number: int
    sessions: str
    header: Header


class AppendEvent(msgspec.Struct, frozen=True, tag="event", array_like=True):
    """One event of session `number`; -1 means every open session."""

    number: int
    event: AnyEvent


class CloseSession(msgspec.Struct, frozen=True, tag="close", array_like=True):
    """Finish session `number`, or with keep=False throw it away."""

    number: int
    dropped: int
    keep: bool = True


class Closed(msgspec.Struct, frozen=True, tag="closed", array_like=True):
    """The writer's answer: session `number` is on disk, or `error` says why it is not."""

    number: int
    events: int = 0
    error: str = ""


ToWriter = OpenSession | AppendEvent | CloseSession
EVERY_SESSION = -1
_LENGTH = struct.Struct("<I")
_encoder = msgspec.msgpack.Encoder()
_to_writer = msgspec.msgpack.Decoder(ToWriter)
_closed = msgspec.msgpack.Decoder(Closed)


def pack(message: msgspec.Struct) -> bytes:
    """One message as it goes into the pipe."""
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


class Unpacker:
    """Feed bytes, take whole message bodies."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._buffer += data
        begin = 0
        while len(self._buffer) - begin >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, begin)
            end = begin + _LENGTH.size + length
            if end > len(self._buffer):
                break
            yield bytes(self._buffer[begin + _LENGTH.size : end])
            begin = end
        del self._buffer[:begin]


def for_writer(body: bytes) -> ToWriter:
    return _to_writer.decode(body)


def from_writer(body: bytes) -> Closed:
    return _closed.decode(body)
