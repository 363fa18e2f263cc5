"""What another thread of the model knew before the yield keeps that thread's instant."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harness.core.events import AudioReceived, TextReceived
from tests.connectors.local.local_driver import CLOCK, local, talking

pytestmark = pytest.mark.loopback


def test_a_stamp_of_the_models_own_is_kept(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))

    async def scenario():
        async with local("earlier_model:Earlier") as peer, talking(peer, "manual") as talk:
            asked_ns = CLOCK.now_ns()
            talk.end_turn()
            await talk.answer()
        return talk, asked_ns

    talk, asked_ns = asyncio.run(scenario())
    known, now = talk.of(TextReceived)
    (packet,) = talk.of(AudioReceived)
    assert known.produced_ns == packet.produced_ns
    # The two words left within a few microseconds, and lie as far apart as the model says.
    assert now.produced_ns - known.produced_ns >= 40_000_000
    assert now.produced_ns > asked_ns
