"""Underruns and lead of a turn's answer in the playout model: what `stalls`, `stall_ms`, `buffer_lead_ms` share."""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.timing.listener import Delivery
from scoring.timing.metric import Scene


def delivery(scene: Scene, buffer_ns: int = 0) -> Delivery | Unscored:
    """Summed over the used responses; for a continuous peer, over the packets heard within the utterance."""
    turn, listener = scene.turn, scene.turn.recording.listener
    if scene.header.profile.continuous:
        if turn.utterance is None:
            return Unscored(reason="no answer")
        heard = listener.played
        inside = [
            packet
            for packet in turn.recording.packets
            if heard[packet.seq].end_ns > turn.utterance.start.t_ns
            and heard[packet.seq].start_ns < turn.utterance.end_ns
        ]
        return listener.delivery(inside, buffer_ns)
    if not turn.used:
        return Unscored(reason="no answer with audio")
    parts = [listener.delivery(response.packets, buffer_ns) for response in turn.used]
    return Delivery(
        stalls=sum(part.stalls for part in parts),
        stall_ns=sum(part.stall_ns for part in parts),
        leads_ns=tuple(lead for part in parts for lead in part.leads_ns),
    )
