"""Length of the answer.

response_s = samples / rate, summed over the packets of all used responses of the turn; late packets are in no sum.

Null in the same turns as `generation_s`, so that the two always make a ratio; `audio_s` has the length whatever became
of the answer. Source: timing definitions, section 2.
"""

from __future__ import annotations

from scoring.timing.generation import generation
from scoring.timing.metric import Metric, Scene, Value


def compute(scene: Scene) -> Value:
    return generation(scene).audio_seconds()


METRIC = Metric(
    name="response_s",
    version=1,
    unit="s",
    direction="none",
    header="Response",
    compute=compute,
    needs=("packets", "burst"),
)
