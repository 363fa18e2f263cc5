"""Where the generation time starts: `committed`, `endpoint`, `speech_sent` or `upload`.

Manual mode: committed. Server VAD: endpoint, or speech_sent where the peer gave no endpoint. Upload: the last byte of
the request. Sums never mix anchors. Null in the same turns as `generation_s`. Source: timing definitions, section 2.
"""

from __future__ import annotations

from scoring.timing.generation import generation
from scoring.timing.metric import Metric, Scene, Value


def compute(scene: Scene) -> Value:
    return generation(scene).label()


METRIC = Metric(
    name="rtf_anchor",
    version=1,
    unit="label",
    direction="none",
    header="RTF anchor",
    compute=compute,
    needs=("packets", "burst"),
)
