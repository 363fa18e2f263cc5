"""Time until the peer says that the session exists.

ready_ms = ready - started, connection included. Reported beside the latencies, never subtracted. Null: either instant
was not recorded. Source: timing definitions, section 2.
"""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.timing.metric import Metric, Scene, Value, span_ms


def compute(scene: Scene) -> Value:
    phases = scene.turn.recording.phases
    if "started" not in phases or "ready" not in phases:
        return Unscored(reason="the session's start or its ready instant was not recorded")
    return span_ms(phases["started"], phases["ready"])


METRIC = Metric(
    name="ready_ms",
    version=1,
    unit="ms",
    direction="lower",
    header="Ready",
    compute=compute,
    scope="session",
)
