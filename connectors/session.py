"""One session over a message transport: a codec and its transport joined, set up, and recorded if asked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Literal, Protocol

from connectors.codecs.client import ClientCodec, Message
from harness.core.clock import Clock
from harness.core.commands import AppendAudio, Command, Configure
from harness.core.connector import Sink
from harness.core.errors import ConnectorError
from harness.core.events import (
    ClosedBy,
    ConnectionClosed,
    ConnectionPhase,
    Note,
    PeerError,
    SessionReady,
    WireFrame,
)
from harness.core.retry import asked_wait_s

BUSY_CODES = frozenset({"session_limit_reached", "rate_limit_exceeded", "server_error", "overloaded"})
"""Errors while setting up that may pass: a server that is busy, or has not freed the session before."""
CONFIRM_WAIT_S = 5.0
"""How long to wait for the confirmation of our settings; some servers never send it."""
FAREWELL_WAIT_S = 2.0
"""How long a peer that was asked to end the session may take."""


class Transport(Protocol):
    """What carries messages: see `transports/websocket.py`."""

    def prepare(self, message: Message) -> bytes: ...
    def write(self, frames: bytes) -> int: ...
    def when_drained(self, callback: Callable[[int], None]) -> None: ...
    def ping(self) -> None: ...
    async def close(self) -> None: ...


class CodecConnection:
    """A `Connection` (harness.core.connector) of any protocol whose messages a `ClientCodec` reads and writes.

    output_rate_hz: what was asked for; a peer that declares another rate gets a note (0: nothing was asked).
    Hand `on_message` and `on_closed` to the transport, set `transport`, then await `configure`.
    A codec may have more than `ClientCodec` asks for: `binary_is_text` (its binary messages are JSON), `farewell()`
    (the messages that ask the peer to end the session) with `ended` (the peer's last word has come).
    """

    transport: Transport

    def __init__(self, codec: ClientCodec, sink: Sink, clock: Clock, *, output_rate_hz: int = 0, wire: bool) -> None:
        self._codec = codec
        self._sink = sink
        self._clock = clock
        self._asked_rate_hz = output_rate_hz
        self._wire = wire
        loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = loop.create_future()
        self._confirmed: asyncio.Future[None] = loop.create_future()
        self._over: asyncio.Future[None] = loop.create_future()
        self._leaving = False
        self._unanswered: list[Message] = []
        self._binary_is_text: bool = getattr(codec, "binary_is_text", False)

    def prepare(self, command: Command) -> bytes:
        messages = self._codec.encode(command)
        if not isinstance(command, AppendAudio):  # what was said stands in the user's sound file
            for message in messages:
                self._record_out(message)
        return b"".join(self.transport.prepare(message) for message in messages)

    def send(self, prepared: bytes) -> int:
        return self.transport.write(prepared)

    def when_drained(self, callback: Callable[[int], None]) -> None:
        self.transport.when_drained(callback)

    def ping(self) -> None:
        self.transport.ping()

    async def close(self) -> None:
        await self._take_leave()
        await self.transport.close()

    async def _take_leave(self) -> None:
        """Where the protocol has a word for it, ask the peer to end the session, and wait a moment until it has."""
        farewell: Callable[[], list[Message]] | None = getattr(self._codec, "farewell", None)
        began = self._ready.done() and not self._ready.cancelled() and self._ready.exception() is None
        if farewell is None or not began or self._over.done() or self._leaving:
            return
        self._leaving = True
        with contextlib.suppress(ConnectorError, TimeoutError):
            for message in farewell():
                self._record_out(message)
                self.transport.write(self.transport.prepare(message))
            async with asyncio.timeout(FAREWELL_WAIT_S):
                await self._over

    def _record_out(self, message: Message) -> None:
        if self._wire:
            self._sink(WireFrame(t_ns=self._clock.now_ns(), direction="out", text=_shown(message)))

    async def configure(self, configure: Configure, timeout_s: float) -> None:
        """Set the session up in the codec's order. Raises ConnectorError."""
        proxy = getattr(self.transport, "proxy", "")
        if proxy:
            message = f"the connection goes through the proxy {proxy}: what it adds is in every figure"
            self._sink(Note(t_ns=self._clock.now_ns(), code="proxy", message=message))
        self._answer()
        opening = self._codec.opening
        if opening in ("configure_first", "configure_only"):
            self.send(self.prepare(configure))
        if opening == "configure_only":
            self._set_up("ready", "configured")
            return
        try:
            async with asyncio.timeout(timeout_s):
                await self._ready
        except TimeoutError as exc:
            raise ConnectorError(
                f"the peer did not open the session within {timeout_s:g} s", kind="timeout", retryable=True
            ) from exc
        if opening in ("created_first", "created_only"):
            self.send(self.prepare(configure))
        if opening != "created_first":
            self._set_up("configured")
            return
        try:
            async with asyncio.timeout(min(timeout_s, CONFIRM_WAIT_S)):
                await self._confirmed
        except TimeoutError:
            message = f"the peer did not confirm the settings within {CONFIRM_WAIT_S:g} s; went on without"
            self._sink(Note(t_ns=self._clock.now_ns(), code="unconfirmed", message=message))
            self._set_up("configured")

    def on_message(self, message: bytes, is_text: bool, t_ns: int, first_byte_ns: int) -> None:
        if self._wire and (is_text or self._binary_is_text):
            self._sink(WireFrame(t_ns=t_ns, direction="in", text=message.decode("utf-8", "replace")))
        for event in self._codec.decode(message, t_ns, first_byte_ns, is_text):
            self._sink(event)
            if isinstance(event, SessionReady):
                self._session_ready(event)
            elif isinstance(event, PeerError):
                self._fail(f"{event.code}: {event.message}" if event.code else event.message, "peer", event.code)
        if getattr(self._codec, "ended", False) and not self._over.done():
            self._over.set_result(None)
        self._unanswered += self._codec.replies()
        if self._unanswered and hasattr(self, "transport"):  # what comes with the upgrade itself is answered later
            self._answer()

    def _answer(self) -> None:
        waiting, self._unanswered = self._unanswered, []
        for reply in waiting:
            with contextlib.suppress(ConnectorError):
                self.transport.write(self.transport.prepare(reply))

    def on_closed(self, t_ns: int, by: ClosedBy, code: int | None, reason: str) -> None:
        by = "us" if self._leaving and by == "peer" else by
        if not self._over.done():
            self._over.set_result(None)
        self._sink(ConnectionClosed(t_ns=t_ns, by=by, code=code, reason=reason))
        self._fail(f"closed while setting up ({code or by}{': ' + reason if reason else ''})", "connect", None)

    def _set_up(self, *phases: Literal["ready", "configured"]) -> None:
        for phase in phases:
            self._sink(ConnectionPhase(t_ns=self._clock.now_ns(), phase=phase))

    def _session_ready(self, event: SessionReady) -> None:
        created = event.phase == "created" or self._codec.opening != "created_first"
        waiting = self._ready if created else self._confirmed
        if waiting.done():
            return
        waiting.set_result(None)
        self._sink(ConnectionPhase(t_ns=event.t_ns, phase="ready" if created else "configured"))
        if event.phase == "updated" or self._codec.opening != "created_first":
            self._check_rate(event)

    def _check_rate(self, ready: SessionReady) -> None:
        """A reader must know when the peer declares another rate than was asked for: durations rest on it."""
        asked = self._asked_rate_hz
        if asked and ready.output_rate_hz not in (0, asked):
            message = f"the peer declares {ready.output_rate_hz} Hz for its audio, {asked} Hz were asked for"
            self._sink(Note(t_ns=ready.t_ns, code="rate", message=message + "; durations follow its word"))

    def _fail(self, message: str, kind: Literal["peer", "connect"], code: str | None) -> None:
        """Whoever still waits for the set-up learns that it failed."""
        wait_s = asked_wait_s(code or "", message)
        retryable = kind == "connect" or code in BUSY_CODES or wait_s is not None
        error = ConnectorError(message, kind=kind, retryable=retryable, code=code, retry_after_s=wait_s)
        for waiting in (self._ready, self._confirmed):
            if not waiting.done():
                waiting.set_exception(error)
                waiting.exception()  # seen: no warning when nobody waits


def _shown(message: Message) -> str:
    return message if isinstance(message, str) else f"<{len(message)} bytes>"
