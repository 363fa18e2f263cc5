"""Time to first token.

ttft = first_text - start, where start is `committed` in manual mode and `speech_sent` otherwise.

first_text: first output text or transcript delta that is more than white space, or first generated token, of the first
response that began after the query and delivered audio. A transcript that the peer paces along with its audio makes
this the time of its first words as spoken: the row's `text_order` then says `text_after_audio`.
Null: the peer sends no text; early answers only; no answer; no start (never committed, or the anchor packet was lost).
Source: timing definitions, section 2.
"""

from __future__ import annotations

from scoring.timing.metric import Metric, Scene, Value, span_ms


def compute(scene: Scene) -> Value:
    return span_ms(scene.start, scene.anchors.first_text)


METRIC = Metric(
    name="ttft_ms",
    version=1,
    unit="ms",
    direction="lower",
    header="TTFT",
    compute=compute,
    needs=("text",),
)
