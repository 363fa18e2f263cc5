"""The delay of our own receive buffer, which a listener would have had on top.

jitter_buffer_ms = waiting of all RTP packets that were delivered, summed, / their number, over the session: how long
packets were held back for one that was missing before them. It is in no arrival instant, so in no other figure. Null:
the peer's audio does not come as RTP; nothing was delivered. Source: timing definitions, section 1 (the receiver's own
jitter-buffer delay is reported beside first_audible).
"""

from __future__ import annotations

from harness.core.events import RtpBuffered
from harness.core.scorer import Unscored
from scoring.timing.metric import Metric, Scene, Value, ns_to_ms


def compute(scene: Scene) -> Value:
    reports = list(scene.turn.session.of(RtpBuffered))
    delivered = sum(report.delivered for report in reports)
    if not delivered:
        return Unscored(reason="the receive buffer delivered nothing")
    return ns_to_ms(round(sum(report.held_ns for report in reports) / delivered))


METRIC = Metric(
    name="jitter_buffer_ms",
    version=1,
    unit="ms",
    direction="lower",
    header="Receive buffer",
    compute=compute,
    needs=("rtp",),
    scope="session",
)
