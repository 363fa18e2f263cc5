"""One session of chat completions: a request for each turn over one kept connection, its answer read as it streams."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from connectors.codecs.chat_chunks import Failure, read_failure
from connectors.codecs.chat_completions import ChatCompletionsClient
from connectors.codecs.sse import MAX_EVENT_BYTES, SseEvent, SseReader
from connectors.transports.http import HttpClient
from harness.core.clock import Clock
from harness.core.commands import AppendAudio, Cancel, Command, Configure
from harness.core.connector import Sink
from harness.core.errors import ConnectorError
from harness.core.events import ConnectionClosed, ConnectionPhase, Event, Note, RawReceived, WireFrame
from harness.core.retry import read_retry_after

HEADERS = {"content-type": "application/json", "accept": "text/event-stream"}
MAX_REFUSAL_BYTES = 64 << 10
"""What is kept of the body of a refusal."""
OK = 200
_LONG_DATA = re.compile(r'("data":"[^"]{0,40})[^"]{160,}"')


class _Prepared(NamedTuple):
    """body: of a request, None for a command that sends none."""

    body: bytes | None = None
    cancel: bool = False


class ChatConnection:
    """A `Connection` (harness.core.connector); at the same time what takes the answer to its one request (`Exchange`).

    Set `client`, then await `configure`.
    """

    client: HttpClient

    def __init__(self, codec: ChatCompletionsClient, sink: Sink, clock: Clock, *, wire: bool) -> None:
        self._codec = codec
        self._sink = sink
        self._clock = clock
        self._wire = wire
        self._asking = False
        self._closed = False
        self._begin_answer()

    async def configure(self, configure: Configure) -> None:
        """Connect; the settings go along with each request. Raises ConnectorError."""
        await self.client.open()
        if self.client.proxy:
            message = f"the connection goes through the proxy {self.client.proxy}: what it adds is in every figure"
            self._sink(Note(t_ns=self._clock.now_ns(), code="proxy", message=message))
        self._codec.encode(configure)
        for phase in ("ready", "configured"):
            self._sink(ConnectionPhase(t_ns=self._clock.now_ns(), phase=phase))

    # --- the runner's calls ---------------------------------------------------------------------------------

    def prepare(self, command: Command) -> _Prepared:
        """Only `CreateResponse` becomes a request; what comes before it is kept for that."""
        messages = self._codec.encode(command)
        if isinstance(command, AppendAudio) or not messages:
            return _Prepared(cancel=isinstance(command, Cancel))
        (body,) = (message.encode() if isinstance(message, str) else message for message in messages)
        if self._wire:
            text = _LONG_DATA.sub(r'\1…"', body.decode())  # what was said stands in the user's sound file
            self._sink(WireFrame(t_ns=self._clock.now_ns(), direction="out", text=text))
        return _Prepared(body=body)

    def send(self, prepared: _Prepared) -> int:
        if self._closed:
            raise ConnectorError("the connection is closed", kind="connect", retryable=True)
        if prepared.cancel:
            self._give_up()
        if prepared.body is None:
            return 0
        self._give_up()
        self._codec.begin()
        self._begin_answer()
        self._asking = True
        return self.client.post(prepared.body, self, HEADERS)

    def when_drained(self, callback: Callable[[int], None]) -> None:
        self.client.when_drained(callback)

    def ping(self) -> None:
        """HTTP/1.1 has none."""

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._give_up()
        await self.client.close()
        self._sink(ConnectionClosed(t_ns=self._clock.now_ns(), by="us"))

    def _give_up(self) -> None:
        """An answer still under way is ended with its connection."""
        if self._asking:
            self._asking = False
            self.client.give_up()
            self._emit(self._codec.cancelled(self._clock.now_ns()))

    # --- the answer -----------------------------------------------------------------------------------------

    def _begin_answer(self) -> None:
        self._status = 0
        self._retry_after_s: float | None = None
        self._events = SseReader()
        self._streamed = True
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._first_ns = 0

    def on_head(self, status: int, headers: Mapping[str, str], t_ns: int) -> None:
        self._status = status
        self._streamed = not headers.get("content-type", "").startswith("application/json")
        self._retry_after_s = read_retry_after(headers.get("retry-after"))
        self._sink(RawReceived(t_ns=t_ns, name=f"HTTP {status}"))
        encoding = headers.get("content-encoding", "identity")
        if encoding != "identity":
            self._break(
                "unreadable", f"the peer compresses its answer ({encoding[:40]}), which was not asked for", t_ns
            )

    def on_body(self, data: bytes, t_ns: int) -> None:
        if not self._asking:
            return
        if self._status == OK and self._streamed:
            for event in self._events.feed(data, t_ns):
                self._take(event)
            if self._events.overflow:
                self._break("too_large", f"an event of more than {MAX_EVENT_BYTES >> 20} MiB", t_ns)
            return
        self._first_ns = self._first_ns or t_ns
        limit = MAX_EVENT_BYTES if self._status == OK else MAX_REFUSAL_BYTES
        self._body.append(data[: limit - self._body_bytes])
        self._body_bytes += len(self._body[-1])
        if self._body_bytes >= limit:
            if self._status == OK:
                self._break("too_large", f"an answer of more than {MAX_EVENT_BYTES >> 20} MiB", t_ns)
            else:  # enough to know why; the rest may never end
                self._asking = False
                self.client.give_up()
                self._refused(t_ns)

    def on_end(self, t_ns: int) -> None:
        self._asking = False
        if self._status != OK:
            self._refused(t_ns)
            return
        if self._streamed:
            for event in self._events.finish(t_ns):
                self._take(event)
        elif self._body_bytes:
            self._take(SseEvent(b"".join(self._body), t_ns, self._first_ns, wire_bytes=self._body_bytes))
        self._emit(self._codec.ended(t_ns))

    def on_lost(self, code: str, why: str, t_ns: int) -> None:
        self._asking = False
        if self._status in (0, OK):
            self._emit(self._codec.failed(code, why, t_ns))
        else:
            self._refused(t_ns)

    def _refused(self, t_ns: int) -> None:
        failure = read_failure(b"".join(self._body))
        if 300 <= self._status < 400:
            failure = Failure(failure.code, "the peer redirects, which is not followed: name the right URL")
        self._emit(self._codec.refused(self._status, failure, self._retry_after_s, t_ns))

    def _break(self, code: str, why: str, t_ns: int) -> None:
        """The answer cannot be read on."""
        self._asking = False
        self.client.give_up()
        self._emit(self._codec.failed(code, why, t_ns))

    def _take(self, event: SseEvent) -> None:
        if self._wire:
            self._sink(WireFrame(t_ns=event.t_ns, direction="in", text=event.data.decode("utf-8", "replace")))
        self._emit(self._codec.take(event))

    def _emit(self, events: list[Event]) -> None:
        for event in events:
            self._sink(event)
