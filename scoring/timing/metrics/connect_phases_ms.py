"""The parts of `connect_ms` by name: dns, tcp, tls, upgrade.

Each part = end of that phase - end of the phase before it that was recorded. A phase that did not happen (no TLS) is
left out. Null: the phases were not recorded; the connection was not made (as for `connect_ms`).
Source: timing definitions, section 2.
"""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.timing.connection import split
from scoring.timing.metric import Metric, Scene, Value, ns_to_ms


def compute(scene: Scene) -> Value:
    steps = split(scene.turn.recording.phases)
    if isinstance(steps, Unscored):
        return steps
    return {name: ns_to_ms(duration_ns) for name, duration_ns in steps.items()}


METRIC = Metric(
    name="connect_phases_ms",
    version=1,
    unit="label",
    direction="none",
    header="Connect phases",
    compute=compute,
    scope="session",
)
