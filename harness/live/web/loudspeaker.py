"""Moves what the agent says to the browser, 20 ms at a time, on the pacer's deadlines."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from harness.core.audio import NS_PER_MS, Int16, ms_to_samples
from harness.core.events import AudioReceived, Event
from harness.live.speaker import Speaker
from harness.live.web.call import Call
from harness.run.pacer import Deadline, Pacer

PACKET_MS = 20
PERIOD_NS = PACKET_MS * NS_PER_MS
CUSHION_MS = 40
"""So much is gathered, or waited for, before sound flows: a peer that paces its packets would else be heard chopped."""
SOUNDLESS = 104
"""Peak below which a packet has no sound: -50 dBFS, 10 dB below what counts as audible."""
LATE_NS = 100 * NS_PER_MS
"""So far behind, missed packets are not sent after: they would only add delay."""

Played = Callable[[Int16, int], None]
"""Called as (samples, when they left)."""


class Loudspeaker:
    """Between `start` and `stop` a packet leaves every 20 ms, of silence where there is nothing to say.

    Listens to the session's events (`take`), so that it knows how long sound waits here: `wait_ms`, of the stretch that
    began last. continuous: the peer's audio never stops, so that after a stall what came late would delay everything
    for good; packets without sound are then left out.
    """

    def __init__(
        self, call: Call, speaker: Speaker, pacer: Pacer, on_played: Played, *, continuous: bool = False
    ) -> None:
        self._call = call
        self._continuous = continuous
        self._speaker = speaker
        self._pacer = pacer
        self._on_played = on_played
        self._n = ms_to_samples(PACKET_MS, speaker.rate_hz)
        self._cushion = ms_to_samples(CUSHION_MS, speaker.rate_hz)
        self._due_ns = 0
        self._deadline: Deadline | None = None
        self._came_ns: int | None = None
        self._flowing = False
        self.wait_ms = 0.0

    def start(self) -> None:
        self._due_ns = self._pacer.clock.now_ns()
        self._tick()

    def stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def take(self, event: Event) -> None:
        """One event of the session."""
        if isinstance(event, AudioReceived) and event.samples > 0 and not self._flowing and self._came_ns is None:
            self._came_ns = event.t_ns

    def _tick(self) -> None:
        now_ns = self._pacer.clock.now_ns()
        samples = self._next() if self._flows(now_ns) else np.zeros(self._n, np.int16)
        self._call.play(samples)
        self._on_played(samples, now_ns)
        self._due_ns += PERIOD_NS
        if now_ns - self._due_ns > LATE_NS:
            self._due_ns = now_ns
        self._deadline = self._pacer.call_at(self._due_ns, self._tick)

    def _next(self) -> Int16:
        samples = self._speaker.take(self._n)[0]
        while self._continuous and self._speaker.queued > self._cushion and _soundless(samples):
            samples = self._speaker.take(self._n)[0]
        return samples

    def _flows(self, now_ns: int) -> bool:
        queued = self._speaker.queued
        if not queued:
            self._flowing = False
            return False
        came_ns = now_ns if self._came_ns is None else self._came_ns
        if not self._flowing and (queued >= self._cushion or now_ns - came_ns >= CUSHION_MS * NS_PER_MS):
            self._flowing, self._came_ns = True, None
            self.wait_ms = (now_ns - came_ns) / NS_PER_MS
        return self._flowing


def _soundless(samples: Int16) -> bool:
    return int(samples.min()) > -SOUNDLESS and int(samples.max()) < SOUNDLESS
