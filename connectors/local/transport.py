"""Frames to and from a child process over a socket pair, stamped in the loop's own read hook. Parses no protocol."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from connectors.local.framing import Framer, FramingError, Message
from connectors.local.group import kill_group
from harness.core.clock import Clock
from harness.core.errors import ConnectorError, PrerequisiteError

BUFFER_BYTES = 1 << 20
"""Asked of the kernel for each direction: a second of audio and more, so that a busy loop never stops the model."""
REAP_S = 0.005
REAP_TRIES = 200
COMPLAINT_BYTES = 4096
PRINTED_LIMIT = 16 << 20
"""Bytes of the child's standard error that are kept, roughly; then they are forgotten and begin anew."""
LOOK_S = 0.25

OnMessage = Callable[[Message], None]
OnGarbled = Callable[[str], None]
"""Called with the reason where the bytes are no frames; nothing more is read."""
OnExit = Callable[[int, int | None], None]
"""Called once as (t_ns, exit code): when the socket was closed, and how the process ended (None: it had to be killed;
below 0: by that signal)."""


class Child(asyncio.Protocol):
    """A running child process and the socket to it. Made by `start`, ended by `stop` or by itself."""

    def __init__(self, clock: Clock, on_message: OnMessage, on_garbled: OnGarbled, on_exit: OnExit) -> None:
        self._clock = clock
        self._on_message = on_message
        self._on_garbled = on_garbled
        self._on_exit = on_exit
        self._framer = Framer()
        self._drained: list[Callable[[int], None]] = []
        self._transport: Any = None
        self._process: subprocess.Popen[bytes]
        self._complaints: Any
        self._looking: asyncio.TimerHandle | None = None
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @classmethod
    async def start(
        cls, command: Sequence[str], clock: Clock, on_message: OnMessage, on_garbled: OnGarbled, on_exit: OnExit
    ) -> Child:
        """Start `command` with the number of its socket appended. Raises PrerequisiteError or ConnectorError."""
        if os.name != "posix":
            raise PrerequisiteError("local models need Linux or macOS: their process inherits a socket")
        child = cls(clock, on_message, on_garbled, on_exit)
        ours, theirs = socket.socketpair()
        try:
            for end in (ours, theirs):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
            ours.setblocking(False)
            child._complaints = _complaints_file()
            child._process = _spawn([*command, str(theirs.fileno())], theirs.fileno(), child._complaints)
        except OSError as exc:
            ours.close()
            raise ConnectorError(f"the worker process could not be started: {exc}", kind="connect") from exc
        finally:
            theirs.close()
        try:
            await asyncio.get_running_loop().create_connection(lambda: child, sock=ours)
        except BaseException:
            child.kill()
            child._process.wait()
            ours.close()
            raise
        return child

    @property
    def alive(self) -> bool:
        return not self._transport.is_closing()

    def write(self, frame: bytes) -> int:
        """Write without waiting; return the bytes that are still here. Raises ConnectorError when the child is gone."""
        if self._transport.is_closing():
            raise ConnectorError("the worker process is gone", kind="peer", retryable=True)
        self._transport.write(frame)
        return int(self._transport.get_write_buffer_size())

    def when_drained(self, callback: Callable[[int], None]) -> None:
        """Call `callback(t_ns)` once every byte has left (at once if it has)."""
        if self._transport.get_write_buffer_size() == 0:
            callback(self._clock.now_ns())
        else:
            self._drained.append(callback)

    def complaint(self) -> str:
        """The last line that the child wrote to standard error, at most 300 characters."""
        size = self._complaints.seek(0, os.SEEK_END)
        self._complaints.seek(max(0, size - COMPLAINT_BYTES))
        lines = self._complaints.read().decode("utf-8", "replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return said[-1][:300] if said else ""

    def kill(self) -> None:
        """End the child, and all that it started, now; `on_exit` follows."""
        kill_group(self._process.pid)

    async def stop(self, limit_s: float) -> None:
        """Hang up, wait for the child's end, kill it after `limit_s`; release everything. May be called again."""
        self._transport.close()
        try:
            async with asyncio.timeout(limit_s):
                await asyncio.shield(self._gone)
        except TimeoutError:
            self.kill()
            await self._gone
        finally:
            if not self._gone.done():  # cancelled: no time left to be polite
                self.kill()

    # --- called by the loop ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        # Zero: uvloop then writes at once instead of at the end of its turn, and resume_writing means "empty".
        self._transport.set_write_buffer_limits(high=0)
        self._look_after()

    def data_received(self, data: bytes) -> None:
        t_ns = self._clock.now_ns()
        try:
            for message in self._framer.feed(data, t_ns):
                self._on_message(message)
        except FramingError as exc:
            self._on_garbled(str(exc))
            self._transport.abort()

    def resume_writing(self) -> None:
        waiting, self._drained = self._drained, []
        t_ns = self._clock.now_ns()
        for callback in waiting:
            callback(t_ns)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._looking:
            self._looking.cancel()
        self._reap(self._clock.now_ns(), REAP_TRIES)

    def _reap(self, t_ns: int, tries: int) -> None:
        """The socket closes a moment before the process has ended: ask again a few times."""
        code = self._process.poll()
        if code is None and tries:
            asyncio.get_running_loop().call_later(REAP_S, self._reap, t_ns, tries - 1)
            return
        # What the child started is still in its group.
        self.kill()
        if code is None:
            self._process.wait()
        self._on_exit(t_ns, code)
        self._complaints.close()
        if not self._gone.done():
            self._gone.set_result(None)

    def _look_after(self) -> None:
        """Now and then: keep what the child prints within bounds, and notice its end where a fork of it still holds
        the socket open."""
        if os.fstat(self._complaints.fileno()).st_size > PRINTED_LIMIT:
            self._complaints.truncate(0)
        if self._process.poll() is not None:
            self.kill()
        self._looking = asyncio.get_running_loop().call_later(LOOK_S, self._look_after)


def _complaints_file() -> Any:
    """Where the child's standard error goes: opened to append, as it may be emptied under the child's hands."""
    import fcntl  # not on Windows, which has no local models

    file = tempfile.TemporaryFile()  # noqa: SIM115  lives as long as the child
    fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_APPEND)
    return file


def _spawn(command: list[str], fd: int, complaints: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=complaints,
        pass_fds=[fd],
        start_new_session=True,
    )
