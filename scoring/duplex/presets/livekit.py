"""LiveKit Agents: `ttft` of a realtime model.

ttft_ms = first_packet - arrival of the peer's `response.created`, per answered turn; mean.

The clock begins when the peer has already decided that the user is done, so endpointing is left out; what is left is
the model and its first audio. (Their first token of a spoken answer is its first audio delta.)
Source: LiveKit Agents, `RealtimeModelMetrics.ttft`; timing definitions, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.audio import NS_PER_MS
from harness.core.events import ResponseStarted
from harness.core.scorer import Unscored
from scoring.duplex.presets.material import Material
from scoring.duplex.presets.preset import Figure, Measured, Preset, Tally
from scoring.timing.anchors import Anchors
from scoring.timing.timeline import Instant
from scoring.timing.turn import Turn

FIGURES = ("ttft_ms",)


def compute(materials: Sequence[Material]) -> Measured:
    tally = Tally(FIGURES)
    for material in materials:
        if material.unstamped is not None:
            tally.add("ttft_ms", material.unstamped, material=material)
            continue
        for turn, anchors in material.turns:
            tally.add("ttft_ms", _ttft_ms(turn, anchors), material=material, event=turn.query)
    return tally.measured()


def _ttft_ms(turn: Turn, anchors: Anchors) -> Figure:
    first = anchors.first_packet
    if not isinstance(first, Instant):
        return first
    start = turn.used[0].start
    if all(event.seq != start.seq for event in turn.session.of(ResponseStarted)):
        return Unscored(reason="the peer does not announce its responses")
    return (first.t_ns - start.t_ns) / NS_PER_MS


PRESET = Preset(
    name="livekit",
    source="LiveKit Agents, realtime model metrics",
    says=(
        "From the peer's response.created to its first audio: the time that the peer takes to notice that the user is "
        "done, usually the larger part, is not in it."
    ),
    figures=FIGURES,
    compute=compute,
)
