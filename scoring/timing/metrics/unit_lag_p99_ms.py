"""How long a peer that is clocked by its input takes for a unit when it is slow.

unit_lag_p99_ms = 99th percentile (linear) of the lags of which `unit_lag_ms` is the median. With fewer than 100 units
(8 s of 80 ms each) it lies next to the greatest. Null: as there. Source: timing definitions, section 4.
"""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.stats import percentile
from scoring.timing.metric import Metric, Scene, Value, ns_to_ms
from scoring.timing.units import turn_units


def compute(scene: Scene) -> Value:
    units = turn_units(scene)
    if isinstance(units, Unscored):
        return units
    lags = [unit.lag_ns for unit in units if unit.lag_ns is not None]
    return ns_to_ms(round(percentile(lags, 0.99))) if lags else Unscored(reason="no unit was ever done")


METRIC = Metric(
    name="unit_lag_p99_ms",
    version=1,
    unit="ms",
    direction="lower",
    header="Unit lag p99",
    compute=compute,
    needs=("units",),
    scope="turn",
)
