"""`stalls` for a listener with a jitter buffer.

As `stalls`, in the model that waits `jitter_buffer_ms` (recorded in the summary) before the first packet and again
after each underrun; that wait is part of the underrun. Null: no answer.
Source: timing definitions, section 1 (second model).
"""

from __future__ import annotations

from harness.core.audio import NS_PER_MS
from harness.core.scorer import Unscored
from scoring.timing.delivery import delivery
from scoring.timing.metric import Metric, Scene, Value


def compute(scene: Scene) -> Value:
    found = delivery(scene, buffer_ns=scene.parameters.jitter_buffer_ms * NS_PER_MS)
    return found if isinstance(found, Unscored) else found.stalls


METRIC = Metric(
    name="stalls_buffered",
    version=1,
    unit="count",
    direction="lower",
    header="Stalls (buffered)",
    compute=compute,
)
