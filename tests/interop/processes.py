"""Other software as processes: a client that prints one JSON object (`drive`), a server that listens (`serving`)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

PATIENCE_S = 90.0
TAIL_LINES = 25


async def drive(command: Sequence[str | Path], *, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run a client to its end and return the JSON object that is the last line of its output."""
    with tempfile.TemporaryFile() as complaints:
        process = await asyncio.create_subprocess_exec(
            *map(str, command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(PATIENCE_S):
                said, _ = await process.communicate()
        finally:
            _end(process.pid, lambda: process.returncode is None)
            await process.wait()
        lines = said.decode().splitlines()
        assert process.returncode == 0, f"exit {process.returncode}: {_tail(complaints, lines)}"
        assert lines, f"nothing on stdout: {_tail(complaints, lines)}"
        seen: dict[str, Any] = json.loads(lines[-1])
        return seen


@contextlib.contextmanager
def serving(
    command: Sequence[str | Path],
    port: int,
    *,
    env: Mapping[str, str] | None = None,
    log: Path,
    cwd: Path | None = None,
    patience_s: float = PATIENCE_S,
) -> Iterator[int]:
    """Run a server until the block ends; yields its process id once `port` accepts connections.

    What it says goes to the file `log`.
    """
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + patience_s
        while not _accepts(port):
            said = log.read_text("utf-8", "replace").splitlines()[-TAIL_LINES:]
            assert process.poll() is None, "the server ended: " + "\n".join(said)
            assert time.monotonic() < deadline, "the server does not listen: " + "\n".join(said)
            time.sleep(0.1)
        yield process.pid
    finally:
        _end(process.pid, lambda: process.poll() is None)
        process.wait()


def free_port() -> int:
    """A port of the loopback that nobody has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _end(pid: int, alive: Callable[[], bool]) -> None:
    """End the process and what it started: its whole session, which is its own."""
    if alive():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def _tail(complaints: Any, lines: Sequence[str]) -> str:
    complaints.seek(0)
    said = complaints.read().decode("utf-8", "replace").splitlines()
    return "\n".join([*lines[-TAIL_LINES:], *said[-TAIL_LINES:]])
