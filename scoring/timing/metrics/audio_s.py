"""Seconds of answer audio received in time, whatever became of the answer.

audio_s = samples / rate, summed over the packets of the used responses. Null: continuous peers; no audio.
Source: timing definitions, section 2 (response length, without its conditions).
"""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.timing.generation import audio_ns
from scoring.timing.metric import Metric, Scene, Value, ns_to_s


def compute(scene: Scene) -> Value:
    if not scene.turn.used:
        return Unscored(reason="no answer with audio")
    return ns_to_s(audio_ns(scene.turn.packets))


METRIC = Metric(
    name="audio_s",
    version=1,
    unit="s",
    direction="none",
    header="Audio",
    compute=compute,
    needs=("packets",),
)
