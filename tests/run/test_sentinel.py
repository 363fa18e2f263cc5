"""The sentinel: ticks on schedule, can be asked for a stretch, ends with its parent."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.core.errors import HarnessError
from harness.run import sentinel as module
from harness.run.sentinel import COUNT, TICK, HostNoise, Sentinel


def test_it_ticks_every_five_milliseconds_and_answers_inside_and_after():
    async def scenario():
        async with Sentinel() as sentinel:
            await asyncio.sleep(0.7)
            inside = sentinel.result()
        return inside, sentinel.result()

    inside, after = asyncio.run(scenario())
    # Absolute deadlines: a noisy host makes ticks late, never fewer.
    assert 120 <= inside.n <= after.n
    assert 0 <= after.p50_ms <= after.p99_ms <= after.max_ms
    assert after.quiet == (after.p99_ms <= 0.4)
    if sys.platform == "linux":
        assert after.run_delay_ms >= 0


def test_plain_context_manager_and_short_stretch_has_no_verdict():
    with Sentinel() as sentinel:
        since_ns = time.monotonic_ns()
        time.sleep(0.2)
        stretch = sentinel.result(since_ns, time.monotonic_ns())
    assert 20 <= stretch.n < 100
    assert stretch.p99_ms is None
    assert stretch.quiet is None
    assert sentinel.result(until_ns=1) == HostNoise(n=0)


def test_figures_are_those_of_the_ticks():
    sentinel = Sentinel()
    late_ns = [100_000] * 195 + [2_000_000] * 5
    sentinel._kept = b"".join(TICK.pack(i * 5_000_000, late, 1_000_000 + i) for i, late in enumerate(late_ns))
    assert sentinel.result() == HostNoise(n=200, p50_ms=0.1, p99_ms=2.0, max_ms=2.0, run_delay_ms=0.0, quiet=False)
    assert sentinel.result(0, 195 * 5_000_000).quiet is True
    assert COUNT.size == 8


def test_the_ring_keeps_the_newest(monkeypatch):
    monkeypatch.setattr(module, "CAPACITY", 4)
    sentinel = Sentinel()
    sentinel._kept = b"".join(TICK.pack(planned, planned, -1) for planned in (50, 60, 30, 40))
    assert sentinel.result(since_ns=40).n == 3
    assert sentinel.result().run_delay_ms is None


def test_a_child_that_does_not_start_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(HarnessError, match="did not start"), Sentinel():
        pass


def test_nothing_is_left_behind():
    with Sentinel() as sentinel:
        child = sentinel._process
        assert not list(Path("/dev/shm").glob("firstpacket-sentinel-*")) or sentinel._path is None
    assert child.poll() == 0


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX processes")
def test_it_dies_with_its_parent():
    program = (
        "import time; from harness.run.sentinel import Sentinel\n"
        "s = Sentinel().__enter__(); print(s._process.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        parent.kill()
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        try:
            os.kill(child, 0)
            if Path(f"/proc/{child}/stat").read_text().split()[2] == "Z":
                return
        except (ProcessLookupError, FileNotFoundError):
            return
        time.sleep(0.02)
    pytest.fail("the sentinel outlived its parent")
