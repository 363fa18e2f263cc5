"""A small driver for the local peer: plays PCM in real time, keeps the events, waits for one."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import numpy as np

from connectors.local.peer import LocalPeer
from harness.core.audio import int16_to_pcm16, samples_to_ns
from harness.core.clock import SystemClock
from harness.core.commands import AppendAudio, Commit, Configure, CreateResponse
from harness.core.connector import PeerOptions
from harness.core.events import ConnectionClosed, ResponseDone

RATE_HZ = 24_000
CLOCK = SystemClock()


def voice(ms, rate_hz=RATE_HZ, seed=1):
    """Noise at -18 dBFS: as loud as speech, and each part of it can be told from the others."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(ms * rate_hz // 1000) * 4000).astype(np.int16)


def silence(ms, rate_hz=RATE_HZ):
    return np.zeros(ms * rate_hz // 1000, dtype=np.int16)


def local(target="", clock=CLOCK, model=None, timeout_s=30.0, **settings):
    pairs = {key: str(value) for key, value in settings.items()}
    return LocalPeer(PeerOptions(target=target, model=model, settings=pairs, timeout_s=timeout_s), clock)


class Talk:
    """One session: its connection, its events, and ways to speak and wait."""

    def __init__(self, peer):
        self.peer = peer
        self.events = []
        self.connection = None
        self._news = asyncio.Event()

    def sink(self, event):
        self.events.append(event)
        self._news.set()

    async def play(self, samples, chunk_ms=20, speed=1.0):
        """Each chunk leaves when its last sample exists, as a microphone's would."""
        rate_hz = self.peer.profile.input_rate_hz
        chunk = chunk_ms * rate_hz // 1000
        begin_ns = CLOCK.now_ns()
        for start in range(0, len(samples), chunk):
            part = samples[start : start + chunk]
            due_ns = begin_ns + samples_to_ns(start + len(part), rate_hz) / speed
            await asyncio.sleep(max(0, due_ns - CLOCK.now_ns()) / 1e9)
            self.do(AppendAudio(pcm=int16_to_pcm16(part)))

    def do(self, command):
        return self.connection.send(self.connection.prepare(command))

    def end_turn(self):
        self.do(Commit())
        self.do(CreateResponse())

    async def until(self, kind, count=1, limit_s=10.0):
        """The `count`-th event of `kind`; fails when the session ends without it."""
        async with asyncio.timeout(limit_s):
            while len(self.of(kind)) < count:
                if kind is not ConnectionClosed and self.of(ConnectionClosed):
                    raise AssertionError(f"closed before {kind.__name__}: {self.events}")
                self._news.clear()
                await self._news.wait()
        return self.of(kind)[count - 1]

    async def answer(self, count=1):
        return await self.until(ResponseDone, count)

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]

    def names(self):
        """Event types in order, runs of the same one folded."""
        tags = [type(event).__name__ for event in self.events]
        return [tag for before, tag in zip([None, *tags], tags, strict=False) if tag != before]


@asynccontextmanager
async def talking(peer, turn="vad", **configure):
    talk = Talk(peer)
    talk.connection = await peer.connect(Configure(turn=turn, **configure), talk.sink)
    try:
        yield talk
    finally:
        await talk.connection.close()
