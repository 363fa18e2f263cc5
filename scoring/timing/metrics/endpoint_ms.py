"""The peer's endpointing: how long it took to say that the user had finished.

endpoint_ms = endpoint - speech_end.

endpoint: arrival of the peer's last word on the end of speech at or before the start of its answer, and not before
`speech_end`. It starts at `speech_end`, so it is contained in `first_audible_ms`; `ttft_ms` and `first_packet_ms` of
the same mode start at `speech_sent`, up to a chunk later, so it may exceed `first_packet_ms` by up to a chunk.
Null: manual and upload mode; a peer that gives no such word; an end heard only inside the query (a pause).
Source: timing definitions, section 2.
"""

from __future__ import annotations

from scoring.timing.metric import Metric, Scene, Value, span_ms


def compute(scene: Scene) -> Value:
    return span_ms(scene.anchors.speech_end, scene.anchors.endpoint)


METRIC = Metric(
    name="endpoint_ms",
    version=1,
    unit="ms",
    direction="lower",
    header="Endpoint",
    compute=compute,
    needs=("media_time", "endpoint"),
)
