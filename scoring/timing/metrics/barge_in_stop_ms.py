"""How long the agent is still heard after the user interrupts it.

barge_in_stop_ms = min(natural playout end, first flush at or after the onset) - onset.

onset: `speech_start` of this turn, when an answer to an earlier turn has begun to be heard and is not over. Natural
playout end: of everything of the earlier answers that was not late, if nothing is flushed from the onset on (continuous
peers: end of the utterance). Null: playout had not begun or was already over at the onset (no event); upload mode.
Source: timing definitions, section 2.
"""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.timing.barge_in import barge_in
from scoring.timing.metric import Metric, Scene, Value, ns_to_ms


def compute(scene: Scene) -> Value:
    found = barge_in(scene.turn)
    return found if isinstance(found, Unscored) else ns_to_ms(found.heard_stop_ns - found.onset_ns)


METRIC = Metric(
    name="barge_in_stop_ms",
    version=1,
    unit="ms",
    direction="lower",
    header="Barge-in stop",
    compute=compute,
    needs=("media_time",),
    scope="event",
)
