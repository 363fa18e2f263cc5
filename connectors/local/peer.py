"""The `local` peer: a model of yours in a process of its own, measured like any other peer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, ClassVar, Self

from connectors.local.handle import Death, WorkerHandle, describe
from connectors.local.interpreter import other, own
from connectors.local.model import Declaration
from connectors.local.power import PowerWatch
from connectors.local.settings import BUNDLED, arguments, place_of
from connectors.local.wire import Begin, Do, Hello, encode
from harness.core.audio import NS_PER_MS
from harness.core.clock import Clock
from harness.core.commands import AppendAudio, Cancel, Command, Commit, Configure, CreateResponse
from harness.core.connector import PeerOptions, Sink
from harness.core.errors import ConfigError, ConnectorError
from harness.core.events import (
    ClosedBy,
    ConnectionClosed,
    ConnectionPhase,
    Event,
    Note,
    PeerError,
    RawReceived,
    SessionReady,
)
from harness.core.profile import Profile

QUEUED_NS = NS_PER_MS
"""A session that waited longer for the one before it says so."""


class LocalConnection:
    """One session with the worker."""

    def __init__(
        self, worker: WorkerHandle, step_limit_s: float, sink: Sink, clock: Clock, release: Callable[[], None]
    ) -> None:
        self._worker = worker
        self._step_limit_s = step_limit_s
        self._release = release
        self._sink = sink
        self._clock = clock
        self._closed = False
        self._configured: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._number = worker.open(self._event, self._died)

    def prepare(self, command: Command) -> bytes:
        if not isinstance(command, AppendAudio | Commit | CreateResponse | Cancel):
            name = command.__struct_config__.tag
            raise ConfigError(f"a local model takes no {name}")
        return encode(Do(self._number, command))

    def send(self, prepared: bytes) -> int:
        if self._closed or not self._worker.alive:
            raise ConnectorError("the session with the local model is over", kind="peer", retryable=True)
        return self._worker.write(prepared)

    def when_drained(self, callback: Callable[[int], None]) -> None:
        self._worker.when_drained(callback)

    def ping(self) -> None:
        """Nothing: there is no network in between."""

    async def configure(self, configure: Configure, timeout_s: float) -> None:
        """Start the session and wait for the model's yes. Raises ConnectorError."""
        self._sink(ConnectionPhase(t_ns=self._clock.now_ns(), phase="started"))
        self._worker.write(encode(Begin(self._number, configure)))
        try:
            async with asyncio.timeout(timeout_s):
                await self._configured
        except TimeoutError as exc:
            message = f"the local model did not start a session within {timeout_s:g} s"
            raise ConnectorError(message, kind="timeout", retryable=True) from exc

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            if self._worker.alive:
                await self._worker.end(self._number, self._step_limit_s)
                peak = self._worker.facts.get("peak_memory_mb")
                if peak:
                    self._sink(RawReceived(t_ns=self._clock.now_ns(), name="peak_memory", usage={"mb": peak}))
                self._sink(ConnectionClosed(t_ns=self._clock.now_ns(), by="us"))
        finally:
            self._worker.forget(self._number)
            self._release()

    def _event(self, event: Event) -> None:
        if self._closed:
            return
        self._sink(event)
        if isinstance(event, SessionReady):
            phase = ConnectionPhase(t_ns=event.t_ns, phase="ready" if event.phase == "created" else "configured")
            self._sink(phase)
            if event.phase == "updated" and not self._configured.done():
                self._configured.set_result(None)

    def _died(self, death: Death) -> None:
        if self._closed:
            return
        if not self._configured.done():
            self._configured.set_exception(self._worker.error())
            self._configured.exception()  # seen: no warning when nobody waits
        self._sink(PeerError(t_ns=death.t_ns, code=death.code, message=death.message, fatal=True))
        by: ClosedBy = "us" if death.stopped_by_us else "peer"
        self._sink(ConnectionClosed(t_ns=death.t_ns, by=by, reason=death.message))


class LocalPeer:
    """Models in a process of their own: `local` is a small bundled one, `local:package.module:Class` is yours."""

    kind: ClassVar[str] = "local"
    version: ClassVar[str] = "1"

    def __init__(self, options: PeerOptions, clock: Clock) -> None:
        self._clock = clock
        self._timeout_s = options.timeout_s
        settings = dict(options.settings)
        self._power = PowerWatch(clock) if _flag(settings, "power") else None
        if options.model is not None:
            settings["model"] = options.model
        self._python = settings.pop("python", "")
        self._interpreter = other(self._python) if self._python else own()
        self._hello = Hello(options.target, settings, self._interpreter.path, place_of(options.target))
        self._declaration: Declaration | None = None
        self._facts: dict[str, Any] = {}
        self._fresh = ""
        self._worker: WorkerHandle | None = None
        self._turnstile = asyncio.Semaphore(0)
        self._starting = asyncio.Lock()
        if options.target in BUNDLED:
            model = BUNDLED[options.target]
            self._declaration = model(**arguments(model, settings)).declaration

    @property
    def label(self) -> str:
        return f"local-{(self._hello.target or 'parrot').replace(':', '.')}"

    @property
    def profile(self) -> Profile:
        """What the model declares. Before the peer is entered this may start a short-lived process to ask."""
        if self._declaration is None:
            self._declaration = describe(self._hello, self._interpreter)
        declared = self._declaration
        unit_ms = declared.unit_samples * 1000 / declared.input_rate_hz
        return Profile(
            pacing=declared.pacing,
            # Without turns nothing can be committed: audio flows, as it does in vad mode.
            turns=("vad",) if declared.continuous else declared.turns,
            continuous=declared.continuous,
            input_rate_hz=declared.input_rate_hz,
            output_rate_hz=declared.output_rate_hz,
            unit_ms=round(unit_ms) if declared.pacing == "input_clocked" and unit_ms else None,
            unit_delay=declared.unit_delay,
            chunk_ms=int(unit_ms) if 20 <= unit_ms == int(unit_ms) else None,
            text=declared.text,
            user_transcript=declared.user_transcript,
            cancel=True,
        )

    @property
    def config(self) -> dict[str, Any]:
        return {
            "target": self._hello.target or "parrot",
            **self._hello.settings,
            **({"python": self._python} if self._python else {}),
            **({"power": True} if self._power else {}),
            "facts": self._facts,
        }

    async def __aenter__(self) -> Self:
        if self._power is not None:
            await self._power.start()
        try:
            await self._living_worker()
        except BaseException:
            self._stop_power()
            raise
        self._turnstile = asyncio.Semaphore(self._sessions)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_power()
        if self._worker is not None:
            await self._worker.stop()
            self._worker = None

    @property
    def _sessions(self) -> int:
        return self._declaration.sessions if self._declaration else 1

    def _stop_power(self) -> None:
        if self._power is not None:
            self._power.stop()

    async def connect(self, configure: Configure, sink: Sink) -> LocalConnection:
        """Open a session; while the model holds as many as it can, wait for an end. A dead worker is replaced first."""
        asked_ns, queued = self._clock.now_ns(), self._turnstile.locked()
        await self._turnstile.acquire()
        try:
            waited_ns = self._clock.now_ns() - asked_ns
            if queued and waited_ns > QUEUED_NS:
                several = f"{self._sessions} sessions" if self._sessions > 1 else "one session"
                message = f"waited {waited_ns / NS_PER_MS:.0f} ms: the model serves {several} at a time"
                sink(Note(t_ns=self._clock.now_ns(), code="queued", message=message))
            async with self._starting:
                worker = await self._living_worker()
            assert self._declaration is not None
            step_limit_s = self._declaration.step_limit_s
            deaf = self._power.listen(sink) if self._power else None

            def release() -> None:
                self._facts = worker.facts
                if deaf:
                    deaf()
                self._turnstile.release()

            connection = LocalConnection(worker, step_limit_s, sink, self._clock, release)
        except BaseException:
            self._turnstile.release()
            raise
        if self._fresh:
            sink(Note(t_ns=self._clock.now_ns(), code="model_loaded", message=self._fresh))
            self._fresh = ""
        try:
            await connection.configure(configure, self._timeout_s)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _living_worker(self) -> WorkerHandle:
        if self._worker is not None and self._worker.alive:
            return self._worker
        if self._worker is not None:
            await self._worker.stop()
            self._worker = None
        worker = WorkerHandle(f"local:{self._hello.target or 'parrot'}", self._interpreter, self._clock)
        self._declaration, loaded = await worker.start(self._hello)
        self._facts = loaded.facts
        took = [(what, ns) for what, ns in (("loading", loaded.took_ns), ("warm-up", loaded.warm_ns)) if ns > NS_PER_MS]
        times = ", ".join(f"{what} took {ns / NS_PER_MS:.0f} ms" for what, ns in took)
        self._fresh = f"first session of this worker process{'; ' if times else ''}{times}"
        self._worker = worker
        return worker


def _flag(settings: dict[str, str], name: str) -> bool:
    """Take a setting of the peer's own out of `settings`. Raises ConfigError."""
    value = settings.pop(name, "false")
    if value not in ("true", "false"):
        raise ConfigError(f"{name}={value}: needs true or false")
    return value == "true"
