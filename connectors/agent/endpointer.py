"""Where the user's turn begins and ends, as the agent hears it. Positions are samples since the session began."""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

import numpy as np
import soxr

from harness.core.audio import map_sample, pcm16_to_int16
from harness.engines.vad import VAD_RATE_HZ, StreamingVad

PAUSE_MS = 96
"""Endpointing time of `pause_answer`: three frames, shorter than pauses between phrases (150 ms and more)."""


class Heard(NamedTuple):
    """Speech began (`start`) or the turn is over (`stop`); sample: where speech began, or fell silent."""

    kind: Literal["start", "stop"]
    sample: int


class Endpointer(Protocol):
    """voiced_to: where the last voice heard of the speech under way ends (grid: 32 ms); None: nobody speaks."""

    @property
    def voiced_to(self) -> int | None: ...

    def push(self, pcm: bytes) -> list[Heard]:
        """Take the next PCM16 samples of the session."""
        ...

    def forget(self) -> None:
        """The turn was taken by other means: what follows is a new one."""
        ...


class SileroEndpointer:
    """Silero on the stream, resampled to 16 kHz. A turn ends when speech is followed by `endpoint_ms` of silence.

    first_sample: position in the session of the first sample pushed.
    """

    def __init__(self, rate_hz: int, endpoint_ms: int, first_sample: int = 0) -> None:
        self._rate_hz = rate_hz
        self._vad = StreamingVad(min_silence_ms=endpoint_ms)
        # Cubic interpolation holds back a few samples only; the better recipes hold back 20-30 ms of every turn.
        self._resampler = soxr.ResampleStream(rate_hz, VAD_RATE_HZ, 1, dtype="int16", quality="QQ")
        self._base = self._pushed = first_sample
        self._frame_end = 0

    @property
    def voiced_to(self) -> int | None:
        if not self._vad.speaking:
            return None
        silence = self._vad.silence_from
        return self._position(self._frame_end if silence is None else silence)

    def push(self, pcm: bytes) -> list[Heard]:
        samples = pcm16_to_int16(pcm)
        self._pushed += len(samples)
        at_vad_rate = np.asarray(self._resampler.resample_chunk(samples), dtype=np.int16)
        frames = self._vad.push(at_vad_rate)
        if frames:
            self._frame_end = frames[-1].end_sample
        events = [frame.event for frame in frames if frame.event is not None]
        return [Heard(event.kind, self._position(event.at_sample)) for event in events]

    def forget(self) -> None:
        self._vad.reset()
        self._base = self._pushed

    def _position(self, vad_sample: int) -> int:
        return self._base + map_sample(vad_sample, VAD_RATE_HZ, self._rate_hz)


class ScriptedEndpointer:
    """Ends a turn with a known sample, `endpoint_sample` after the last commit; `turns` times a session.

    Costs nothing, so that one process can serve many calibrated sessions.
    """

    def __init__(self, endpoint_sample: int, turns: int) -> None:
        self._endpoint_sample = endpoint_sample
        self._turns = turns
        self._pushed = 0
        self._since_commit = 0

    @property
    def voiced_to(self) -> int | None:
        return None

    def push(self, pcm: bytes) -> list[Heard]:
        samples = len(pcm) // 2
        self._pushed += samples
        self._since_commit += samples
        if self._turns == 0 or self._since_commit < self._endpoint_sample:
            return []
        self._turns -= 1
        end = self._pushed - self._since_commit + self._endpoint_sample
        start = end - self._endpoint_sample
        self._since_commit = self._pushed - end
        return [Heard("start", start), Heard("stop", end)]

    def forget(self) -> None:
        self._since_commit = 0
