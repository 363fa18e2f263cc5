"""The agent as a server: listens, tells GA clients from beta ones, and gives each connection its dialogue."""

from __future__ import annotations

import gc
import ipaddress
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import websockets.asyncio.server as websockets_server
from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from connectors.agent.certificate import Certificate
from connectors.agent.dialogue import Dialogue
from connectors.agent.knobs import Knobs, check_knobs
from connectors.agent.plan import Plans, text_frame
from connectors.agent.shared import Shared
from connectors.agent.speech import BUNDLED, Library
from connectors.agent.truth import Truth
from connectors.agent.wire import AgentWire
from connectors.codecs.openai_names import Dialect
from connectors.codecs.openai_realtime_server import OpenAIRealtimeServer
from harness.core.clock import Clock, SystemClock
from harness.core.errors import ConfigError

PATH = "/v1/realtime"
BETA_HEADER = ("OpenAI-Beta", "realtime=v1")
BETA_SUBPROTOCOL = "openai-beta.realtime-v1"
CLOSE_TIMEOUT_S = 1.0


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

    def refuse(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer an upgrade that must not succeed."""
        if self._shared.knobs.refuse_with is not None:
            status = HTTPStatus(self._shared.knobs.refuse_with)
            return connection.respond(status, f"refused as told: {status.value} {status.phrase}\n")
        if urlsplit(request.path).path.rstrip("/") != PATH:
            return connection.respond(HTTPStatus.NOT_FOUND, f"the agent serves {PATH} only\n")
        return None

    async def handle(self, connection: ServerConnection) -> None:
        """One connection, from its upgrade to its end."""
        assert isinstance(connection, AgentWire)
        assert connection.request is not None
        self._opened += 1
        number, path = self._opened, connection.request.path
        dialect = self._dialect(connection.request)
        truth = self._shared.truth.add
        truth(("open", number, self._clock.now_ns(), dialect, path))
        model = parse_qs(urlsplit(path).query).get("model", ["firstpacket-agent"])[0]
        knobs = self._shared.knobs
        server = OpenAIRealtimeServer(
            dialect,
            session_id=f"sess_{number}",
            model=model,
            output_rate_hz=knobs.declared_rate_hz,
        )
        if knobs.session_limit is not None and self._present >= knobs.session_limit:
            refusal = server.events.error("invalid_request_error", "session_limit_reached", "All sessions are in use.")
            connection.write_frame(text_frame(refusal))
            truth(("error", number, self._clock.now_ns(), "session_limit_reached"))
            await connection.close(1008, "session limit reached")
            truth(("close", number, self._clock.now_ns(), 1008, "agent"))
            return
        if knobs.no_pong or knobs.ping_delay_ms:
            connection.delay_pongs(None if knobs.no_pong else knobs.ping_delay_ms / 1000)
        dialogue = Dialogue(number, server, connection, self._shared)
        self._enter()
        try:
            connection.on_message = dialogue.receive
            dialogue.open()
            await connection.wait_closed()
        finally:
            connection.on_message = None
            dialogue.closed()
            self._leave()
            truth(("close", number, self._clock.now_ns(), connection.protocol.close_code, connection.closed_by()))

    def _dialect(self, request: Request) -> Dialect:
        if self._shared.knobs.dialect != "auto":
            return self._shared.knobs.dialect
        name, value = BETA_HEADER
        offered = ",".join(request.headers.get_all("Sec-WebSocket-Protocol"))
        beta = value in request.headers.get_all(name) or BETA_SUBPROTOCOL in offered
        return "beta" if beta else "ga"

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
) -> AsyncIterator[Agent]:
    """Listen while the block runs; yields the `Agent` with its URL.

    port 0: any free one. truth: JSON-lines file, appended to; keep_truth: keep the records in memory instead.
    quiet_gc: hold off the garbage collector while sessions are open (for a process that does nothing else).
    Raises ConfigError (knobs, a host or port that cannot be used, at the end a truth log that could not be written)
    and PrerequisiteError (no answers).
    """
    knobs = check_knobs(knobs or Knobs())
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
    shared = Shared(knobs=knobs, library=library, plans=plans, truth=log, now_ns=clock.now_ns)
    agent = Agent(shared, clock, quiet_gc=quiet_gc)
    wire = type("ClockedWire", (AgentWire,), {"clock": clock})
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
            max_size=None,
            ping_interval=None,
            close_timeout=CLOSE_TIMEOUT_S,
        )
    except OSError as exc:
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
        listening.close()
        await listening.wait_closed()
        log.close()
        if certificate:
            certificate.remove()
    if log.failure is not None:
        raise ConfigError(log.failure)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _subprotocol(connection: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    return Subprotocol("realtime") if "realtime" in offered else None
