"""How long the agent goes on sending audio after the user interrupts it.

wire_stop_ms = arrival of the interrupted answers' last audio packet that was not late - onset (see `barge_in_stop_ms`).

Null: no barge-in; no packet after the onset (all had been sent before); continuous peers; upload mode.
Source: timing definitions, section 2.
"""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.timing.barge_in import barge_in
from scoring.timing.metric import Metric, Scene, Value, ns_to_ms


def compute(scene: Scene) -> Value:
    found = barge_in(scene.turn)
    if isinstance(found, Unscored):
        return found
    if found.last_packet_ns is None or found.last_packet_ns <= found.onset_ns:
        return Unscored(reason="no audio packet arrived after the interruption")
    return ns_to_ms(found.last_packet_ns - found.onset_ns)


METRIC = Metric(
    name="wire_stop_ms",
    version=1,
    unit="ms",
    direction="lower",
    header="Wire stop",
    compute=compute,
    needs=("media_time", "packets"),
    scope="event",
)
