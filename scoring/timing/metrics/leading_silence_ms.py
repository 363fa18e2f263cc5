"""Silence at the head of the answer, as heard.

leading_silence_ms = first_audible - first_packet.

Holds the silent samples before the first sound and whatever playout waited for before them. Null: continuous peers; an
answer that never becomes audible. Source: timing definitions, section 2.
"""

from __future__ import annotations

from scoring.timing.metric import Metric, Scene, Value, span_ms


def compute(scene: Scene) -> Value:
    return span_ms(scene.anchors.first_packet, scene.anchors.first_audible)


METRIC = Metric(
    name="leading_silence_ms",
    version=1,
    unit="ms",
    direction="lower",
    header="Leading silence",
    compute=compute,
    needs=("packets",),
)
