"""How late the harness sent the user's audio in this turn.

send_late_p99_ms = 99th percentile (linear) of started - planned over the turn's chunks, silence after the speech
included. Negative: sent early, which must not happen. Null: upload mode; no chunk was sent. With fewer than 100 chunks
it lies next to the greatest. Source: timing definitions, section 1 (speech_sent) and section 3.
"""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.stats import percentile
from scoring.timing.metric import Metric, Scene, Value, ns_to_ms


def compute(scene: Scene) -> Value:
    lateness = [packet.started_ns - packet.planned_ns for packet in scene.turn.sent]
    if not lateness:
        return Unscored(reason="no user audio was sent")
    return ns_to_ms(round(percentile(lateness, 0.99)))


METRIC = Metric(
    name="send_late_p99_ms",
    version=1,
    unit="ms",
    direction="lower",
    header="Send lateness p99",
    compute=compute,
    needs=("paced_send",),
    scope="harness",
)
