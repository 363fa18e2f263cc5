"""The harness's own error in one row, term by term: what `own_error_ms` and `tainted` share."""

from __future__ import annotations

from harness.core.audio import NS_PER_MS
from scoring.timing.metric import Scene
from scoring.timing.timeline import Instant


def own_error_terms_ns(scene: Scene) -> dict[str, int]:
    """anchor_late, anchor_write, loop_lag: those that were recorded.

    A loop-lag window ends at its `t_ns` and began `window_ns` before; it counts when it shares an instant with the
    `loop_window_ms` before the output instant.
    """
    terms: dict[str, int] = {}
    packet = scene.turn.anchor_packet
    if packet is not None:
        if not packet.lost:
            terms["anchor_write"] = packet.t_ns - packet.started_ns
        if scene.header.mode != "upload":
            terms["anchor_late"] = abs(packet.started_ns - packet.planned_ns)
    output = scene.anchors.output
    if isinstance(output, Instant):
        from_ns = output.t_ns - scene.parameters.loop_window_ms * NS_PER_MS
        lags = [
            lag.max_lag_ns
            for lag in scene.turn.recording.lags
            if lag.t_ns >= from_ns and lag.t_ns - lag.window_ns <= output.t_ns
        ]
        if lags:
            terms["loop_lag"] = max(lags)
    return terms
