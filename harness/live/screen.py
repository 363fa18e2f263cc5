"""The measuring side of what is shown: snapshots go to the process that draws, without ever waiting for it; without a
terminal, each turn is one line."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from harness.live.view import Snapshot
from harness.run.channel import pack

MOST_COMPLAINTS = 20
END_S = 2.0
"""How long the last picture may take."""


class Screen(Protocol):
    """Shows snapshots; an async context manager."""

    def show(self, shot: Snapshot) -> None:
        """Returns at once."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class DrawnScreen:
    """A terminal, drawn by a process of its own. say: takes what libraries complained of meanwhile, when it is over."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._fd = -1
        self._process: asyncio.subprocess.Process | None = None
        self._rest = b""
        self._complaints: Complaints | None = None

    async def __aenter__(self) -> Self:
        read_fd, self._fd = os.pipe()
        os.set_blocking(self._fd, False)
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "harness.live.screen_process", stdin=read_fd, start_new_session=True
            )
        finally:
            os.close(read_fd)
        self._complaints = Complaints()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._process is not None:
            try:
                async with asyncio.timeout(END_S):
                    await self._process.wait()
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
        if self._complaints is not None:
            for line in self._complaints.end():
                self._say(line)

    def show(self, shot: Snapshot) -> None:
        """A snapshot that finds the one before it still on its way is left out."""
        if self._fd < 0:
            return
        data = self._rest or pack(shot)
        try:
            written = os.write(self._fd, data)
        except BlockingIOError:
            written = 0
        except OSError:  # nobody draws any more: the session goes on
            os.close(self._fd)
            self._fd = -1
            return
        self._rest = data[written:]


class Complaints:
    """Keeps standard error off the picture: sound libraries write there whenever they like."""

    def __init__(self) -> None:
        sys.stderr.flush()
        self._before = os.dup(2)
        self._kept = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`
        os.dup2(self._kept.fileno(), 2)

    def end(self) -> list[str]:
        """Give standard error back; the last different lines that were written."""
        sys.stderr.flush()
        os.dup2(self._before, 2)
        os.close(self._before)
        self._kept.seek(0)
        lines = self._kept.read().decode("utf-8", "replace").splitlines()
        self._kept.close()
        return list(dict.fromkeys(line for line in lines if line.strip()))[-MOST_COMPLAINTS:]


class PlainScreen:
    """Lines: what changes of the state, each turn once it is answered, and notices."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._state = ""
        self._told: set[int] = set()
        self._notices: tuple[str, ...] = ()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, shot: Snapshot) -> None:
        if shot.state != self._state:
            self._say(f"{shot.peer}: {shot.state}")
            self._state = shot.state
        for turn in shot.turns:
            if turn.first_audible_ms is not None and turn.number not in self._told:
                self._told = {number for number in self._told if number > turn.number - 100} | {turn.number}
                text = "–" if turn.ttft_ms is None else f"{turn.ttft_ms:.0f} ms"
                stop = "" if turn.barge_in_stop_ms is None else f", agent stopped after {turn.barge_in_stop_ms:.0f} ms"
                self._say(f"turn {turn.number}: first text {text}, first audible {turn.first_audible_ms:.0f} ms{stop}")
        for notice in shot.notices:
            if notice not in self._notices:
                self._say(notice)
        self._notices = shot.notices
