"""How much of the peer's RTP audio never reached us.

rtp_loss = 1 - came / sent over the session, the same for each of its turns. came: distinct packets that arrived, even
if late or out of order. sent: the sequence numbers between the first and the last that came, per source and per run of
numbers (a jump by more than 3,000 begins a new run and counts as no loss). Packets lost before the first or after the
last that came are not seen. Null: the peer's audio does not come as RTP; none came.
Source: RFC 3550, section 6.4.1 (packets expected and received), duplicates left out.
"""

from __future__ import annotations

from harness.core.events import RtpReceived
from harness.core.scorer import Unscored
from scoring.timing.metric import Metric, Scene, Value
from scoring.timing.rtp import packets


def compute(scene: Scene) -> Value:
    came, sent = packets(scene.turn.session.of(RtpReceived))
    return round(1 - came / sent, 6) if sent else Unscored(reason="no RTP packet came")


METRIC = Metric(
    name="rtp_loss",
    version=1,
    unit="ratio",
    direction="lower",
    header="RTP loss",
    compute=compute,
    needs=("rtp",),
    scope="session",
)
