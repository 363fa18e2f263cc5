"""Whether the harness disturbed this row.

tainted = own_error_ms above the bound (2 ms, recorded in the summary), or records of the session were dropped. A row
without `own_error_ms` is tainted by dropped records only. Source: timing definitions, section 3.
"""

from __future__ import annotations

from scoring.timing.metric import Metric, Scene, Value, ns_to_ms
from scoring.timing.own_error import own_error_terms_ns


def compute(scene: Scene) -> Value:
    terms = own_error_terms_ns(scene)
    own_error_ms = ns_to_ms(max(terms.values())) if terms else 0.0
    return scene.header.dropped > 0 or own_error_ms > scene.parameters.taint_bound_ms


METRIC = Metric(
    name="tainted",
    version=1,
    unit="flag",
    direction="lower",
    header="Tainted",
    compute=compute,
    scope="harness",
)
