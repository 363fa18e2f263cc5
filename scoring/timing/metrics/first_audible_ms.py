"""What a listener waits: from the end of the speech to the first audible sound of the answer.

first_audible_ms = first_audible - speech_end.

speech_end: one past the last speech sample on the media timeline. first_audible: playout start of its packet in the
zero-buffer model, plus the offset of the first audible sample in it (audibility rule: parameters in the summary).
Null: upload mode; an answer that never becomes audible (status `silent`, never 0); early answers only.
Source: timing definitions, section 2.
"""

from __future__ import annotations

from scoring.timing.metric import Metric, Scene, Value, span_ms


def compute(scene: Scene) -> Value:
    return span_ms(scene.anchors.speech_end, scene.anchors.first_audible)


METRIC = Metric(
    name="first_audible_ms",
    version=1,
    unit="ms",
    direction="lower",
    header="First audible",
    compute=compute,
    needs=("media_time",),
)
