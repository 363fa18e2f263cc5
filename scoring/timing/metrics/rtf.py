"""Real-time factor of the whole answer: below 1 it is made faster than it is spoken.

rtf = generation_s / response_s.

Over a run: sum of generation_s / sum of response_s, by anchor, with the mean of ratios beside it (`rtf_by_anchor` in
the summary). Comparable with VocalBench-zh Table 14 in manual and upload mode only. Null in the same turns as
`generation_s`. Source: timing definitions, section 2.
"""

from __future__ import annotations

from scoring.timing.generation import generation
from scoring.timing.metric import Metric, Scene, Value


def compute(scene: Scene) -> Value:
    return generation(scene).ratio()


METRIC = Metric(
    name="rtf",
    version=1,
    unit="ratio",
    direction="lower",
    header="RTF",
    compute=compute,
    needs=("packets", "burst"),
)
