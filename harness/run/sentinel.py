"""The host-noise sentinel: a process that does nothing but wake every 5 ms and note how late it was.

It measures the machine, not us: a run is judged against a sentinel that ran beside it. Absolute deadlines on the
session's clock, so a long stall is seen by every tick that it covers. The ticks stand in shared memory, so reading
them costs the measuring loop nothing. The child is this module run as a program.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import mmap
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from harness.core.clock import SystemClock
from harness.core.errors import HarnessError
from harness.run.quiet import Priority, RunDelay, priority

PERIOD_NS = 5_000_000
QUIET_P99_MS = 0.4
"""At or below this 99th percentile the host counts as quiet (measured floor of a C loop at real-time priority:
0.15-0.34 ms)."""
P99_NEEDS = 100
"""Ticks below which a 99th percentile means nothing (half a second)."""
CAPACITY = 1 << 18
"""Ticks kept, the newest: 22 minutes; 6 MiB of shared memory when full."""
TICK = struct.Struct("<qqq")
"""Planned instant, lateness and the child's cumulative run-queue delay (-1: unknown), ns."""
COUNT = struct.Struct("<q")
POLL_S = 0.005
START_POLLS = 2_000
STOP_POLLS = 400


class HostNoise(msgspec.Struct, frozen=True, kw_only=True):
    """How late the sentinel woke. n: ticks; below 100 there is no p99 and no verdict. run_delay_ms: the time that it
    waited for a core, None where the system does not tell."""

    n: int
    p50_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None
    run_delay_ms: float | None = None
    quiet: bool | None = None


class Sentinel:
    """Runs the child between enter and exit, as an async or a plain context manager; `result` works in it and after.

    priority: what the measuring loop itself asked for, so that both stand in the same queue.
    Raises HarnessError when the child does not come up.
    """

    def __init__(self, *, priority: Priority = "normal") -> None:
        self._priority = priority
        self._process: subprocess.Popen[bytes] | None = None
        self._ring: mmap.mmap | None = None
        self._path: Path | None = None
        self._kept = b""

    async def __aenter__(self) -> Self:
        try:
            self._spawn()
            for _ in range(START_POLLS):
                if self._ticking():
                    return self
                await asyncio.sleep(POLL_S)
            raise HarnessError("the host-noise sentinel does not tick")
        except BaseException:
            self._finish(0)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._say_stop()
        try:
            for _ in range(STOP_POLLS):
                if self._process is None or self._process.poll() is not None:
                    break
                await asyncio.sleep(POLL_S)
        finally:
            self._finish(0)

    def __enter__(self) -> Self:
        try:
            self._spawn()
            for _ in range(START_POLLS):
                if self._ticking():
                    return self
                time.sleep(POLL_S)
            raise HarnessError("the host-noise sentinel does not tick")
        except BaseException:
            self._finish(0)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._say_stop()
        self._finish(POLL_S * STOP_POLLS)

    def result(self, since_ns: int = 0, until_ns: int | None = None) -> HostNoise:
        """The ticks planned in [since_ns, until_ns) of the system clock; all that are kept by default."""
        # Imported here: the child is this module too, and must start fast and stay small.
        import numpy as np

        data = self._snapshot()
        ticks = np.frombuffer(data, dtype="<i8").reshape(-1, 3)
        ticks = ticks[np.argsort(ticks[:, 0], kind="stable")]
        until_ns = until_ns if until_ns is not None else np.iinfo(np.int64).max
        ticks = ticks[(ticks[:, 0] >= since_ns) & (ticks[:, 0] < until_ns)]
        n = len(ticks)
        if n == 0:
            return HostNoise(n=0)
        late_ms = ticks[:, 1] / 1e6
        p99_ms = round(float(np.percentile(late_ms, 99)), 3) if n >= P99_NEEDS else None
        known = ticks[0, 2] >= 0
        return HostNoise(
            n=n,
            p50_ms=round(float(np.percentile(late_ms, 50)), 3),
            p99_ms=p99_ms,
            max_ms=round(float(late_ms.max()), 3),
            run_delay_ms=round(float(ticks[-1, 2] - ticks[0, 2]) / 1e6, 3) if known else None,
            quiet=p99_ms <= QUIET_P99_MS if p99_ms is not None else None,
        )

    def _spawn(self) -> None:
        memory = Path("/dev/shm")
        handle, name = tempfile.mkstemp(prefix="firstpacket-sentinel-", dir=memory if memory.is_dir() else None)
        self._path = Path(name)
        with os.fdopen(handle, "r+b") as file:
            file.truncate(COUNT.size + CAPACITY * TICK.size)
            self._ring = mmap.mmap(file.fileno(), 0)
        command = [sys.executable, "-P", "-m", "harness.run.sentinel", name, self._priority]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)

    def _ticking(self) -> bool:
        """Whether the child has ticked. Its file loses its name then, so that nothing is left behind by a crash."""
        if self._ring and COUNT.unpack_from(self._ring)[0]:
            self._unlink()
            return True
        if self._process and self._process.poll() is not None:
            raise HarnessError(f"the host-noise sentinel did not start (exit code {self._process.returncode})")
        return False

    def _snapshot(self) -> bytes:
        if self._ring is None:
            return self._kept
        count = min(COUNT.unpack_from(self._ring)[0], CAPACITY)
        return bytes(self._ring[COUNT.size : COUNT.size + count * TICK.size])

    def _say_stop(self) -> None:
        if self._process and self._process.stdin:
            with suppress(OSError):
                self._process.stdin.close()

    def _finish(self, limit_s: float) -> None:
        """Let the child end within `limit_s`, or end it; keep its ticks; release everything."""
        if self._process:
            self._say_stop()
            try:
                self._process.wait(limit_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._ring:
            self._kept = self._snapshot()
            self._ring.close()
            self._ring = None
        self._unlink()

    def _unlink(self) -> None:
        # Windows keeps a mapped file's name until the map is closed; `_finish` tries again.
        if self._path:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
                self._path = None


def sleeper() -> Callable[[int], object]:
    """A function that sleeps until an instant of CLOCK_MONOTONIC in ns; the best that the system has."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        nanosleep, prctl = libc.clock_nanosleep, libc.prctl
    except (AttributeError, OSError, TypeError):
        return lambda until_ns: time.sleep(max(0, until_ns - SystemClock.now_ns()) / 1e9)
    # PR_SET_TIMERSLACK, 1 ns: without it the kernel may add 50 us, which it does not do to a timerfd.
    prctl(29, 1, 0, 0, 0)

    class Timespec(ctypes.Structure):
        _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]

    def sleep_until(until_ns: int) -> int:
        # CLOCK_MONOTONIC, TIMER_ABSTIME.
        return int(nanosleep(1, 1, ctypes.byref(Timespec(*divmod(until_ns, 1_000_000_000))), None))

    return sleep_until


def watch(ring: mmap.mmap) -> None:
    """Tick into `ring` until the process ends."""
    sleep_until, now_ns, delay = sleeper(), SystemClock.now_ns, RunDelay()
    count, planned_ns = 0, now_ns() + PERIOD_NS
    while True:
        sleep_until(planned_ns)
        late_ns = now_ns() - planned_ns
        if late_ns < 0:
            continue
        run_delay_ns = delay.read_ns()
        offset = COUNT.size + count % CAPACITY * TICK.size
        TICK.pack_into(ring, offset, planned_ns, late_ns, -1 if run_delay_ns is None else run_delay_ns)
        count += 1
        COUNT.pack_into(ring, 0, count)
        planned_ns += PERIOD_NS


def _end_with_parent() -> None:
    """The parent holds the other end of stdin: when it closes it, or dies, so do we."""
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    """The child: argv is the ring's file and the wished priority."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    with open(sys.argv[1], "r+b") as file:
        ring = mmap.mmap(file.fileno(), 0)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    asked: Priority = "realtime" if sys.argv[2] == "realtime" else "nice" if sys.argv[2] == "nice" else "normal"
    with priority(asked):
        watch(ring)


if __name__ == "__main__":
    main()
