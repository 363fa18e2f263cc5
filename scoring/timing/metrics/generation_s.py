"""How long the peer took to deliver the whole answer.

generation_s = last_packet - rtf_anchor, over all used responses of the turn (`rtf_anchor` says which anchor).

Null: paced, input-clocked and continuous peers; a used response that did not complete. Source: timing definitions,
section 2.
"""

from __future__ import annotations

from scoring.timing.generation import generation
from scoring.timing.metric import Metric, Scene, Value


def compute(scene: Scene) -> Value:
    return generation(scene).seconds()


METRIC = Metric(
    name="generation_s",
    version=1,
    unit="s",
    direction="lower",
    header="Generation",
    compute=compute,
    needs=("packets", "burst"),
)
