"""How warm the session was: its age when the query's speech began.

since_ready_ms = speech_start - ready (without a media timeline: the turn's start - ready; without a ready instant:
configured, else upgrade). Null: no such instant. Source: timing definitions, section 2.
"""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.timing.metric import Metric, Scene, Value, span_ms
from scoring.timing.timeline import Instant


def compute(scene: Scene) -> Value:
    phases = scene.turn.recording.phases
    ready = phases.get("ready") or phases.get("configured") or phases.get("upgrade")
    if ready is None:
        return Unscored(reason="the session's ready instant was not recorded")
    begun = scene.anchors.speech_start
    started = scene.turn.started
    if scene.header.mode == "upload" and started is not None:
        begun = Instant(t_ns=started.t_ns, seq=started.seq)
    return span_ms(ready, begun)


METRIC = Metric(
    name="since_ready_ms",
    version=1,
    unit="ms",
    direction="none",
    header="Since ready",
    compute=compute,
    scope="turn",
)
