"""One session with a local model, for measuring: its events kept, audio pushed, an answer or a unit awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import numpy as np

from connectors.local.peer import LocalConnection, LocalPeer
from harness.core.audio import NS_PER_MS, NS_PER_S, int16_to_pcm16
from harness.core.clock import SystemClock
from harness.core.commands import AppendAudio, Commit, Configure, CreateResponse
from harness.core.connector import PeerOptions
from harness.core.errors import ConnectorError
from harness.core.events import AudioReceived, ConnectionClosed, Event, PeerError, ResponseDone, TextReceived

CLOCK = SystemClock()
NOISE_LEVEL = 2000.0
START_S = 120.0


class Answer:
    """Events of one answer. asked_ns: when it was asked for."""

    def __init__(self, asked_ns: int, events: list[Event]) -> None:
        self.asked_ns = asked_ns
        self.texts = [event for event in events if isinstance(event, TextReceived)]
        self.packets = [event for event in events if isinstance(event, AudioReceived)]
        (self.done,) = [event for event in events if isinstance(event, ResponseDone)]

    @property
    def sound_s(self) -> float:
        return sum(packet.samples / packet.rate_hz for packet in self.packets)

    def since_ms(self, t_ns: int) -> float:
        return (t_ns - self.asked_ns) / NS_PER_MS

    def delivery_ms(self) -> list[float]:
        """From the worker's stamp to the arrival, of every token and packet."""
        return [(event.t_ns - event.produced_ns) / NS_PER_MS for event in [*self.texts, *self.packets]]


class Talk:
    def __init__(self, peer: LocalPeer) -> None:
        self.peer = peer
        self.events: list[Event] = []
        self._connection: LocalConnection
        self._changed = asyncio.Event()
        self._answered = 0
        self._ended = False

    def sink(self, event: Event) -> None:
        self.events.append(event)
        self._answered += isinstance(event, ResponseDone)
        self._ended = self._ended or isinstance(event, ConnectionClosed)
        self._changed.set()

    def push(self, samples: Any) -> int:
        """Send a block of user audio now; returns when."""
        t_ns = CLOCK.now_ns()
        self._do(AppendAudio(pcm=int16_to_pcm16(samples)))
        return t_ns

    async def ask(self, *, limit_s: float, stream_ms: int = 0) -> Answer:
        """Commit, and wait for the whole answer; meanwhile noise flows in blocks of `stream_ms` in real time.

        Raises ConnectorError where the session ends before, TimeoutError.
        """
        first, answered = len(self.events), self._answered
        self._do(Commit())
        asked_ns = due_ns = CLOCK.now_ns()
        self._do(CreateResponse())
        block = noise(stream_ms / 1000, self.peer.profile.input_rate_hz)
        async with asyncio.timeout(limit_s):
            while self._answered == answered:
                self._changed.clear()
                if stream_ms and CLOCK.now_ns() >= due_ns:
                    self.push(block)
                    due_ns += stream_ms * NS_PER_MS
                await self._wait(due_ns if stream_ms else None)
        return Answer(asked_ns, self.events[first:])

    async def until(self, due_ns: int) -> None:
        await asyncio.sleep(max(0, due_ns - CLOCK.now_ns()) / NS_PER_S)
        self._check()

    async def open(self) -> None:
        turn = self.peer.profile.turns[0] if self.peer.profile.continuous else "manual"
        self._connection = await self.peer.connect(Configure(turn=turn), self.sink)

    async def close(self) -> None:
        await self._connection.close()

    def _do(self, command: Any) -> None:
        self._check()
        self._connection.send(self._connection.prepare(command))

    async def _wait(self, due_ns: int | None) -> None:
        """Until something arrives, at most until `due_ns`."""
        limit_s = None if due_ns is None else max(0, due_ns - CLOCK.now_ns()) / NS_PER_S
        # Not wait_for, which loses a cancellation (until Python 3.12) that comes with an event.
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._changed.wait()
        self._check()

    def _check(self) -> None:
        if self._ended:
            said = [event.message for event in self.events if isinstance(event, PeerError)]
            raise ConnectorError(said[-1] if said else "the session ended", kind="peer")


@asynccontextmanager
async def talking(target: str, settings: Mapping[str, Any]) -> AsyncIterator[Talk]:
    """A worker with the model loaded and warm, and a session with it."""
    pairs = {key: str(value) for key, value in settings.items()}
    async with LocalPeer(PeerOptions(target=target, settings=pairs, timeout_s=START_S), CLOCK) as peer:
        talk = Talk(peer)
        await talk.open()
        try:
            yield talk
        finally:
            await talk.close()


def noise(seconds: float, rate_hz: int) -> Any:
    random = np.random.default_rng(1)
    return (random.standard_normal(round(seconds * rate_hz)) * NOISE_LEVEL).astype(np.int16)
