"""A model that knew its words and its sound before it yields them; imported by the worker only."""

from __future__ import annotations

import numpy as np

from connectors.local.model import Audio, LocalModel, Text
from harness.core.clock import SystemClock

EARLIER_NS = 40_000_000


class Earlier(LocalModel):
    def push_audio(self, pcm):
        return None

    def end_turn(self):
        known_ns = SystemClock.now_ns() - EARLIER_NS
        yield Text("known", known_ns)
        yield Audio(np.ones(480, dtype=np.int16), known_ns)
        yield Text("now")
