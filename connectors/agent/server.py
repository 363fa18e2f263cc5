"""The agent as a server: listens, tells GA clients from beta ones, and gives each connection its dialogue."""

from __future__ import annotations

import gc
import ipaddress
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp.web
import websockets.asyncio.server as websockets_server
from aiohttp.web import BaseRequest, StreamResponse
from aiohttp.web import Response as WebResponse
from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from connectors.agent.brain import Brain, BrainOptions, check_brain
from connectors.agent.certificate import Certificate
from connectors.agent.dialogue import Dialogue
from connectors.agent.gemini import GEMINI_PATHS
from connectors.agent.knobs import Knobs, check_knobs
from connectors.agent.plan import Plans
from connectors.agent.routes import HTTP_ROUTES, MOUTHS, WS_ROUTES, find_http
from connectors.agent.rtc_call import RtcCall
from connectors.agent.shared import Shared
from connectors.agent.speech import BUNDLED, Library
from connectors.agent.truth import Truth
from connectors.agent.wire import AgentWire
from harness.core.clock import Clock, SystemClock
from harness.core.errors import ConfigError

PATH = "/v1/realtime"
CLOSE_TIMEOUT_S = 1.0
MAX_MESSAGE_BYTES = 64 << 20
HANDSHAKE_TIMEOUT_S = 10.0
"""For an upgrade, or the head of a connection's first request."""


class Agent:
    """A listening agent. url: where, without a query; ca: PEM file to trust under TLS; truth: its log."""

    def __init__(self, shared: Shared, clock: Clock, *, quiet_gc: bool) -> None:
        self.url = ""
        self.ca: Path | None = None
        self.truth = shared.truth
        self._shared = shared
        self._clock = clock
        self._quiet_gc = quiet_gc
        self._opened = 0
        self._present = 0
        self.calls: dict[str, RtcCall] = {}
        """WebRTC calls by number."""

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def shared(self) -> Shared:
        return self._shared

    def next_number(self) -> int:
        """The number of one more session (from 1)."""
        self._opened += 1
        return self._opened

    def full(self) -> bool:
        """Whether one more session would be too many."""
        limit = self._shared.knobs.session_limit
        return limit is not None and self._present >= limit

    @contextmanager
    def present(self) -> Iterator[None]:
        """While a session is open."""
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def refuse(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer an upgrade that must not succeed."""
        if self._shared.knobs.refuse_with is not None:
            status = HTTPStatus(self._shared.knobs.refuse_with)
            return connection.respond(status, f"refused as told: {status.value} {status.phrase}\n")
        if _path(request.path) not in WS_ROUTES:
            known = ", ".join(path for path in WS_ROUTES if path not in GEMINI_PATHS)
            return connection.respond(HTTPStatus.NOT_FOUND, f"WebSockets are at {known}, and Gemini Live's path\n")
        return None

    async def handle(self, connection: ServerConnection) -> None:
        """One connection, from its upgrade to its end."""
        assert isinstance(connection, AgentWire)
        assert connection.request is not None
        number, path = self.next_number(), _path(connection.request.path)
        knobs, truth = self._shared.knobs, self._shared.truth.add
        server = WS_ROUTES[path](number, connection.request, knobs)
        truth(("open", number, self._clock.now_ns(), server.events.name, connection.request.path))
        if self.full():
            for refusal in server.events.error(
                "invalid_request_error", "session_limit_reached", "All sessions are in use."
            ):
                connection.write_frame(server.events.frame(refusal))
            truth(("error", number, self._clock.now_ns(), "session_limit_reached"))
            await connection.close(1008, "session limit reached")
            truth(("close", number, self._clock.now_ns(), 1008, "agent"))
            return
        if knobs.no_pong or knobs.ping_delay_ms:
            connection.delay_pongs(None if knobs.no_pong else knobs.ping_delay_ms / 1000)
        if path in MOUTHS:
            connection.mouth = MOUTHS[path](number, server, connection, self._shared)
        dialogue = Dialogue(number, server, connection, self._shared)
        with self.present():
            try:
                connection.on_message = dialogue.receive
                dialogue.open()
                await connection.wait_closed()
            finally:
                connection.on_message = None
                dialogue.closed()
                if connection.mouth is not None:
                    connection.mouth.stop()
        truth(("close", number, self._clock.now_ns(), connection.protocol.close_code, connection.closed_by()))

    async def http(self, request: BaseRequest) -> StreamResponse:
        """One plain HTTP request."""
        if self._shared.knobs.refuse_with is not None:
            status = HTTPStatus(self._shared.knobs.refuse_with)
            return WebResponse(status=status.value, text=f"refused as told: {status.value} {status.phrase}\n")
        handler = find_http(request.method, request.path.rstrip("/"))
        if handler is None:
            posts = ", ".join(path for method, path, _ in HTTP_ROUTES if method == "POST" and not path.endswith("*"))
            return WebResponse(status=404, text=f"no {request.method} at this path; POST is taken at {posts}\n")
        try:
            return await handler(self, request)
        except TimeoutError:
            response = WebResponse(status=408, text="the request was not sent in time\n")
            response.force_close()
            return response

    def _enter(self) -> None:
        self._present += 1
        if self._quiet_gc and self._present == 1:
            gc.collect()
            gc.freeze()
            gc.disable()

    def _leave(self) -> None:
        self._present -= 1
        if self._quiet_gc and self._present == 0:
            gc.enable()
            gc.unfreeze()


@asynccontextmanager
async def serve(
    knobs: Knobs | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    truth: Path | None = None,
    keep_truth: bool = False,
    tls: bool = False,
    public: bool = False,
    answers: Path = BUNDLED,
    clock: Clock | None = None,
    quiet_gc: bool = False,
    brain: BrainOptions | None = None,
) -> AsyncIterator[Agent]:
    """Listen while the block runs; yields the `Agent` with its URL.

    port 0: any free one. truth: JSON-lines file, appended to; keep_truth: keep the records in memory instead.
    quiet_gc: hold off the garbage collector while sessions are open (for a process that does nothing else).
    brain: a local model that answers, loaded before the agent listens; it serves one session at a time.
    Raises ConfigError (knobs, a host or port that cannot be used, at the end a truth log that could not be written)
    and PrerequisiteError (no answers).
    """
    knobs = check_knobs(knobs or Knobs())
    if brain is not None:
        knobs = check_brain(knobs)
    if not public and not is_loopback(host):
        raise ConfigError(f"{host} is not a loopback address: the agent answers anyone, so this needs --public")
    clock = clock or SystemClock()
    library = Library.load(knobs, answers)
    plans = Plans(knobs, library)
    if knobs.endpointer == "scripted":
        plans.prepare(knobs.scripted_turns)
    try:
        log = Truth(truth, keep=keep_truth)
    except OSError as exc:
        raise ConfigError(f"cannot write the truth log {truth}: {exc.strerror}") from exc
    certificate = Certificate(host) if tls else None
    stack = AsyncExitStack()
    try:
        loaded = None if brain is None else await stack.enter_async_context(Brain(brain, clock))
    except BaseException:
        log.close()
        if certificate:
            certificate.remove()
        raise
    shared = Shared(knobs=knobs, library=library, plans=plans, truth=log, now_ns=clock.now_ns, brain=loaded)
    agent = Agent(shared, clock, quiet_gc=quiet_gc)
    http = aiohttp.web.Server(agent.http, access_log=None)
    wire = type("ClockedWire", (AgentWire,), {"clock": clock, "http": staticmethod(http)})
    try:
        listening = await websockets_server.serve(
            agent.handle,
            host,
            port,
            create_connection=wire,
            process_request=agent.refuse,
            select_subprotocol=_subprotocol,
            ssl=certificate.context if certificate else None,
            compression=None,
            max_size=MAX_MESSAGE_BYTES,
            ping_interval=None,
            open_timeout=HANDSHAKE_TIMEOUT_S,
            close_timeout=CLOSE_TIMEOUT_S,
            logger=_quiet_logger(),
        )
    except OSError as exc:
        await stack.aclose()
        log.close()
        if certificate:
            certificate.remove()
        raise ConfigError(f"cannot listen on {host} port {port}: {exc.strerror}") from exc
    try:
        bound = next(iter(listening.sockets)).getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        agent.url = f"{'wss' if tls else 'ws'}://{shown}:{bound}{PATH}"
        agent.ca = certificate.ca if certificate else None
        yield agent
    finally:
        for call in list(agent.calls.values()):
            await call.closed()
        listening.close()
        await listening.wait_closed()
        await http.shutdown(CLOSE_TIMEOUT_S)
        await stack.aclose()
        log.close()
        if certificate:
            certificate.remove()
    if log.failure is not None:
        raise ConfigError(log.failure)


def _path(target: str) -> str:
    return urlsplit(target).path.rstrip("/")


def _quiet_logger() -> logging.Logger:
    """websockets would report each plain HTTP request as a failed handshake."""
    logger = logging.getLogger("firstpacket.agent.websockets")
    logger.setLevel(logging.CRITICAL)
    return logger


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _subprotocol(connection: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    return Subprotocol("realtime") if "realtime" in offered else None
