"""Share of its units with which a peer that is clocked by its input did not keep up.

unit_miss_rate = unit_misses / units of the turn. Null: as `unit_misses`. Source: timing definitions, section 4.
"""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.timing.metric import Metric, Scene, Value
from scoring.timing.units import turn_units


def compute(scene: Scene) -> Value:
    units = turn_units(scene)
    return units if isinstance(units, Unscored) else round(sum(unit.missed for unit in units) / len(units), 6)


METRIC = Metric(
    name="unit_miss_rate",
    version=1,
    unit="ratio",
    direction="lower",
    header="Miss rate",
    compute=compute,
    needs=("units",),
    scope="turn",
)
