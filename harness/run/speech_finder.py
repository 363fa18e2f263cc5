"""Finds speech in a stretch of sound as it comes: voice activity, refined by energy. No clock, no I/O.

Silero finds speech (a start is known 64 ms of audio after it, a stop 100 ms, both on a grid of 32 ms); energy says
where it begins and ends, as for a finished recording (`harness.core.speech_edges`). A boundary that would lie in a
pause, or in a packet that is known to be silent, moves to the sound next to it. In the first half second of speech its
loudest window may still rise and with it the bound of what is loud: then the start is told again. Of a long silence
the network hears half a second: it would learn nothing more.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Literal, NamedTuple

import numpy as np

from harness.core.audio import NS_PER_S, Int16, ms_to_samples
from harness.core.speech_edges import HOP_MS, REACH_MS, RUN_ON_MS, WINDOW_MS, loudest_window, speech_edges
from harness.engines.resample import StreamResampler
from harness.engines.vad import FRAME_SAMPLES, VAD_RATE_HZ, StreamingVad, VadEvent

PRIME_FRAMES = 16
"""Silence before speech: Silero starts cold and finds speech that begins with its stream late."""
SETTLED = ms_to_samples(500, VAD_RATE_HZ)
"""So much speech settles where it began."""
KEPT = ms_to_samples(1_500, VAD_RATE_HZ)
"""How far back boundaries are looked for: more than `SETTLED` and the detector's own delay."""
QUIET_S = PRIME_FRAMES * FRAME_SAMPLES / VAD_RATE_HZ
"""So much silence between two stretches of speech is heard; the rest takes no time."""
REACH = ms_to_samples(REACH_MS, VAD_RATE_HZ)
RUN_ON = ms_to_samples(RUN_ON_MS, VAD_RATE_HZ)
WINDOW = ms_to_samples(WINDOW_MS, VAD_RATE_HZ)
HOP = ms_to_samples(HOP_MS, VAD_RATE_HZ)


class Boundary(NamedTuple):
    """Speech begins or ends at `t_ns`; moved: that is where it began after all."""

    kind: Literal["start", "moved", "stop"]
    t_ns: int


class _Piece(NamedTuple):
    """Samples [begin, end) of the network's stream that are more than silence; the first is heard at `t_ns`."""

    begin: int
    end: int
    t_ns: int


class SpeechFinder:
    """One stretch, from silence on. `vad` is reset, and belongs to this finder until the next one takes it."""

    def __init__(self, vad: StreamingVad) -> None:
        vad.reset()
        self._vad = vad
        self._resampler: StreamResampler | None = None
        self._base = 0  # sample of the network's stream at which the resampler's begins
        self._taken = 0  # samples that the resampler has taken
        self._fed = 0
        self._quiet_s = 0.0
        self._recent = np.zeros(0, dtype=np.int16)
        self._pieces: list[_Piece] = []
        self._from = self._until = 0  # the network's start of this speech, and its end of the one before
        self._loudest = 0.0
        self._start_ns: int | None = None

    def prime(self) -> None:
        """A frame of silence before anything is heard; `PRIME_FRAMES` of them make the network ready."""
        self._quiet_s += FRAME_SAMPLES / VAD_RATE_HZ
        self._push(np.zeros(FRAME_SAMPLES, dtype=np.int16))

    def hear(self, samples: Int16, rate_hz: int, start_ns: int | None) -> list[Boundary]:
        """The next samples, int16 of shape (n,). start_ns: when the first is heard; None: a pause, a silent packet."""
        if start_ns is not None:
            self._quiet_s = 0.0
        elif self._quiet_s >= QUIET_S and not self._vad.speaking:
            return []
        else:
            self._quiet_s += len(samples) / rate_hz
        if self._resampler is None or self._resampler.rate_in_hz != rate_hz:
            self._resampler = StreamResampler(rate_hz, VAD_RATE_HZ)
            self._base, self._taken = self._fed, 0
        begin = self._base + self._taken * VAD_RATE_HZ // rate_hz
        self._taken += len(samples)
        if start_ns is not None:
            end = self._base + self._taken * VAD_RATE_HZ // rate_hz
            self._pieces.append(_Piece(begin, end, start_ns))
        return self._push(self._resampler.push(samples))

    def finish(self) -> list[Boundary]:
        """Nothing follows: speech that is still going on ends with what was heard."""
        found = [] if self._resampler is None else self._push(self._resampler.finish())
        if self._vad.speaking and self._start_ns is not None:
            silence = self._vad.silence_from
            found.append(self._stop(self._fed if silence is None else silence))
        return found

    def _push(self, samples: Int16) -> list[Boundary]:
        self._fed += len(samples)
        self._recent = np.concatenate([self._recent, samples])
        begin = self._fed - len(self._recent)
        whole = max(self._fed - KEPT - begin, 0) // HOP * HOP  # so that windows stay on one grid
        self._recent = self._recent[whole:]
        while self._pieces and self._pieces[0].end < self._fed - 2 * KEPT:
            self._pieces.pop(0)
        found: list[Boundary] = []
        for frame in self._vad.push(samples):
            if frame.event is not None:
                found += self._decided(frame.event)
        if self._vad.speaking:
            self._loudest = max(self._loudest, loudest_window(self._recent[-len(samples) - WINDOW :], VAD_RATE_HZ))
            if self._fed - self._from < SETTLED:
                found += self._start()
        return found

    def _decided(self, event: VadEvent) -> list[Boundary]:
        if event.kind == "start":
            self._from, self._start_ns = event.at_sample, None
            self._loudest = loudest_window(self._recent[event.at_sample - self._fed :], VAD_RATE_HZ)
            return self._start()
        self._until = event.at_sample
        return [] if self._start_ns is None else [self._stop(event.at_sample)]

    def _start(self) -> list[Boundary]:
        """Where the speech that is going on began, if that is news."""
        begin = self._fed - len(self._recent)
        bound = max((self._until + self._from) // 2, begin)
        low, back = max(self._from - REACH, bound) - begin, max(self._from - RUN_ON, bound) - begin
        high = self._fed - begin
        edges = speech_edges(self._recent, VAD_RATE_HZ, low, high, loudest=self._loudest, back=back)
        if edges is None:
            return []
        at = bisect_right(self._pieces, begin + edges.start, key=lambda each: each.end)
        if at == len(self._pieces):
            return []
        t_ns = _instant(self._pieces[at], begin + edges.start)
        if t_ns == self._start_ns:
            return []
        kind: Literal["start", "moved"] = "start" if self._start_ns is None else "moved"
        self._start_ns = t_ns
        return [Boundary(kind, t_ns)]

    def _stop(self, silence_from: int) -> Boundary:
        """Where the speech ended whose silence began, by the network, at `silence_from`."""
        begin = self._fed - len(self._recent)
        high = min(silence_from + REACH, self._fed)
        edges = speech_edges(self._recent, VAD_RATE_HZ, self._from - begin, high - begin, loudest=self._loudest)
        end = silence_from if edges is None else begin + edges.end
        at = max(bisect_left(self._pieces, end, key=lambda each: each.begin) - 1, 0)
        return Boundary("stop", max(_instant(self._pieces[at], end), self._start_ns or 0))


def _instant(piece: _Piece, sample: int) -> int:
    """When `sample` is heard, moved into the piece where it lies outside."""
    return piece.t_ns + (min(max(sample, piece.begin), piece.end) - piece.begin) * NS_PER_S // VAD_RATE_HZ
