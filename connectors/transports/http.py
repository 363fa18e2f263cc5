"""An HTTP/1.1 client whose answers are stamped in the connection's own receive hook, for bodies that stream.

One connection to one origin, one exchange at a time, kept alive between exchanges and opened again when the server has
closed it. DNS, TCP and TLS are finished one by one and stamped. Knows nothing of what the bodies mean.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

import h11

from connectors.transports.failures import NO_HTTP, plain
from connectors.transports.proxy import BREATH_NS, OnPhase, open_socket
from connectors.transports.tls import start_tls
from harness.core.clock import Clock
from harness.core.errors import ConfigError, ConnectorError

MAX_HEAD_BYTES = 64 << 10
"""Bytes of an answer's status line and headers."""
DRAIN_LOOK_S = 0.001
"""How often a TLS connection under back-pressure is asked whether its last bytes have left."""
HTTP = b"HTTP/"
"""What every answer begins with."""
USER_AGENT = "firstpacket"
MAX_INTERIM = 100
"""Interim answers (1xx) before an answer; a peer that sends more is not read on."""


class Exchange(Protocol):
    """Takes the answer to one request, inside the receive hook; each call returns at once.

    `on_head` (final status and headers, their names in lower case), `on_body` pieces, then `on_end`; or at any point
    `on_lost`, with a short code and what happened.
    """

    def on_head(self, status: int, headers: Mapping[str, str], t_ns: int) -> None: ...
    def on_body(self, data: bytes, t_ns: int) -> None: ...
    def on_end(self, t_ns: int) -> None: ...
    def on_lost(self, code: str, why: str, t_ns: int) -> None: ...


class StampedHttp(asyncio.Protocol):
    """One connection. exchange: whose answer is awaited. on_idle_end: called when the server ends it in between."""

    def __init__(self, clock: Clock, on_idle_end: Callable[[], None]) -> None:
        self.exchange: Exchange | None = None
        self.raw: asyncio.WriteTransport | None = None
        """Under TLS: the TCP transport below, whose buffer the encrypted one does not count."""
        self.transport: asyncio.Transport
        self._clock = clock
        self._on_idle_end = on_idle_end
        self._wire = h11.Connection(our_role=h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._loop = asyncio.get_running_loop()
        self._drained: list[Callable[[int], None]] = []
        self._over = True
        self._interim = 0
        self._begin = b""

    @property
    def idle(self) -> bool:
        """Whether a request may be written now."""
        return not self._over and self.exchange is None and not self.transport.is_closing()

    @property
    def pending_bytes(self) -> int:
        """What has been written and has not left the process yet, under TLS the encrypted bytes too."""
        pending = self.transport.get_write_buffer_size()
        return pending if self.raw is None else pending + self.raw.get_write_buffer_size()

    def ask(self, request: h11.Request, body: bytes, exchange: Exchange) -> int:
        """Write a whole request; return the bytes that have not left yet."""
        events = (request, h11.Data(data=body), h11.EndOfMessage())
        parts = [self._wire.send(event) or b"" for event in events]
        self._begin = b""
        self.exchange = exchange
        self.transport.write(b"".join(parts))
        return self.pending_bytes

    def when_drained(self, callback: Callable[[int], None]) -> None:
        if self.pending_bytes == 0:
            callback(self._clock.now_ns())
            return
        self._drained.append(callback)
        if self.raw is not None and len(self._drained) == 1:  # the encrypted transport resumes before the last is sent
            self._loop.call_later(DRAIN_LOOK_S, self._look_drained)

    def drop(self) -> None:
        """End the connection without a word; whoever waits for an answer hears nothing more."""
        self._over, self.exchange = True, None
        self.transport.abort()

    # --- the transport's calls ------------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        self.transport, self._over = transport, False
        # Zero: `resume_writing` then means that everything has left, and uvloop writes at once.
        transport.set_write_buffer_limits(high=0)

    def data_received(self, data: bytes) -> None:
        t_ns = self._clock.now_ns()
        self._read(data, t_ns)
        if not self._over and self._clock.now_ns() - t_ns > BREATH_NS and not self.transport.is_closing():
            # One turn of the loop may bring many reads, and would do nothing but take them.
            self.transport.pause_reading()
            self._loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        if not self._over and not self.transport.is_closing():
            self.transport.resume_reading()

    def eof_received(self) -> None:
        self._read(b"", self._clock.now_ns())

    def connection_lost(self, exc: Exception | None) -> None:
        t_ns = self._clock.now_ns()
        self._read(b"", t_ns)
        self._lose("closed", str(exc) if exc else "the peer closed the connection", t_ns)

    def resume_writing(self) -> None:
        self._look_drained()

    def _look_drained(self) -> None:
        if not self._drained:
            return
        if self.pending_bytes == 0:
            waiting, self._drained = self._drained, []
            t_ns = self._clock.now_ns()
            for callback in waiting:
                callback(t_ns)
        elif self.raw is not None and not self.transport.is_closing():
            self._loop.call_later(DRAIN_LOOK_S, self._look_drained)

    # --- reading --------------------------------------------------------------------------------------------

    def _read(self, data: bytes, t_ns: int) -> None:
        if self._over:
            return
        if self.exchange is None:  # nothing was asked: a goodbye, or nonsense
            self._lose("", "", t_ns)
            return
        self._begin = (self._begin + data)[: len(HTTP)] if len(self._begin) < len(HTTP) else self._begin
        try:
            self._wire.receive_data(data)
            while self._take(t_ns):
                pass
        except h11.RemoteProtocolError as exc:
            self._lose(*self._lost(exc, data), t_ns)

    def _lost(self, exc: h11.RemoteProtocolError, data: bytes) -> tuple[str, str]:
        """A code and words for an answer that cannot be read on."""
        if not HTTP.startswith(self._begin):
            return "protocol", NO_HTTP + self._or_tls(", or it wants")
        if data:
            return "protocol", str(exc)
        if not self._begin:
            return "closed", "the peer closed the connection without an answer" + self._or_tls(": it may want")
        return "closed", "the peer closed the connection in mid-answer"

    def _or_tls(self, words: str) -> str:
        return f"{words} https://" if self.raw is None else ""

    def _take(self, t_ns: int) -> bool:
        """Hand on the parser's next event; whether there may be another."""
        exchange = self.exchange
        if exchange is None:
            return False
        event = self._wire.next_event()
        if isinstance(event, h11.Response):
            headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in event.headers}
            self._interim = 0
            exchange.on_head(event.status_code, headers, t_ns)
        elif isinstance(event, h11.InformationalResponse):
            self._interim += 1
            if self._interim > MAX_INTERIM:
                raise h11.RemoteProtocolError("no end of interim answers")
        elif isinstance(event, h11.Data):
            exchange.on_body(bytes(event.data), t_ns)
        elif isinstance(event, h11.EndOfMessage):
            self._end(exchange, t_ns)
            return False
        elif isinstance(event, h11.ConnectionClosed):
            raise h11.RemoteProtocolError("the peer closed the connection")
        return isinstance(event, h11.Event)

    def _end(self, exchange: Exchange, t_ns: int) -> None:
        self.exchange = None
        states = (self._wire.our_state, self._wire.their_state)
        last = states != (h11.DONE, h11.DONE) or bool(self._wire.trailing_data[0])
        if last:
            self._over = True
            self.transport.abort()
        else:
            self._wire.start_next_cycle()
        exchange.on_end(t_ns)
        if last:
            self._on_idle_end()

    def _lose(self, code: str, why: str, t_ns: int) -> None:
        """The connection is of no use any more, for whatever reason; told once."""
        if self._over:
            return
        exchange, self.exchange, self._over = self.exchange, None, True
        self.transport.abort()
        if exchange is not None:
            exchange.on_lost(code, why, t_ns)
        else:
            self._on_idle_end()


class HttpClient:
    """One origin, from `open` to `close`; whoever opens it closes it.

    headers: of every request, beside those that HTTP needs. on_phase hears of started, dns, tcp and tls of every
    connection. proxy: host of the proxy on the way, empty for none.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        on_phase: OnPhase,
        headers: Mapping[str, str],
        tls: ssl.SSLContext | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        parts = urlsplit(url)
        self._secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._secure else 80)
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = {"host": parts.netloc, "user-agent": USER_AGENT, "accept-encoding": "identity"}
        self._headers |= {name.lower(): value for name, value in headers.items()}
        self._clock = clock
        self._on_phase = on_phase
        self._tls = (tls or ssl.create_default_context()) if self._secure else None
        self._timeout_s = timeout_s
        self._connection: StampedHttp | None = None
        self._opening: asyncio.Task[None] | None = None
        self._waiting: tuple[h11.Request, bytes, Exchange] | None = None
        self._drains: list[Callable[[int], None]] = []
        self._reopened = False
        self._closed = False
        self.proxy = ""

    async def open(self) -> None:
        """Connect. Raises ConnectorError, which never repeats a header's value, and ConfigError."""
        try:
            async with asyncio.timeout(self._timeout_s):
                self._connection = await self._connect()
        except TimeoutError as exc:
            message = f"{self._host}:{self._port} did not answer within {self._timeout_s:g} s"
            raise ConnectorError(message, kind="timeout", retryable=True) from exc
        except (OSError, UnicodeError, ValueError) as exc:
            raise ConnectorError(f"{self._host}:{self._port}: {plain(exc)}", kind="connect", retryable=True) from exc

    def post(self, body: bytes, exchange: Exchange, headers: Mapping[str, str]) -> int:
        """Send a request now, or as soon as a connection is open again; return the bytes that have not left yet.

        An exchange still under way is given up, with its connection. Raises ConnectorError when closed.
        """
        if self._closed:
            raise ConnectorError("the connection is closed", kind="connect", retryable=True)
        own = {name.lower(): value for name, value in headers.items()} | {"content-length": str(len(body))}
        request = h11.Request(method="POST", target=self._target, headers=list((self._headers | own).items()))
        self._reopened = False
        if self._connection is not None and self._connection.idle:
            return self._connection.ask(request, body, exchange)
        self.give_up()
        self._waiting = (request, body, exchange)
        self._reopen()
        return len(body)

    def when_drained(self, callback: Callable[[int], None]) -> None:
        """Call `callback(t_ns)` once the request's last byte has left the process."""
        if self._waiting is not None:
            self._drains.append(callback)
        elif self._connection is not None:
            self._connection.when_drained(callback)

    def give_up(self) -> None:
        """End what is under way: HTTP/1.1 can do so only with the connection."""
        self._waiting = None
        self._drains = []
        if self._connection is not None and not self._connection.idle:
            self._connection.drop()
            self._connection = None

    async def close(self) -> None:
        """End the connection and whatever is under way; safe to call twice."""
        self._closed = True
        self.give_up()
        if self._opening is not None:
            self._opening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._opening
            self._opening = None
        if self._connection is not None:
            self._connection.drop()
            self._connection = None

    def _idle_end(self) -> None:
        """The server ended the connection between two requests: have another ready, once."""
        self._connection = None
        if not self._closed and not self._reopened:
            self._reopened = True
            self._reopen()

    def _reopen(self) -> None:
        if self._opening is None or self._opening.done():
            self._opening = asyncio.get_running_loop().create_task(self._open_again())

    async def _open_again(self) -> None:
        try:
            await self.open()
        except (ConnectorError, ConfigError) as exc:
            waiting, self._waiting, self._drains = self._waiting, None, []
            if waiting is not None:
                waiting[2].on_lost(getattr(exc, "kind", "connect"), str(exc), self._clock.now_ns())
            return
        if self._waiting is None or self._connection is None:
            return
        (request, body, exchange), self._waiting = self._waiting, None
        drains, self._drains = self._drains, []
        if not self._connection.idle:
            exchange.on_lost("closed", "the peer closed the connection at once", self._clock.now_ns())
            return
        self._connection.ask(request, body, exchange)
        for callback in drains:
            self._connection.when_drained(callback)

    async def _connect(self) -> StampedHttp:
        self._on_phase("started", self._clock.now_ns())
        opened = await open_socket(
            self._host, self._port, secure=self._secure, clock=self._clock, on_phase=self._on_phase
        )
        self.proxy = opened.proxy
        connection = StampedHttp(self._clock, self._idle_end)
        loop = asyncio.get_running_loop()
        try:
            if self._tls is None:
                await loop.create_connection(lambda: connection, sock=opened.sock)
                return connection
            raw, _ = await loop.create_connection(asyncio.Protocol, sock=opened.sock)
        except BaseException:
            opened.sock.close()
            raise
        # TLS is begun on a transport of its own, so that its buffer can be seen too.
        raw.set_write_buffer_limits(high=0)
        encrypted = await start_tls(raw, connection, self._tls, self._host, self._port, "http")
        self._on_phase("tls", self._clock.now_ns())
        connection.raw = raw
        connection.connection_made(encrypted)
        return connection
