"""How long a peer that is clocked by its input takes for one unit, typically.

unit_lag_ms = median (linear) over the turn's units of done - sent, where sent is the completed write of the chunk with
the unit's last sample and done the read that brought the last sample of the output that answers it. Network time is
contained. A peer that keeps up stays below the unit's length. Units that were never done are in `unit_misses` only.
Null: the peer works in no units; no unit was sent or done. Source: timing definitions, section 4 (unit-locked models).
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
    return ns_to_ms(round(percentile(lags, 0.5))) if lags else Unscored(reason="no unit was ever done")


METRIC = Metric(
    name="unit_lag_ms",
    version=1,
    unit="ms",
    direction="lower",
    header="Unit lag",
    compute=compute,
    needs=("units",),
    scope="turn",
)
