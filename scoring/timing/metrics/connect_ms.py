"""Time to a usable connection: name look-up, TCP, TLS and protocol upgrade.

connect_ms = last of the phases dns, tcp, tls, upgrade - started. The split is in `connect_phases_ms`. Reported beside
the latencies, never subtracted. Null: the phases were not recorded; the connection was not made (refused or broken off
before the upgrade; for a peer without one, before it was ready). Source: timing definitions, section 2.
"""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.timing.connection import split
from scoring.timing.metric import Metric, Scene, Value, ns_to_ms


def compute(scene: Scene) -> Value:
    steps = split(scene.turn.recording.phases)
    if isinstance(steps, Unscored):
        return steps
    return ns_to_ms(sum(steps.values()))


METRIC = Metric(
    name="connect_ms",
    version=1,
    unit="ms",
    direction="lower",
    header="Connect",
    compute=compute,
    scope="session",
)
