"""The worker as the harness sees it: started, loaded, watched for signs of life, and explained when it dies."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import msgspec

from connectors.local.framing import Framer, Message
from connectors.local.group import kill_group
from connectors.local.interpreter import Interpreter
from connectors.local.model import Declaration
from connectors.local.transport import Child
from connectors.local.wire import (
    ALIVE_PERIOD_S,
    Alive,
    Described,
    Emitted,
    End,
    Ended,
    Failed,
    Hello,
    Loaded,
    decode_from_worker,
    encode,
)
from harness.core.audio import NS_PER_S
from harness.core.clock import Clock
from harness.core.errors import ConfigError, ConnectorError, HarnessError, PrerequisiteError
from harness.core.events import Event

START_LIMIT_S = 120.0
"""From the start of the process to the class found and made: importing torch from a cold disk takes a while."""
STOP_LIMIT_S = 2.0


class Death(msgspec.Struct, frozen=True, kw_only=True):
    """How the worker ended. stopped_by_us: we killed it (a hang) or said goodbye."""

    t_ns: int
    code: str
    message: str
    stopped_by_us: bool = False


class Listener:
    """Whoever holds a session with the worker. ended: set when the worker has ended it, or itself."""

    def __init__(self, on_event: Callable[[Event], None], on_death: Callable[[Death], None]) -> None:
        self.on_event = on_event
        self.on_death = on_death
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class WorkerHandle:
    """One worker process and the sessions that are on."""

    def __init__(self, label: str, interpreter: Interpreter, clock: Clock) -> None:
        self._label = label
        self._command = interpreter.command
        self._clock = clock
        loop = asyncio.get_running_loop()
        self._described: asyncio.Future[Declaration] = loop.create_future()
        self._loaded: asyncio.Future[Loaded] = loop.create_future()
        self._opened = 0
        self._sessions: dict[int, Listener] = {}
        self.facts: dict[str, Any] = {}
        """What the model said of itself last."""
        self.death: Death | None = None
        self._child: Child
        self._failed: Failed | None = None
        self._hung_ns = 0
        self._alive_ns = clock.now_ns()
        self._step_limit_ns = 0
        self._watch: asyncio.TimerHandle | None = None

    async def start(self, hello: Hello) -> tuple[Declaration, Loaded]:
        """Start the process and load the model. Raises ConfigError, PrerequisiteError or ConnectorError."""
        self._child = await Child.start(self._command, self._clock, self._message, self._garbled, self._exited)
        try:
            self._child.write(encode(hello))
            declaration = await self._within(self._described, START_LIMIT_S, "start")
            loaded = await self._within(self._loaded, declaration.load_limit_s, "load its model")
        except BaseException:
            self._child.kill()
            await self._child.stop(STOP_LIMIT_S)
            raise
        self._step_limit_ns = round(declaration.step_limit_s * NS_PER_S)
        self._check()
        return declaration, loaded

    @property
    def alive(self) -> bool:
        return self.death is None and self._child.alive

    def write(self, frame: bytes) -> int:
        return self._child.write(frame)

    def when_drained(self, callback: Callable[[int], None]) -> None:
        self._child.when_drained(callback)

    def open(self, on_event: Callable[[Event], None], on_death: Callable[[Death], None]) -> int:
        """The number of a new session, which is on from now: its events go to `on_event`, the worker's end to
        `on_death`."""
        self._opened += 1
        self._sessions[self._opened] = Listener(on_event, on_death)
        return self._opened

    async def end(self, session: int, limit_s: float) -> None:
        """End a session; a model that does not come back within `limit_s` costs the worker its life."""
        if self.alive:
            self._child.write(encode(End(session)))
            try:
                async with asyncio.timeout(limit_s):
                    await asyncio.shield(self._sessions[session].ended)
            except TimeoutError:
                self._hung_ns = self._clock.now_ns()
                self._child.kill()
                await self._child.stop(STOP_LIMIT_S)

    def forget(self, session: int) -> None:
        """Nothing more of this session is heard."""
        self._sessions.pop(session, None)

    async def stop(self) -> None:
        """End the process; never raises."""
        if self._watch:
            self._watch.cancel()
        await self._child.stop(STOP_LIMIT_S)

    def error(self) -> HarnessError:
        """Why the worker is gone, as what a caller should raise."""
        if self._failed and self._failed.kind == "config":
            return ConfigError(self._failed.message)
        if self._failed and self._failed.kind == "prerequisite":
            return PrerequisiteError(self._failed.message)
        death = self.death
        message, code = (death.message, death.code) if death else ("the worker is gone", "crash")
        return ConnectorError(message, kind="timeout" if code == "hang" else "peer", retryable=True, code=code)

    async def _within(self, future: asyncio.Future[Any], limit_s: float, what: str) -> Any:
        try:
            async with asyncio.timeout(limit_s):
                return await future
        except TimeoutError as exc:
            raise ConnectorError(f"{self._label} did not {what} within {limit_s:g} s", kind="timeout") from exc

    def _message(self, message: Message) -> None:
        try:
            record = decode_from_worker(message.payload)
        except msgspec.DecodeError as exc:
            self._garbled(str(exc))
            return
        if isinstance(record, Emitted):
            listener = self._sessions.get(record.session)
            if listener:
                first_ns = message.first_byte_ns if message.first_byte_ns != message.t_ns else 0
                listener.on_event(
                    msgspec.structs.replace(
                        record.event, t_ns=message.t_ns, first_byte_ns=first_ns, wire_bytes=message.wire_bytes
                    )
                )
        elif isinstance(record, Alive):
            self._alive_ns = message.t_ns - record.step_ns
        elif isinstance(record, Ended):
            self.facts = record.facts
            self._over(record.session)
        elif isinstance(record, Described):
            self._described.set_result(record.declaration)
        elif isinstance(record, Loaded):
            self._alive_ns = message.t_ns
            self.facts = record.facts
            self._loaded.set_result(record)
        else:
            self._failed = record

    def _garbled(self, why: str) -> None:
        """What came is no record of a worker's: something else writes to its socket."""
        self._failed = Failed("model", "garbled", f"its process sent what no worker sends: {why}")
        self._child.kill()

    def _check(self) -> None:
        """Kill a worker whose step lasts too long, or that gives no sign of life at all."""
        if self._clock.now_ns() - self._alive_ns > self._step_limit_ns + ALIVE_PERIOD_S * 2 * NS_PER_S:
            self._hung_ns = self._clock.now_ns()
            self._child.kill()
            return
        self._watch = asyncio.get_running_loop().call_later(ALIVE_PERIOD_S, self._check)

    def _exited(self, t_ns: int, code: int | None) -> None:
        if self._watch:
            self._watch.cancel()
        self.death = self._cause(t_ns, code)
        for waiting in (self._described, self._loaded):
            if not waiting.done():
                waiting.set_exception(self.error())
                waiting.exception()  # seen: no warning when nobody waits
        for session, listener in list(self._sessions.items()):
            self._over(session)
            listener.on_death(self.death)

    def _over(self, session: int) -> None:
        listener = self._sessions.get(session)
        if listener and not listener.ended.done():
            listener.ended.set_result(None)

    def _cause(self, t_ns: int, code: int | None) -> Death:
        if self._hung_ns:
            limit_s = self._step_limit_ns / NS_PER_S
            message = f"{self._label} hung: no step finished within {limit_s:g} s, so its process was ended"
            return Death(t_ns=self._hung_ns, code="hang", message=message, stopped_by_us=True)
        if self._failed:
            return Death(t_ns=t_ns, code=self._failed.code, message=f"{self._label}: {self._failed.message}")
        said = self._child.complaint()
        if code is not None and code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            hint = " (out of memory?)" if -code == signal.SIGKILL else ""
            how = f"was killed by {name}{hint}"
        else:
            how = f"ended with exit code {code}"
        return Death(t_ns=t_ns, code="crash", message=f"{self._label} {how}" + (f": {said}" if said else ""))


def describe(hello: Hello, interpreter: Interpreter, limit_s: float = START_LIMIT_S) -> Declaration:
    """Ask a short-lived process what the model declares, as its module may be slow or unsafe to import here.

    Raises ConfigError, PrerequisiteError or ConnectorError.
    """
    # Its complaints go nowhere: a pipe for them would stay open as long as anything that the module started.
    with subprocess.Popen(
        [*interpreter.command, "--describe"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            answer, _ = process.communicate(encode(hello), timeout=limit_s)
        except subprocess.TimeoutExpired as exc:
            raise ConnectorError(f"local:{hello.target} did not start within {limit_s:g} s", kind="timeout") from exc
        finally:
            kill_group(process.pid)
    for message in Framer().feed(answer, 0):
        record = decode_from_worker(message.payload)
        if isinstance(record, Described):
            return record.declaration
        if isinstance(record, Failed):
            kinds: dict[str, type[HarnessError]] = {"config": ConfigError, "prerequisite": PrerequisiteError}
            if record.kind in kinds:
                raise kinds[record.kind](record.message)
            raise ConnectorError(f"local:{hello.target}: {record.message}", kind="peer", code=record.code)
    raise ConnectorError(f"local:{hello.target} died while importing (exit code {process.returncode})", kind="peer")
