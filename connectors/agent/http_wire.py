"""The agent's chat-completions door: a POST is a session of one turn, its answer written to the connection as it is.

aiohttp reads the request; the answer goes past it, so that every packet has the instants just before and after its
write.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aiohttp.abc import AbstractStreamWriter
from aiohttp.web import BaseRequest, StreamResponse

from connectors.agent.dialogue import Dialogue
from connectors.agent.mouth import Mouth
from connectors.codecs.chat_completions_server import (
    LAST_CHUNK,
    STREAM_HEAD,
    ChatRequest,
    ChatServer,
    http_error,
    read_chat_request,
)
from connectors.codecs.openai_requests import Invalid
from harness.core.clock import Clock

if TYPE_CHECKING:
    from connectors.agent.server import Agent

CHAT = "/v1/chat/completions"
MAX_BODY_BYTES = 256 << 20
BODY_TIMEOUT_S = 60.0
"""A request whose body is not whole by then is refused."""
GONE_LOOK_S = 0.1
"""How often a waiting answer looks whether its client is still there."""


class HttpWire:
    """One answer as a session's wire. head: goes before the first frame. finished: set with the answer's last byte."""

    mouth: Mouth | None = None

    def __init__(self, transport: asyncio.WriteTransport, clock: Clock, *, head: bytes = b"") -> None:
        self._transport = transport
        self._clock = clock
        self._head = head
        self._streamed = bool(head)
        self.closed_by_us = False
        self.finished = asyncio.Event()

    def write_frame(self, frame: bytes) -> tuple[int, int]:
        """Pass a frame to the transport; instants just before and after. Nothing is written once finished."""
        data, self._head = self._head + frame, b""
        before_ns = self._clock.now_ns()
        if not self.finished.is_set():
            self._transport.write(data)
        after_ns = self._clock.now_ns()
        if frame.endswith(LAST_CHUNK) or not self._streamed:
            self.finished.set()
        return before_ns, after_ns

    def buffered_bytes(self) -> int:
        """What the transport has not passed on yet."""
        return self._transport.get_write_buffer_size()

    def end(self, code: int, reason: str = "") -> None:
        """Close in mid-answer; code 0 drops the TCP connection instead."""
        self.closed_by_us = True
        self.finished.set()
        if code == 0:
            self._transport.abort()
        else:
            self._transport.close()

    def stop_reading(self, seconds: float) -> None:
        """The request has been read: nothing to do."""


class _Written(StreamResponse):
    """Stands for an answer that has been written already."""

    def __init__(self, *, keep_alive: bool) -> None:
        super().__init__()
        self._keep_alive = keep_alive

    async def prepare(self, request: BaseRequest) -> AbstractStreamWriter | None:
        return None

    async def write_eof(self, data: Any = b"") -> None:
        return None


async def chat_completions(agent: Agent, request: BaseRequest) -> StreamResponse:
    """Answer one request as the knobs ask; the time to think counts from its body's last byte."""
    clock, truth, knobs = agent.clock, agent.shared.truth.add, agent.shared.knobs
    number = agent.next_number()
    transport = request.transport
    assert transport is not None
    arrived: list[int] = []
    request.content.on_eof(lambda: arrived.append(clock.now_ns()))
    async with asyncio.timeout(BODY_TIMEOUT_S):
        body = await _body(request)
    t_ns = arrived[0] if arrived else clock.now_ns()
    asked = read_chat_request(body) if body is not None else Invalid(code="too_large", message="the body is too large")
    refused = _refusal(agent, asked)
    if refused is not None or isinstance(asked, Invalid):
        code, written = refused or ("", b"")
        truth(("open", number, clock.now_ns(), "chat", request.path))
        truth(("error", number, clock.now_ns(), code))
        transport.write(written)
        truth(("close", number, clock.now_ns(), None, "agent"))
        return _Written(keep_alive=request.keep_alive and body is not None)
    server = ChatServer(asked, late=knobs.late_delta_ms is not None)
    truth(("open", number, clock.now_ns(), server.events.name, request.path))
    truth(("configured", number, t_ns, "manual", "", asked.rate_hz, knobs.declared_rate_hz))
    wire = HttpWire(transport, clock, head=STREAM_HEAD if asked.stream else b"")
    dialogue = Dialogue(number, server, wire, agent.shared)
    with agent.present():
        try:
            dialogue.open()
            dialogue.receive(b"", t_ns)
            gone = await _until_over(wire, request)
        finally:
            dialogue.closed()
    truth(("close", number, clock.now_ns(), None, "client" if gone else "agent"))
    return _Written(keep_alive=request.keep_alive and not wire.closed_by_us and not gone)


async def _body(request: BaseRequest) -> bytes | None:
    """The whole body; None for one that is too large."""
    parts: list[bytes] = []
    size = 0
    async for part in request.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > MAX_BODY_BYTES:
            return None
    return b"".join(parts)


def _refusal(agent: Agent, asked: ChatRequest | Invalid) -> tuple[str, bytes] | None:
    """The code and the whole answer of a request that is not let in."""
    if isinstance(asked, Invalid):
        return asked.code, http_error(400, "invalid_request_error", asked.code, asked.message)
    if agent.full():
        code = "session_limit_reached"
        return code, http_error(429, "tokens", code, "All sessions are in use.", "Retry-After: 1\r\n")
    if agent.shared.knobs.error == "rate_limit":
        code = "rate_limit_exceeded"
        return code, http_error(429, "tokens", code, "Rate limit reached.", "Retry-After: 1\r\n")
    return None


async def _until_over(wire: HttpWire, request: BaseRequest) -> bool:
    """Wait until the answer has been written; whether its client went before."""
    while not wire.finished.is_set():
        try:
            async with asyncio.timeout(GONE_LOOK_S):
                await wire.finished.wait()
        except TimeoutError:
            if request.transport is None or request.transport.is_closing():
                return True
    return False
