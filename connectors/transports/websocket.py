"""A WebSocket client whose messages are stamped in the connection's own receive hook, before anything is decoded.

No compression, messages up to 64 MiB, keep-alive by pings that measure the round trip and never kill a slow peer.
DNS, TCP, TLS and upgrade are finished one by one and stamped. Knows no protocol above WebSocket.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection
from websockets.client import ClientProtocol
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage, InvalidStatus, InvalidURI
from websockets.frames import Frame, Opcode
from websockets.http11 import USER_AGENT
from websockets.protocol import Event as WireEvent
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from connectors.transports.failures import plain
from connectors.transports.proxy import BREATH_NS, OnPhase, open_socket
from connectors.transports.tls import start_tls
from harness.core.clock import Clock
from harness.core.errors import ConfigError, ConnectorError
from harness.core.events import ClosedBy
from harness.core.retry import read_retry_after

MAX_MESSAGE_BYTES = 64 << 20
MAX_FRAGMENTS = 100_000
"""Fragments of one message; a peer that sends more (empty ones, say) is cut off before they fill the memory."""
CLOSE_TIMEOUT_S = 2.0
DRAIN_LOOK_S = 0.001
"""How often a TLS connection under back-pressure is asked whether its last bytes have left."""

OnMessage = Callable[[bytes, bool, int, int], None]
"""Called as (message, is_text, t_ns, first_byte_ns) inside the receive hook."""
OnClosed = Callable[[int, ClosedBy, int | None, str], None]
"""Called once as (t_ns, by, code, reason); by is us, peer or network."""


class StampedConnection(ClientConnection):
    """A websockets connection that takes the clock at every socket read and hands each message on at once."""

    clock: Clock
    on_message: OnMessage
    on_pong: Callable[[bytes, int], None] = staticmethod(lambda payload, t_ns: None)
    on_tls: Callable[[int], None] | None = None
    on_upgrade: Callable[[int], None] = staticmethod(lambda t_ns: None)
    closing = False
    """Set by us before we say goodbye."""
    on_closed: OnClosed
    raw: asyncio.Transport | None = None
    """Under TLS: the TCP transport below, whose buffer the encrypted one does not count."""
    read_ns = 0
    first_byte_ns = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self.on_tls is not None:
            self.on_tls(self.clock.now_ns())
        self.parts: list[bytes | bytearray | memoryview] = []
        self.is_text = False
        self.drained: list[Callable[[int], None]] = []
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self.read_ns = self.clock.now_ns()
        if not self.first_byte_ns:
            self.first_byte_ns = self.read_ns
        super().data_received(data)
        if not self.parts and not self._inside_frame():
            self.first_byte_ns = 0
        if self.clock.now_ns() - self.read_ns > BREATH_NS and not self.transport.is_closing():
            # One turn of the loop may bring many reads, and would do nothing but take them.
            self.transport.pause_reading()
            self.loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def process_event(self, event: WireEvent) -> None:
        """Take data frames and pongs here, with the stamp of the read under way; leave the rest to the library."""
        if isinstance(event, Frame):
            if event.opcode in (Opcode.TEXT, Opcode.BINARY):
                self.is_text = event.opcode is Opcode.TEXT
                self._take(event)
                return
            if event.opcode is Opcode.CONT:
                self._take(event)
                return
            if event.opcode is Opcode.PONG:
                self.on_pong(bytes(event.data), self.read_ns)
            if not self.parts:  # what follows a control frame in this read begins with this read
                self.first_byte_ns = self.read_ns
        elif self.protocol.handshake_exc is None:
            self.on_upgrade(self.read_ns)  # here, as the first message may come with the same read
        super().process_event(event)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._look_drained()

    @property
    def pending_bytes(self) -> int:
        """What has been written and has not left the process yet, under TLS the encrypted bytes too."""
        pending = self.transport.get_write_buffer_size()
        return pending if self.raw is None else pending + self.raw.get_write_buffer_size()

    def when_drained(self, callback: Callable[[int], None]) -> None:
        if self.pending_bytes == 0:
            callback(self.clock.now_ns())
            return
        self.drained.append(callback)
        if self.raw is not None and len(self.drained) == 1:  # the encrypted transport resumes before the last is sent
            self.loop.call_later(DRAIN_LOOK_S, self._look_drained)

    def _look_drained(self) -> None:
        if not self.drained:
            return
        if self.pending_bytes == 0:
            waiting, self.drained = self.drained, []
            t_ns = self.clock.now_ns()
            for callback in waiting:
                callback(t_ns)
        elif self.raw is not None and not self.transport.is_closing():
            self.loop.call_later(DRAIN_LOOK_S, self._look_drained)

    def abort(self) -> None:
        """Drop the connection without a word."""
        self.transport.abort()

    def _take(self, frame: Frame) -> None:
        if frame.fin and not self.parts:
            data = frame.data
        else:
            self.parts.append(frame.data)
            if len(self.parts) > MAX_FRAGMENTS:
                self.parts = []
                self.transport.abort()
                return
            if not frame.fin:
                return
            data, self.parts = b"".join(self.parts), []
        first_ns, self.first_byte_ns = self.first_byte_ns or self.read_ns, self.read_ns
        self.on_message(bytes(data), self.is_text, self.read_ns, first_ns)

    def connection_lost(self, exc: Exception | None) -> None:
        if not hasattr(self, "recv_messages"):  # TLS failed: uvloop tells the end of what was never made
            return
        t_ns = self.clock.now_ns()
        super().connection_lost(exc)
        received = self.protocol.close_rcvd
        sent = self.protocol.close_sent
        echoed = received is None or (sent is not None and received.code == sent.code)
        if self.closing and echoed and not self.protocol.close_rcvd_then_sent:
            by: ClosedBy = "us"
        else:
            by = "peer" if received is not None else "network"
        code, reason = (received.code, received.reason) if received else (None, str(exc or ""))
        self.on_closed(t_ns, by, code, reason)

    def _inside_frame(self) -> bool:
        """Whether the parser is suspended inside a frame, even right after a header."""
        step: Any = self.protocol.parser
        while step is not None:
            if getattr(step, "__qualname__", "") == "Frame.parse":
                return True
            step = getattr(step, "gi_yieldfrom", None)
        return False


class WebSocketTransport:
    """One open WebSocket: `prepare` frames ahead, `write` without waiting, stamped messages through callbacks.

    proxy: host of the proxy on the way, empty for none.
    """

    def __init__(self, connection: StampedConnection, on_rtt: Callable[[int, int], None], proxy: str = "") -> None:
        self.proxy = proxy
        self._connection = connection
        self._on_rtt = on_rtt
        self._pings: dict[bytes, int] = {}
        self._ping_count = 0
        connection.on_pong = self._ponged

    def prepare(self, message: str | bytes) -> bytes:
        """The message as one masked frame, ready to be written."""
        text = isinstance(message, str)
        data = message.encode() if isinstance(message, str) else message
        return Frame(Opcode.TEXT if text else Opcode.BINARY, data).serialize(mask=True)

    def write(self, frames: bytes) -> int:
        """Write prepared frames; return the bytes that the transport still holds. Raises ConnectorError when closed."""
        transport = self._connection.transport
        if transport.is_closing() or self._connection.protocol.close_sent is not None:
            raise ConnectorError("the connection is closed", kind="connect", retryable=True)
        transport.write(frames)
        return self._connection.pending_bytes

    def when_drained(self, callback: Callable[[int], None]) -> None:
        """Call `callback(t_ns)` once the write buffer is empty."""
        self._connection.when_drained(callback)

    def ping(self) -> None:
        """Send a ping; its answer is reported to `on_rtt(t_ns, rtt_ns)`. A peer that never answers is left alone."""
        payload = self._ping_count.to_bytes(4, "big")
        self._ping_count += 1
        with contextlib.suppress(ConnectorError):
            frame = Frame(Opcode.PING, payload).serialize(mask=True)
            self._pings[payload] = self._connection.clock.now_ns()
            self.write(frame)

    async def close(self) -> None:
        """Say goodbye and wait a moment for the peer's goodbye; then drop the connection."""
        self._connection.closing = True
        try:
            with contextlib.suppress(ConnectionClosed, OSError, TimeoutError):
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await self._connection.close()
        finally:
            self._connection.abort()

    def _ponged(self, payload: bytes, t_ns: int) -> None:
        sent_ns = self._pings.pop(payload, None)
        if sent_ns is not None:
            self._on_rtt(t_ns, t_ns - sent_ns)


async def open_websocket(
    url: str,
    *,
    clock: Clock,
    on_message: OnMessage,
    on_phase: OnPhase,
    on_rtt: Callable[[int, int], None],
    on_closed: OnClosed,
    headers: Mapping[str, str],
    subprotocols: tuple[str, ...] = (),
    tls: ssl.SSLContext | None = None,
    timeout_s: float = 30.0,
) -> WebSocketTransport:
    """Connect step by step, through a proxy where the environment names one (see `proxy.py`).

    on_phase hears of started, dns, tcp, tls and upgrade. Raises ConnectorError with the peer's own words; never repeats
    a header's value.
    """
    parts = urlsplit(url)
    secure = parts.scheme == "wss"
    host, port = parts.hostname or "", parts.port or (443 if secure else 80)
    context = (tls or ssl.create_default_context()) if secure else None

    try:
        connection = StampedConnection(
            ClientProtocol(
                parse_uri(url),
                subprotocols=[Subprotocol(name) for name in subprotocols] or None,
                max_size=MAX_MESSAGE_BYTES,
            ),
            ping_interval=None,
            max_queue=None,
            write_limit=0,  # zero: uvloop then writes at once instead of at the end of its turn
        )
        connection.clock, connection.on_message, connection.on_closed = clock, on_message, on_closed
        connection.on_upgrade = lambda t_ns: on_phase("upgrade", t_ns)
        connection.on_tls = (lambda t_ns: on_phase("tls", t_ns)) if secure else None
        async with asyncio.timeout(timeout_s):
            on_phase("started", clock.now_ns())
            opened = await open_socket(host, port, secure=secure, clock=clock, on_phase=on_phase)
            try:
                await _connect(connection, opened.sock, host, port, context)
            except BaseException:
                opened.sock.close()
                raise
            try:
                await connection.handshake(dict(headers), user_agent_header=USER_AGENT)
            except BaseException:
                connection.abort()
                raise
            connection.start_keepalive()
    except TimeoutError as exc:
        raise ConnectorError(
            f"{host}:{port} did not answer within {timeout_s:g} s", kind="timeout", retryable=True
        ) from exc
    except InvalidURI as exc:
        raise ConfigError(f"{url}: not a WebSocket URL") from exc
    except InvalidStatus as exc:
        raise _refused(host, exc) from exc
    except (OSError, InvalidHandshake, EOFError, UnicodeError, ValueError) as exc:
        raise ConnectorError(f"{host}:{port}: {_plain(exc)}", kind="connect", retryable=True) from exc
    return WebSocketTransport(connection, on_rtt, opened.proxy)


async def _connect(
    connection: StampedConnection, sock: socket.socket, host: str, port: int, context: ssl.SSLContext | None
) -> None:
    """Put the connection on the socket. TLS is begun on a transport of its own, so that its buffer can be seen too."""
    loop = asyncio.get_running_loop()
    if context is None:
        await loop.create_connection(lambda: connection, sock=sock)
        return
    raw, _ = await loop.create_connection(asyncio.Protocol, sock=sock)
    raw.set_write_buffer_limits(high=0)
    encrypted = await start_tls(raw, connection, context, host, port, "ws")
    connection.raw = raw
    connection.connection_made(encrypted)


def _refused(host: str, exc: InvalidStatus) -> ConnectorError:
    status = exc.response.status_code
    body = " ".join((exc.response.body or b"").decode("utf-8", "replace").split())
    hint = {
        401: "the key is wrong or missing",
        403: "the key may not use this",
        404: "no such path or model",
        429: "rate limit reached",
    }.get(status, "refused")
    retryable = status == 429 or status >= 500
    said = f" ({body})" if body else ""
    return ConnectorError(
        f"{host}: HTTP {status}, {hint}{said}",
        kind="peer",
        retryable=retryable,
        code=str(status),
        retry_after_s=read_retry_after(next(iter(exc.response.headers.get_all("Retry-After")), None)),
    )


def _plain(exc: BaseException) -> str:
    return plain(exc) + ("; no WebSocket server there, or it wants wss://" if isinstance(exc, InvalidMessage) else "")
