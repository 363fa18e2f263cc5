"""What the agent says while the user speaks: backchannels and interruptions."""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.duplex.metric import Metric, Scene, Value

NO_TURN = Unscored(reason="the event is no turn of the user's")


def backchannels(scene: Scene) -> Value:
    """Agent utterances of at most `backchannel_ms` that start inside the user's turn (see DUPLEX.md)."""
    return len(scene.floor.backchannels(scene.index)) if scene.floor.claims(scene.index) else NO_TURN


def interruptions(scene: Scene) -> Value:
    """Agent utterances that start inside the user's turn, more than `touch_ms` before its end, and are no
    backchannels."""
    return len(scene.floor.interruptions(scene.index)) if scene.floor.claims(scene.index) else NO_TURN


BACKCHANNELS = Metric(
    name="agent_backchannels",
    version=1,
    unit="count",
    direction="none",
    statistic="mean",
    header="agent backchannels",
    compute=backchannels,
)
INTERRUPTIONS = Metric(
    name="agent_interruptions",
    version=1,
    unit="count",
    direction="lower",
    statistic="mean",
    header="agent interruptions",
    compute=interruptions,
)
