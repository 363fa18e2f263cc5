"""The server's end of one WebSocket: stamps each message at the read that completed it, writes ready-made frames.

The protocol that the messages carry is not parsed here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from websockets.asyncio.server import ServerConnection
from websockets.frames import Frame, Opcode
from websockets.protocol import State

from harness.core.clock import Clock

CLOSE_GRACE_S = 2.0
"""A client that does not answer our close frame is dropped after this long."""
MESSAGE_OPCODES = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)


class AgentWire(ServerConnection):
    """A websockets connection whose messages go straight from the receive hook to `on_message(data, t_ns)`."""

    clock: Clock
    on_message: Callable[[bytes, int], None] | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._read_ns = 0
        self._parts: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        self._read_ns = self.clock.now_ns()
        super().data_received(data)

    def process_event(self, event: Any) -> None:
        if self.request is None or not isinstance(event, Frame) or event.opcode not in MESSAGE_OPCODES:
            super().process_event(event)
            return
        self._parts.append(bytes(event.data))
        if event.fin:
            data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            self._parts.clear()
            if self.on_message is not None:
                self.on_message(data, self._read_ns)

    def write_frame(self, frame: bytes) -> tuple[int, int]:
        """Pass a whole frame to the transport; instants just before and after. Nothing is written once closing."""
        before_ns = self.clock.now_ns()
        if self.protocol.state is State.OPEN:
            self.transport.write(frame)
        return before_ns, self.clock.now_ns()

    def buffered_bytes(self) -> int:
        """What the transport has not passed on yet."""
        return self.transport.get_write_buffer_size()

    def end(self, code: int, reason: str = "") -> None:
        """Start the closing handshake without waiting for it; code 0 drops the TCP connection instead."""
        if code == 0:
            self.transport.abort()
        elif self.protocol.state is State.OPEN:
            self.protocol.send_close(code, reason)
            self.send_data()
            self.loop.call_later(CLOSE_GRACE_S, self.transport.abort)

    def closed_by(self) -> str:
        """Whose close frame came first: `agent`, `client`, or `network` where none did."""
        if self.protocol.close_rcvd is not None and self.protocol.close_rcvd_then_sent is not False:
            return "client"
        return "agent" if self.protocol.close_sent is not None else "network"

    def stop_reading(self, seconds: float) -> None:
        """Leave the socket unread for a while, so that the client's writes pile up."""
        self.transport.pause_reading()
        self.loop.call_later(seconds, self._read_again)

    def delay_pongs(self, seconds: float | None) -> None:
        """Answer pings `seconds` late, or never (None)."""
        send_frame = self.protocol.send_frame

        def send_late(frame: Frame) -> None:
            if self.protocol.state is State.OPEN:
                send_frame(frame)
                self.send_data()

        def send(frame: Frame) -> None:
            if frame.opcode is not Opcode.PONG:
                send_frame(frame)
            elif seconds is not None:
                self.loop.call_later(seconds, send_late, frame)

        # websockets answers pings inside its parser; this instance attribute is the one place to catch that.
        self.protocol.send_frame = send  # type: ignore[method-assign]

    def _read_again(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()
