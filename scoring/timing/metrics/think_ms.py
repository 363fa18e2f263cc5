"""What is left of the first-packet latency without endpointing.

think_ms = first_packet - committed (manual mode), or first_packet - endpoint (server VAD).

Null: no commit and no endpoint; continuous peers; no audio. Source: timing definitions, section 2.
"""

from __future__ import annotations

from scoring.timing.metric import Metric, Scene, Value, span_ms


def compute(scene: Scene) -> Value:
    anchors = scene.anchors
    start = anchors.committed if scene.header.mode == "manual" else anchors.endpoint
    return span_ms(start, anchors.first_packet)


METRIC = Metric(
    name="think_ms",
    version=1,
    unit="ms",
    direction="lower",
    header="Think",
    compute=compute,
    needs=("packets", "turn_end"),
)
