"""The pipe to a process that hears, and back; see `harness.run.ear_desk`. Never waits for the process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from harness.core.audio import NS_PER_MS
from harness.run.channel import Unpacker, pack
from harness.run.ear_channel import FromEar, Progress, Sound, ToEar, from_ear
from harness.run.pacer import Deadline, Pacer
from harness.run.recorder import widen

LIMIT_BYTES = 32 << 20
"""Sound under way above which more is dropped: eleven minutes at 24 kHz."""
WRITE_BYTES = 1 << 16
"""About what is written in one turn of the loop."""
RETRY_NS = 10 * NS_PER_MS
END_TIMEOUT_S = 5.0
"""How long the process may take to end once its input has ended; it is killed then."""


class _UnderWay(NamedTuple):
    since_ns: int
    size: int


class EarLink:
    """One process from `open` to `close`. gone: why it hears no more, "" while it does. pid: of the process."""

    def __init__(
        self, pacer: Pacer, told: Callable[[FromEar], None], lost: Callable[[str], None], limit_bytes: int
    ) -> None:
        self.gone = ""
        self.pid: int | None = None
        self._pacer = pacer
        self._told = told
        self._lost = lost
        self._limit = limit_bytes
        self._pending: deque[bytes] = deque()
        self._under_way: deque[_UnderWay] = deque()
        self._bytes = 0
        self._done = 0
        self._scheduled = False
        self._retry: Deadline | None = None
        self._unpacker = Unpacker()
        self._process: asyncio.subprocess.Process | None = None
        self._fd = self._answers_fd = -1

    async def open(self) -> None:
        """Start the process; it is ready when it has loaded its network, and what is sent before waits for that.

        A system that starts none leaves the link `gone`: a run goes on without cues on the agent, and says so."""
        read_fd, self._fd = os.pipe()
        os.set_blocking(self._fd, False)
        widen(self._fd)
        self._answers_fd, write_fd = os.pipe()
        os.set_blocking(self._answers_fd, False)
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                "harness.run.ear_process",
                stdin=read_fd,
                stdout=write_fd,
                start_new_session=True,
            )
        except OSError as exc:
            self.gone = f"a process that hears could not be started ({exc.strerror or exc})"
            return
        finally:
            os.close(read_fd)
            os.close(write_fd)
        self.pid = self._process.pid
        asyncio.get_running_loop().add_reader(self._answers_fd, self._answered)

    def put(self, message: ToEar) -> bool:
        """Send `message` soon. False: it was dropped (only sound is)."""
        if self.gone:
            return True
        if isinstance(message, Sound) and self._bytes > self._limit:
            return False
        data = pack(message)
        self._pending.append(data)
        self._under_way.append(_UnderWay(self._pacer.clock.now_ns(), len(data)))
        self._bytes += len(data)
        if not self._scheduled:
            self._scheduled = True
            self._pacer.defer(self._write)
        return True

    def behind_ns(self) -> int:
        """How long the oldest message that was not done with has been under way."""
        return self._pacer.clock.now_ns() - self._under_way[0].since_ns if self._under_way else 0

    async def close(self) -> None:
        """End the process and its pipes; what was sent last may stay unheard."""
        if self._retry is not None:
            self._retry.cancel()
        self.gone = self.gone or "the run is over"
        if self._answers_fd >= 0:
            asyncio.get_running_loop().remove_reader(self._answers_fd)
        for fd in (self._fd, self._answers_fd):
            if fd >= 0:
                os.close(fd)
        self._fd = self._answers_fd = -1
        if self._process is None:
            return
        try:
            async with asyncio.timeout(END_TIMEOUT_S):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    def _write(self) -> None:
        """Pass on some of what is pending; come again for the rest."""
        self._scheduled, written = False, 0
        while self._pending and not self.gone:
            if written >= WRITE_BYTES:
                self._scheduled = True
                self._pacer.defer(self._write)
                return
            head = self._pending.popleft()
            try:
                taken = os.write(self._fd, head[:WRITE_BYTES])
            except BlockingIOError:
                taken = 0
            except OSError as exc:
                self._die(f"the process that hears the agent is gone ({exc.strerror})")
                return
            written += taken
            if taken < len(head):
                self._pending.appendleft(head[taken:])
            if not taken:
                self._scheduled = True
                self._retry = self._pacer.call_at(self._pacer.clock.now_ns() + RETRY_NS, self._write)
                return

    def _answered(self) -> None:
        try:
            data = os.read(self._answers_fd, 1 << 16)
        except BlockingIOError:
            return
        if not data:
            asyncio.get_running_loop().remove_reader(self._answers_fd)
            self._die("the process that hears the agent ended")
            return
        for body in self._unpacker.feed(data):
            message = from_ear(body)
            if isinstance(message, Progress):
                self._progress(message.messages)
            else:
                self._told(message)

    def _progress(self, messages: int) -> None:
        while self._done < messages and self._under_way:
            self._bytes -= self._under_way.popleft().size
            self._done += 1

    def _die(self, why: str) -> None:
        if self.gone:
            return
        self.gone = why
        self._pending.clear()
        self._under_way.clear()
        self._bytes = 0
        self._lost(why)
