"""The measuring side of recording: events go into a bounded buffer, and through a pipe to the writer process.

Appending costs one encoding and no system call; the buffer is passed on every few milliseconds without waiting. When
the writer cannot keep up, events are dropped and counted per session, never waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections import Counter, deque
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.core.errors import PrerequisiteError
from harness.core.events import Event, Note
from harness.core.session.header import Header
from harness.run.channel import (
    EVERY_SESSION,
    AppendEvent,
    Closed,
    CloseSession,
    OpenSession,
    ToWriter,
    Unpacker,
    from_writer,
    pack,
)
from harness.run.pacer import Deadline, Pacer

LIMIT_BYTES = 64 << 20
"""Undelivered bytes above which events are dropped: minutes of audio for hundreds of sessions."""
FLUSH_NS = 10_000_000
CLOSE_TIMEOUT_S = 60.0
"""How long the writer may take to finish one session: a disk that hangs longer than this is given up."""
PIPE_BYTES = 1 << 20
F_SETPIPE_SZ = 1031


class RecordingError(PrerequisiteError):
    """A session could not be put on disk (disk full, no permission, writer process gone)."""


class Recorder:
    """Owns the writer process. Use as an async context manager; leaving it waits until everything is on disk."""

    def __init__(self, pacer: Pacer, limit_bytes: int = LIMIT_BYTES) -> None:
        self._pacer = pacer
        self._limit = limit_bytes
        self._numbers = count()
        self._pending: deque[bytes] = deque()
        self._pending_bytes = 0
        self._open: set[int] = set()
        self._dropped: Counter[int] = Counter()
        self._closing: dict[int, asyncio.Future[Closed]] = {}
        self._flushing: Deadline | None = None
        self._unpacker = Unpacker()
        self._process: asyncio.subprocess.Process | None = None
        self._fd = -1
        self._gone = ""

    async def __aenter__(self) -> Self:
        read_fd, self._fd = os.pipe()
        os.set_blocking(self._fd, False)
        widen(self._fd)
        answers_fd, write_fd = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                "harness.run.writer_process",
                stdin=read_fd,
                stdout=write_fd,
                start_new_session=True,
            )
        finally:
            os.close(read_fd)
            os.close(write_fd)
        os.set_blocking(answers_fd, False)
        self._answers_fd = answers_fd
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(answers_fd, self._answered)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._drain()
        finally:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1
            if self._process is not None:
                await self._process.wait()
            self._loop.remove_reader(self._answers_fd)
            os.close(self._answers_fd)

    def open(self, sessions: Path, header: Header) -> int:
        """Begin a session below `sessions`; return the number that its events are recorded under."""
        number = next(self._numbers)
        self._open.add(number)
        self._put(OpenSession(number, str(sessions), header))
        return number

    def append(self, number: int, event: Event) -> None:
        """Record one event; never waits. Full buffer: dropped and counted."""
        if self._gone or self._pending_bytes > self._limit:
            self._dropped.update(self._open if number == EVERY_SESSION else (number,))
            return
        try:
            self._put(AppendEvent(number, event))  # type: ignore[arg-type]
        except (OverflowError, ValueError, TypeError) as exc:  # a peer's number beyond 64 bits, say
            kind = str(event.__struct_config__.tag)
            self._put(AppendEvent(number, Note(t_ns=event.t_ns, code="unrecordable", message=f"{kind}: {exc}")))

    def broadcast(self, event: Event) -> None:
        """Record one event in every open session."""
        self.append(EVERY_SESSION, event)

    async def close(self, number: int, *, keep: bool = True) -> int:
        """Finish a session and wait until it is on disk; return its number of events. Raises RecordingError."""
        if self._gone:
            raise RecordingError(f"a session could not be recorded: {self._gone}")
        answer: asyncio.Future[Closed] = self._loop.create_future()
        self._closing[number] = answer
        dropped = self._dropped.pop(number, 0)
        self._open.discard(number)
        self._put(CloseSession(number, dropped, keep))
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                closed = await answer
        except TimeoutError:
            self._lost(f"the writer process did not finish a session within {CLOSE_TIMEOUT_S:g} s")
            if self._process is not None:
                self._process.kill()
            raise RecordingError(f"a session could not be recorded: {self._gone}") from None
        if closed.error:
            raise RecordingError(f"a session could not be recorded: {closed.error}")
        return closed.events

    def _put(self, message: ToWriter) -> None:
        if self._gone:
            return
        data = pack(message)
        self._pending.append(data)
        self._pending_bytes += len(data)
        if self._flushing is None:
            self._flushing = self._pacer.call_at(self._pacer.clock.now_ns() + FLUSH_NS, self._flush)

    def _flush(self) -> None:
        self._flushing = None
        while self._pending and not self._gone:
            head = self._take()
            try:
                written = os.write(self._fd, head)
            except BlockingIOError:
                written = 0
            except OSError as exc:
                self._lost(f"the writer process is gone ({exc.strerror})")
                return
            self._pending_bytes -= written
            if written < len(head):
                self._pending.appendleft(head[written:])
                self._flushing = self._pacer.call_at(self._pacer.clock.now_ns() + FLUSH_NS, self._flush)
                return

    def _take(self) -> bytes:
        """Up to about one pipe's worth from the head of the buffer."""
        parts = [self._pending.popleft()]
        size = len(parts[0])
        while self._pending and size + len(self._pending[0]) <= PIPE_BYTES:
            parts.append(self._pending.popleft())
            size += len(parts[-1])
        return b"".join(parts)

    def _answered(self) -> None:
        try:
            data = os.read(self._answers_fd, 1 << 16)
        except BlockingIOError:
            return
        if not data:
            self._loop.remove_reader(self._answers_fd)
            self._lost("the writer process ended")
            return
        for body in self._unpacker.feed(data):
            closed = from_writer(body)
            waiting = self._closing.pop(closed.number, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(closed)

    def _lost(self, why: str) -> None:
        self._gone = why
        self._pending.clear()
        self._pending_bytes = 0
        for number, waiting in self._closing.items():
            if not waiting.done():
                waiting.set_result(Closed(number, error=why))
        self._closing.clear()

    async def _drain(self) -> None:
        while self._pending and not self._gone:
            await self._pacer.until(self._pacer.clock.now_ns() + FLUSH_NS)
        if self._closing:
            await asyncio.wait(list(self._closing.values()))


def widen(fd: int) -> None:
    """Ask for a pipe of 1 MiB where the system can, so that the writer's hiccups do not fill it."""
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES)
