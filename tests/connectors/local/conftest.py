"""Loops to test on."""

from __future__ import annotations

import asyncio

import pytest

try:
    import uvloop
except ImportError:  # pragma: no cover  not on Windows
    uvloop = None


@pytest.fixture(params=["asyncio", "uvloop"])
def both_loops(request):
    """Runs a coroutine on either loop."""
    if request.param == "uvloop" and uvloop is None:
        pytest.skip("no uvloop on this system")
    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop

    def run(main):
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(main)

    return run
