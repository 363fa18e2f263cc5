"""What the harness itself may have added to, or taken from, this row's latencies.

own_error_ms = max(|started - planned| of the anchor packet, its completed - started, greatest loop lag of the windows
that overlap the 50 ms before the output instant).

Output instant: first_packet, else first_audible; without either only the anchor packet counts. In upload mode the
anchor packet has no deadline; of a lost one (its connection went) no completed - started is known. Null: nothing of
this was recorded. Source: timing definitions, section 3.
"""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.timing.metric import Metric, Scene, Value, ns_to_ms
from scoring.timing.own_error import own_error_terms_ns


def compute(scene: Scene) -> Value:
    terms = own_error_terms_ns(scene)
    if not terms:
        return Unscored(reason="neither sends nor loop lag were recorded")
    return ns_to_ms(max(terms.values()))


METRIC = Metric(
    name="own_error_ms",
    version=1,
    unit="ms",
    direction="lower",
    header="Own error",
    compute=compute,
    scope="harness",
)
