"""The user's side of a Qwen Omni session: audio of the present turn, and where a turn begins and ends."""

from __future__ import annotations

from typing import Any

import numpy as np

from connectors.local.model import Output, UserSpeechStarted, UserSpeechStopped
from harness.core.audio import Float32, Int16, int16_to_float, ms_to_samples
from harness.engines.extras import require

RATE_HZ = 16_000
FRAME = 160
"""Samples of a mel frame: 10 ms."""
LEAD = ms_to_samples(300, RATE_HZ)
"""Kept before the onset that voice activity detection found."""
SHORTEST = ms_to_samples(100, RATE_HZ)
SILENCE_MS = 600


class Hearing:
    """Audio since the last turn. vad: whether turns are found by voice activity (Silero), else they are told."""

    def __init__(self, vad: bool, silence_ms: int | None = None) -> None:
        self._blocks: list[Int16] = []
        self._vad: Any = None
        if vad:
            from harness.engines.vad import StreamingVad

            self._vad = StreamingVad(min_silence_ms=SILENCE_MS if silence_ms is None else silence_ms)

    def push(self, pcm: Int16) -> list[Output]:
        """int16 of shape (n,) at 16 kHz."""
        self._blocks.append(pcm)
        if self._vad is None:
            return []
        said: list[Output] = []
        for frame in self._vad.push(pcm):
            if frame.event is not None:
                kind = UserSpeechStarted if frame.event.kind == "start" else UserSpeechStopped
                said.append(kind(round(frame.event.at_sample * 1000 / RATE_HZ)))
        if not said and not self._vad.speaking:
            self._keep(LEAD)
        return said

    def take(self) -> Float32:
        """The turn, in [-1, 1), whole mel frames and no less than 100 ms: what lacks is silence."""
        pcm = np.concatenate([np.zeros(0, dtype=np.int16), *self._blocks])
        self._blocks = []
        length = max(SHORTEST, -(-len(pcm) // FRAME) * FRAME)
        return int16_to_float(np.pad(pcm, (0, length - len(pcm))))

    def _keep(self, samples: int) -> None:
        held = sum(map(len, self._blocks))
        while self._blocks and held - len(self._blocks[0]) >= samples:
            held -= len(self._blocks.pop(0))


def feature_extractor() -> Any:
    """Qwen's: Whisper's log-mel frames with 128 bands (`preprocessor_config.json` of Qwen/Qwen2.5-Omni-7B)."""
    return require("transformers", "local").WhisperFeatureExtractor(
        feature_size=128, sampling_rate=RATE_HZ, hop_length=FRAME, n_fft=400, chunk_length=300
    )
