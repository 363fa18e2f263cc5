"""How often a peer that is clocked by its input did not keep up.

unit_misses = number of the turn's units whose lag is longer than a unit, with those that were never done though the
session went on for more than a unit. Null: the peer works in no units; no unit was sent in the turn.
Source: timing definitions, section 4 (miss = lag > unit).
"""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.timing.metric import Metric, Scene, Value
from scoring.timing.units import turn_units


def compute(scene: Scene) -> Value:
    units = turn_units(scene)
    return units if isinstance(units, Unscored) else sum(unit.missed for unit in units)


METRIC = Metric(
    name="unit_misses",
    version=1,
    unit="count",
    direction="lower",
    header="Missed units",
    compute=compute,
    needs=("units",),
    scope="turn",
)
