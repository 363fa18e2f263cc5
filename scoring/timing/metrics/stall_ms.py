"""How long playout stood still inside the answer.

stall_ms = sum of the underruns that `stalls` counts. Null: no answer. Source: timing definitions, section 2.
"""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.timing.delivery import delivery
from scoring.timing.metric import Metric, Scene, Value, ns_to_ms


def compute(scene: Scene) -> Value:
    found = delivery(scene)
    return found if isinstance(found, Unscored) else ns_to_ms(found.stall_ns)


METRIC = Metric(
    name="stall_ms",
    version=1,
    unit="ms",
    direction="lower",
    header="Stalled",
    compute=compute,
)
