"""In-memory stand-ins for tests of the measuring side: a connection on any clock, a query."""

from __future__ import annotations

import asyncio

import numpy as np

from harness.core.clock import Clock, SystemClock
from harness.core.commands import AppendAudio, CreateResponse
from harness.core.errors import ConnectorError
from harness.core.events import AudioReceived, ConnectionPhase, InputCommitted, ResponseDone, ResponseStarted
from harness.core.profile import Profile
from harness.run.ear_channel import Forget
from harness.run.listener import Listener


class FakeConnection:
    """Takes everything at once; remembers (t_ns, command). `pending` makes the next sends look stuck."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.sent: list[tuple[int, object]] = []
        self.pending = 0
        self.waiting: list[object] = []
        self.error = None

    def prepare(self, command: object) -> object:
        return command

    def send(self, prepared: object) -> int:
        if self.error is not None:
            raise self.error
        self.sent.append((self.clock.now_ns(), prepared))
        return self.pending

    def when_drained(self, callback) -> None:
        self.waiting.append(callback)

    def ping(self) -> None:
        pass

    async def close(self) -> None:
        pass

    @property
    def audio(self) -> bytes:
        return b"".join(command.pcm for _, command in self.sent if isinstance(command, AppendAudio))


class ToneQuery:
    """A query of `samples` samples whose speech is [start, end)."""

    def __init__(self, name: str = "tone", rate_hz: int = 24_000, ms: int = 400, lead_ms: int = 100) -> None:
        self.id, self.text, self.language, self.annotator = name, "beep", "en", "test"
        self.sha256 = self.impairment = ""
        self.rate_hz = rate_hz
        n, lead = rate_hz * ms // 1000, rate_hz * lead_ms // 1000
        wave = np.sin(np.arange(n) * 2 * np.pi * 440 / rate_hz) * 8000
        wave[:lead] = 0
        wave[n - lead :] = 0
        self.samples = wave.astype(np.int16)
        self.speech_start, self.speech_end = lead, n - lead

    def at_rate(self, rate_hz: int) -> ToneQuery:
        return self if rate_hz == self.rate_hz else ToneQuery(self.id, rate_hz)


class FakePeer:
    """A peer in memory: answers each `CreateResponse` at once. `failures`: errors of the next `connect` calls."""

    kind, version = "fake", "1"

    def __init__(self, label: str = "fake", failures: list[ConnectorError] | None = None) -> None:
        self.label = label
        self.profile = Profile()
        self.config: dict[str, object] = {}
        self.failures = failures or []
        self.connects = 0
        self.open = 0
        self.most_open = 0

    async def connect(self, configure, sink):
        self.connects += 1
        if self.failures:
            raise self.failures.pop(0)
        clock = SystemClock()
        sink(ConnectionPhase(t_ns=clock.now_ns(), phase="started"))
        sink(ConnectionPhase(t_ns=clock.now_ns(), phase="configured"))
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        return FakeSession(self, sink, clock)


class FakeSession(FakeConnection):
    """One session with a `FakePeer`."""

    def __init__(self, peer: FakePeer, sink, clock: Clock) -> None:
        super().__init__(clock)
        self.peer, self.sink = peer, sink

    def send(self, prepared: object) -> int:
        pending = super().send(prepared)
        if isinstance(prepared, CreateResponse):
            asyncio.get_running_loop().call_soon(self.answer)
        return pending

    def answer(self) -> None:
        tone = ToneQuery(ms=200, lead_ms=0).samples
        now = self.clock.now_ns
        self.sink(InputCommitted(t_ns=now()))
        self.sink(ResponseStarted(t_ns=now(), response="r"))
        self.sink(
            AudioReceived(t_ns=now(), samples=len(tone), rate_hz=24_000, response="r", pcm=tone.astype("<i2").tobytes())
        )
        self.sink(ResponseDone(t_ns=now(), response="r"))

    async def close(self) -> None:
        self.peer.open -= 1


class InlineDesk:
    """An `EarDesk` that hears at once and in this process, for clocks that stand still. `silent`: it hears nothing."""

    def __init__(self, *, silent: bool = False) -> None:
        self.silent = silent
        self.behind = 0
        self.sent: list[object] = []
        self.ears: list[object] = []
        self.listeners: list[Listener] = []

    async def start(self) -> None:
        pass

    def open(self, ear) -> int:
        self.ears.append(ear)
        self.listeners.append(Listener(len(self.listeners)))
        return len(self.ears) - 1

    def send(self, message) -> None:
        self.sent.append(message)
        if self.silent:
            return
        listener = self.listeners[message.number]
        listener.take(len(self.sent), message)
        while listener.busy:
            for told in listener.hear():
                self.ears[message.number].told(told)

    def close(self, number: int) -> None:
        self.sent.append(Forget(number))

    def behind_ns(self) -> int:
        return self.behind
