"""One answer of the peer in a live session, as a listener without a buffer hears it. Pure."""

from __future__ import annotations

import numpy as np

from harness.core.audibility import first_audible_sample
from harness.core.audio import Int16, pcm16_to_int16, samples_to_ns
from harness.core.events import AudioReceived, TextReceived

SEARCHED_S = 5.0
"""So much of an answer is searched for its first audible sound."""


class Answer:
    """begin_ns: what came of it first. audible_ns: when it is first heard, where that is known already."""

    def __init__(self, response: str, begin_ns: int, *, audible_ns: int | None = None) -> None:
        self.response = response
        self.begin_ns = begin_ns
        self.text_ns: int | None = None
        self.packet_ns: int | None = None
        self.audible_ns = audible_ns
        self.start_ns: int | None = audible_ns
        """When playout of it begins."""
        self.end_ns: int | None = audible_ns
        self._flushed_ns: int | None = None
        self._searched: list[tuple[int, Int16]] = []
        self._seconds = 0.0

    @property
    def sounded(self) -> bool:
        return self.start_ns is not None

    @property
    def heard_until_ns(self) -> int:
        """Its end, natural or by a flush; only of one that sounded."""
        assert self.end_ns is not None
        return self.end_ns if self._flushed_ns is None else min(self.end_ns, self._flushed_ns)

    def heard_at(self, t_ns: int) -> bool:
        return self.start_ns is not None and self.start_ns <= t_ns < self.heard_until_ns

    def write(self, event: TextReceived) -> None:
        """Text came."""
        if self.text_ns is None and event.text.strip():
            self.text_ns = event.t_ns

    def play(self, event: AudioReceived, play_end_ns: int) -> int:
        """A packet came; what is before it plays until `play_end_ns`. Returns when this one ends."""
        start_ns = max(event.t_ns, play_end_ns)
        self.packet_ns = self.packet_ns or event.t_ns
        if self.start_ns is None:
            self.start_ns = start_ns
        self.end_ns = start_ns + samples_to_ns(event.samples, event.rate_hz)
        if self.audible_ns is None and self._seconds < SEARCHED_S and event.pcm:
            self._search(pcm16_to_int16(event.pcm), event.rate_hz, start_ns)
        return self.end_ns

    def flush(self, t_ns: int) -> None:
        """The listener's queue was emptied."""
        if self._flushed_ns is None and self.end_ns is not None and self.end_ns > t_ns:
            self._flushed_ns = t_ns

    def _search(self, samples: Int16, rate_hz: int, start_ns: int) -> None:
        self._searched.append((start_ns, samples))
        self._seconds += len(samples) / rate_hz
        found = first_audible_sample(np.concatenate([each for _, each in self._searched]), rate_hz)
        if found is not None:
            for begin_ns, each in self._searched:
                if found < len(each):
                    self.audible_ns = begin_ns + samples_to_ns(found, rate_hz)
                    break
                found -= len(each)
        if self.audible_ns is not None or self._seconds >= SEARCHED_S:
            self._searched = []
