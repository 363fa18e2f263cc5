"""A live session at a sound device: blocks come from the device's thread into the loop, and are watched there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np

from harness.core.audio import NS_PER_MS, Int16, to_db
from harness.live.device import Block, Device
from harness.live.echo import Echo
from harness.live.session import LiveSession
from harness.live.stream_watch import StreamWatch
from harness.run.pacer import Pacer

LOOK_NS = 250 * NS_PER_MS
"""How often it is looked whether the device lives."""


class Duplex:
    """Owns the started device. say: takes a line about it for whoever speaks."""

    def __init__(
        self, device: Device, session: LiveSession, echo: Echo, pacer: Pacer, say: Callable[[str], None]
    ) -> None:
        self._device = device
        self._session = session
        self._echo = echo
        self._pacer = pacer
        self._say = say
        self._loop = asyncio.get_running_loop()
        self._watch = StreamWatch(device.facts.rate_hz, pacer.clock.now_ns())
        self._stopped = False
        self.failure = ""
        """Why the device is gone, "" while it is not."""
        self.user_db = self.agent_db = to_db(0.0)
        """Levels of the last block, RMS in dBFS."""

    async def run(self) -> None:
        """Until the session is over, or the device. Raises PrerequisiteError for a device that does not start."""
        self._session.endings.append(self._tell_ending)
        self._device.start(self._session.speaker.take, self._deliver, self._ended)
        try:
            while not (self._stopped or self._session.over or self.failure):
                await self._pacer.until(self._pacer.clock.now_ns() + LOOK_NS)
                self._fail(self._watch.dead(self._pacer.clock.now_ns()))
        finally:
            self._stopped = True
            self._device.stop()

    def _tell_ending(self) -> None:
        for line in self._watch.ending():
            self._session.note("sound_device", line)

    def _deliver(self, block: Block) -> None:
        """In the device's thread."""
        self._loop.call_soon_threadsafe(self._take, block)

    def _ended(self) -> None:
        """In the device's thread."""
        self._loop.call_soon_threadsafe(self._fail, "the sound device ended its stream: it was unplugged, or it failed")

    def _take(self, block: Block) -> None:
        if self._stopped:
            return
        for line in self._watch.take(
            len(block.samples), block.handed_ns, overflow=block.overflow, underflow=block.underflow
        ):
            self._session.note("sound_device", line)
            self._say(line)
        self.user_db, self.agent_db = _level(block.samples), _level(block.played)
        self._session.hear(self._echo.clean(block.samples, block.played), block.handed_ns, lost=block.overflow)

    def _fail(self, why: str) -> None:
        if not why or self.failure or self._stopped:
            return
        self.failure = why
        self._session.note("sound_device", why)
        self._say(f"{why}; what was recorded is kept")
        self._session.stop()


def _level(samples: Int16) -> float:
    return (
        to_db(float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) / 32768.0) if len(samples) else to_db(0.0)
    )
