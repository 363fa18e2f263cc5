"""A codec and a transport joined: what is answered, and when."""

from __future__ import annotations

import asyncio

from connectors.codecs.client import Message, Opening
from connectors.session import CodecConnection
from harness.core.clock import SystemClock
from harness.core.commands import Command, Configure
from harness.core.events import Event, RawReceived, SessionReady


class Pinging:
    """A codec of a protocol whose every message is a ping that wants a pong; the first one opens the session."""

    opening: Opening = "handshake"

    def __init__(self) -> None:
        self._pongs: list[Message] = []
        self._opened = False

    def decode(self, data: bytes, t_ns: int, first_byte_ns: int, is_text: bool = True) -> list[Event]:
        self._pongs.append("pong " + data.decode())
        if self._opened:
            return [RawReceived(t_ns=t_ns, name="ping")]
        self._opened = True
        return [SessionReady(t_ns=t_ns, phase="created")]

    def encode(self, command: Command) -> list[Message]:
        return []

    def replies(self) -> list[Message]:
        pongs, self._pongs = self._pongs, []
        return pongs


class Written:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []

    def prepare(self, message: Message) -> bytes:
        return message.encode() if isinstance(message, str) else message

    def write(self, frames: bytes) -> int:
        self.messages.append(frames)
        return 0

    def when_drained(self, callback: object) -> None:
        raise NotImplementedError

    def ping(self) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        pass


def test_what_came_with_the_upgrade_is_answered_once_there_is_a_transport() -> None:
    async def main() -> None:
        connection = CodecConnection(Pinging(), lambda event: None, SystemClock(), wire=False)
        connection.on_message(b"1", True, 1, 1)  # in the read that brought the upgrade's answer
        transport = Written()
        connection.transport = transport
        await connection.configure(Configure(), timeout_s=1.0)
        assert transport.messages == [b"pong 1"]
        connection.on_message(b"2", True, 2, 2)
        assert transport.messages == [b"pong 1", b"pong 2"]

    asyncio.run(main())
