"""How far ahead of playout the answer is delivered.

buffer_lead_ms = median over the packets after the first (of each used response) of playout start - arrival, zero-buffer
model. Near 0 for paced peers, seconds for burst peers. Null: no answer, or one of a single packet.
Source: timing definitions, section 2.
"""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.stats import percentile
from scoring.timing.delivery import delivery
from scoring.timing.metric import Metric, Scene, Value, ns_to_ms


def compute(scene: Scene) -> Value:
    found = delivery(scene)
    if isinstance(found, Unscored):
        return found
    if not found.leads_ns:
        return Unscored(reason="the answer came as one packet")
    return ns_to_ms(round(percentile(found.leads_ns, 0.5)))


METRIC = Metric(
    name="buffer_lead_ms",
    version=1,
    unit="ms",
    direction="higher",
    header="Buffer lead",
    compute=compute,
)
