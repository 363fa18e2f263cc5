"""Network round trip.

rtt_ms = median of the session's keep-alive round trips; the same for each of its turns. Reported beside the latencies,
never subtracted. Null: none was measured. Source: timing definitions, section 2.
"""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.stats import percentile
from scoring.timing.metric import Metric, Scene, Value, ns_to_ms


def compute(scene: Scene) -> Value:
    trips = scene.turn.recording.round_trips_ns
    if not trips:
        return Unscored(reason="no round trip was measured")
    return ns_to_ms(round(percentile(trips, 0.5)))


METRIC = Metric(
    name="rtt_ms",
    version=1,
    unit="ms",
    direction="lower",
    header="RTT",
    compute=compute,
    scope="session",
)
