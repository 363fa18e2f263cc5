"""In-memory stand-ins for tests of the measuring side: a connection on any clock, a query."""

from __future__ import annotations

import numpy as np

from harness.core.clock import Clock
from harness.core.commands import AppendAudio


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
        self.id, self.text, self.language, self.annotator, self.sha256 = name, "beep", "en", "test", ""
        self.rate_hz = rate_hz
        n, lead = rate_hz * ms // 1000, rate_hz * lead_ms // 1000
        wave = np.sin(np.arange(n) * 2 * np.pi * 440 / rate_hz) * 8000
        wave[:lead] = 0
        wave[n - lead :] = 0
        self.samples = wave.astype(np.int16)
        self.speech_start, self.speech_end = lead, n - lead

    def at_rate(self, rate_hz: int) -> ToneQuery:
        return self if rate_hz == self.rate_hz else ToneQuery(self.id, rate_hz)
