"""How often playout ran dry inside the answer.

stalls = number of packets after the first of their response that start later than the one before ended, in the
zero-buffer model. Any length counts, so paced peers show their jitter; `stalls_buffered` has the same with a jitter
buffer. Continuous peers: underruns inside the utterance. Null: no answer. Source: timing definitions, section 2.
"""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.timing.delivery import delivery
from scoring.timing.metric import Metric, Scene, Value


def compute(scene: Scene) -> Value:
    found = delivery(scene)
    return found if isinstance(found, Unscored) else found.stalls


METRIC = Metric(
    name="stalls",
    version=1,
    unit="count",
    direction="lower",
    header="Stalls",
    compute=compute,
)
