"""Real-time factor after the first packet: below 1 playout never starves for long.

stream_rtf = sum(last_packet_r - first_packet_r) / sum(audio of r after its first packet), over the used responses r.

About 1 by construction for paced peers. Null: continuous peers; a used response that did not complete; answers of
one packet. Source: timing definitions, section 2.
"""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.timing.generation import audio_ns
from scoring.timing.metric import Metric, Scene, Value


def compute(scene: Scene) -> Value:
    used = scene.turn.used
    if not used:
        return Unscored(reason="no answer with audio")
    if not all(response.completed for response in used):
        return Unscored(reason="the answer was not completed")
    audio = sum(audio_ns(response.packets[1:]) for response in used)
    if audio == 0:
        return Unscored(reason="the answer came as one packet")
    wire = sum(response.packets[-1].t_ns - response.packets[0].t_ns for response in used)
    return round(wire / audio, 6)


METRIC = Metric(
    name="stream_rtf",
    version=1,
    unit="ratio",
    direction="lower",
    header="Stream RTF",
    compute=compute,
    needs=("packets",),
)
