"""First-packet latency.

first_packet_ms = first_packet - start, where start is `committed` in manual mode and `speech_sent` otherwise.

first_packet: arrival of the first packet with a decoded audio sample (a file header alone has none) of the first
response that began after the query and delivered audio; the packet may be silent, so look at `first_audible_ms` too.
Null: continuous peers; early answers only; no audio; no start (never committed, or the anchor packet was lost).
Source: timing definitions, section 2.
"""

from __future__ import annotations

from scoring.timing.metric import Metric, Scene, Value, span_ms


def compute(scene: Scene) -> Value:
    return span_ms(scene.start, scene.anchors.first_packet)


METRIC = Metric(
    name="first_packet_ms",
    version=1,
    unit="ms",
    direction="lower",
    header="First packet",
    compute=compute,
    needs=("packets",),
)
