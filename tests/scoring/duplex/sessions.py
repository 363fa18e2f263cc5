"""Sessions with real speech, written through the real writer: a bundled clip as the agent's voice, scenario events as
the user's side. Times are ms from the start of the user's stream."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from harness.core.audio import Int16
from harness.core.events import ScenarioEvent
from scenarios.clip import Clip
from scenarios.pack import load_pack
from tests.scoring.timing.recordings import RATE, Script


@cache
def _clips() -> tuple[Clip, ...]:
    return load_pack("queries", rate_hz=RATE, limit=3, languages=["en"]).clips


def speech(number: int = 0) -> Int16:
    """The speech of a bundled clip at 24 kHz, from its first to its last sample: no silence around it."""
    clip = _clips()[number]
    return np.array(clip.samples[clip.speech_start : clip.speech_end])


def ms_of(samples: Int16) -> float:
    return len(samples) * 1000 / RATE


class Talk(Script):
    """A `Script` with scenario events and paced agent audio."""

    def event(
        self, event: str, start_ms: float, end_ms: float, *, kind: str = "turn", expect: Any = "respond", **more: Any
    ) -> Talk:
        """`event` was put on the timeline at `start_ms`."""
        first, after = self.sample(start_ms), self.sample(end_ms)
        self.add(
            ScenarioEvent(
                t_ns=self.at(start_ms),
                event=event,
                kind=kind,
                expect=expect,
                clip="a-clip",
                clip_sample=first,
                clip_samples=after - first,
                speech_start=first,
                speech_end=after,
                anchor="session_start",
                anchor_ns=self.at(0),
                planned_delay_ns=round(start_ms * 1_000_000),
                **more,
            )
        )
        return self

    def paced(self, ms: float, sound: Int16, response: str = "r0", packet_ms: float = 20) -> Talk:
        """`sound` in packets that arrive just when the one before has been heard."""
        step = round(packet_ms * RATE / 1000)
        for at in range(0, len(sound), step):
            self.audio(ms + at * 1000 / RATE, sound[at : at + step], response)
        return self

    def until(self, ms: float) -> Talk:
        """Something happens at `ms`, so listening lasts at least until then."""
        self.heard_stop(ms)
        return self
