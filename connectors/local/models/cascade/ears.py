"""What the cascade hears: where a turn begins and ends (Silero), and the turn's own samples. No words yet."""

from __future__ import annotations

from collections import deque

import numpy as np

from connectors.local.model import Output, UserSpeechStarted, UserSpeechStopped
from harness.core.audio import Float32, Int16, int16_to_float, ms_to_samples
from harness.engines.vad import FRAME_SAMPLES, VAD_RATE_HZ, StreamingVad

RATE_HZ = VAD_RATE_HZ
LEAD_MS = 300
"""Kept before the onset that Silero tells: soft consonants lie before it, and it tells a start only after 64 ms."""
TAIL_MS = 200
"""Kept after the last voice: the silence that ended the turn says nothing to a recognizer."""


class Ears:
    """One session's ears. ends_turns: whether silence of `silence_ms` ends a turn; else only `take` does.

    Blocks of any length at 16 kHz; a decision comes with the frame (32 ms) that brought it.
    """

    def __init__(self, *, ends_turns: bool, silence_ms: int) -> None:
        self._ends_turns = ends_turns
        self._vad = StreamingVad(min_silence_ms=silence_ms)
        self._pushed = 0
        self._spoken: list[Int16] = []
        self._lead: deque[Int16] = deque(maxlen=1 + ms_to_samples(LEAD_MS, RATE_HZ) // FRAME_SAMPLES)
        self._speech = False
        self._voiced_to = 0
        """Where the last voice of the turn ends, in samples of the turn."""
        self._turn_began = 0

    def push(self, pcm: Int16) -> list[Output]:
        """Hear int16, shape (n,), at 16 kHz."""
        heard: list[Output] = []
        for start in range(0, len(pcm), FRAME_SAMPLES):
            heard += self._frame(pcm[start : start + FRAME_SAMPLES])
        return heard

    def take(self) -> Float32:
        """The turn up to now: float32 at 16 kHz, shape (n,); empty where nobody spoke. What follows is a new turn."""
        whole = np.concatenate(self._spoken) if self._spoken else np.zeros(0, dtype=np.int16)
        if not self._vad.speaking:
            whole = whole[: self._voiced_to + ms_to_samples(TAIL_MS, RATE_HZ)]
        self._spoken, self._speech = [], False
        self._lead.clear()
        return int16_to_float(whole)

    def _frame(self, pcm: Int16) -> list[Output]:
        frames = self._vad.push(pcm)
        self._pushed += len(pcm)
        if self._speech:
            self._spoken.append(pcm)
        else:
            self._lead.append(pcm)
        heard: list[Output] = []
        for event in (frame.event for frame in frames):
            if event is None:
                continue
            if event.kind == "start":
                if not self._speech:
                    self._begin()
                if self._ends_turns:
                    heard.append(UserSpeechStarted(event.at_sample * 1000 // RATE_HZ))
            else:
                self._voiced_to = max(0, event.at_sample - self._turn_began)
                if self._ends_turns:
                    heard.append(UserSpeechStopped(event.at_sample * 1000 // RATE_HZ))
        return heard

    def _begin(self) -> None:
        self._speech = True
        self._spoken = list(self._lead)
        self._lead.clear()
        self._turn_began = self._pushed - sum(len(part) for part in self._spoken)
