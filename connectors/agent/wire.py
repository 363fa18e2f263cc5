"""The server's end of one WebSocket: stamps each message at the read that completed it, writes ready-made frames.

The protocol that the messages carry is not parsed here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from websockets.asyncio.server import ServerConnection
from websockets.frames import Frame, Opcode
from websockets.protocol import State

from connectors.agent.mouth import Mouth
from harness.core.clock import Clock

CLOSE_GRACE_S = 2.0
"""A client that does not answer our close frame is dropped after this long."""
HTTP_METHODS = frozenset({b"POST", b"DELE", b"OPTI", b"PUT ", b"HEAD", b"PATC"})
"""First bytes of a connection that is no WebSocket upgrade."""
METHOD_BYTES = 4
MAX_HEAD_BYTES = 64 << 10
"""Bytes of the first request's head. It must be whole within the time that websockets leaves a handshake (10 s)."""
MESSAGE_OPCODES = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)


class Wire(Protocol):
    """What a session writes to, whatever carries it. mouth: where the session's audio is continuous."""

    mouth: Mouth | None

    def write_frame(self, frame: bytes) -> tuple[int, int]: ...
    def buffered_bytes(self) -> int: ...
    def end(self, code: int, reason: str = "") -> None: ...
    def stop_reading(self, seconds: float) -> None: ...


class _Elsewhere(asyncio.Transport):
    """Stands in for a transport that another protocol has taken over: whatever is done to it does nothing."""

    def abort(self) -> None:
        pass

    def close(self) -> None:
        pass

    def write(self, data: object) -> None:
        pass

    def is_closing(self) -> bool:
        return True


class AgentWire(ServerConnection):
    """A websockets connection whose messages go straight from the receive hook to `on_message(data, t_ns, is_text)`.

    http: makes the protocol that takes over a connection whose first bytes are a plain HTTP request.
    """

    clock: Clock
    http: Callable[[], asyncio.Protocol] | None = None
    on_message: Callable[[bytes, int, bool], None] | None = None
    mouth: Mouth | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._read_ns = 0
        self._parts: list[bytes] = []
        self._is_text = False
        self._fresh = True
        self._head = b""

    def data_received(self, data: bytes) -> None:
        self._read_ns = self.clock.now_ns()
        if self._fresh:
            data = self._head = self._head + data
            if len(data) < METHOD_BYTES and any(method.startswith(data) for method in HTTP_METHODS):
                return
            if self.http is not None and data[:METHOD_BYTES] in HTTP_METHODS:
                if b"\r\n\r\n" in data:
                    self._fresh, self._head = False, b""
                    self._hand_over(data)
                elif len(data) > MAX_HEAD_BYTES:
                    self.transport.abort()
                return
            self._fresh, self._head = False, b""
        super().data_received(data)

    def _hand_over(self, data: bytes) -> None:
        """Plain HTTP on our port: the connection goes on with another protocol, and ends for this one."""
        assert self.http is not None
        other = self.http()
        self.transport.set_protocol(other)
        other.connection_made(self.transport)
        self.transport.resume_reading()
        other.data_received(data)
        self.transport = _Elsewhere()
        super().connection_lost(None)

    def process_event(self, event: Any) -> None:
        if self.request is None or not isinstance(event, Frame) or event.opcode not in MESSAGE_OPCODES:
            super().process_event(event)
            return
        if event.opcode is not Opcode.CONT:
            self._is_text = event.opcode is Opcode.TEXT
        self._parts.append(bytes(event.data))
        if event.fin:
            data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            self._parts.clear()
            if self.on_message is not None:
                self.on_message(data, self._read_ns, self._is_text)

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
