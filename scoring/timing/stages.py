"""Stages of an answer as the model itself marks them (`Mark` of a local model): when each was finished.

    stage_ms = produced(stage) - speech_end, the first mark of each name at or after `speech_end`
    step_ms  = the same mark - the one before it in its turn (the first: - the end of the turn)

The end of the turn is the `endpoint` (vad) or `committed` (manual). In upload mode, where speech has no place on a
media timeline, `speech_sent` stands for `speech_end`. A peer without marks has no stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.core.events import RawReceived
from scoring.stats import describe_values
from scoring.timing.anchors import Anchors
from scoring.timing.metric import ns_to_ms
from scoring.timing.timeline import Instant
from scoring.timing.turn import Turn

PREFIX = "stage."
"""Of the raw events that are marks."""


def stages_of(turn: Turn, anchors: Anchors) -> dict[str, dict[str, float | None]]:
    """Stage to `{"at_ms", "step_ms"}`, in order of time; empty where the peer marked none or the query never ended.
    step_ms of the first is null where nobody told the end of the turn before it."""
    start = turn.speech_sent if turn.session.header.mode == "upload" else turn.speech_end
    if not isinstance(start, Instant):
        return {}
    before_ns = _turn_end_ns(turn, anchors)
    found: dict[str, dict[str, float | None]] = {}
    for event in turn.session.of(RawReceived):
        name, made_ns = event.name.removeprefix(PREFIX), event.produced_ns or event.t_ns
        mark = event.name.startswith(PREFIX) and turn.first_seq <= event.seq < turn.last_seq
        if not mark or name in found or made_ns < start.t_ns:
            continue
        step_ms = None if before_ns is None or before_ns > made_ns else ns_to_ms(made_ns - before_ns)
        found[name] = {"at_ms": ns_to_ms(made_ns - start.t_ns), "step_ms": step_ms}
        before_ns = made_ns
    return found


def _turn_end_ns(turn: Turn, anchors: Anchors) -> int | None:
    point = anchors.get("committed" if turn.session.header.mode == "manual" else "endpoint")
    return point.t_ns if isinstance(point, Instant) else None


def stage_figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """For each stage, in the order in which most turns have them: `at_ms` and `step_ms` with n, percentiles, mean, min
    and max over these rows."""
    names = list(dict.fromkeys(name for row in rows for name in row.get("stages", {})))
    figures = {}
    for name in names:
        own = [row["stages"][name] for row in rows if name in row.get("stages", {})]
        figures[name] = {
            key: describe_values(np.array([mark[key] for mark in own if mark[key] is not None], dtype=np.float64))
            for key in ("at_ms", "step_ms")
        }
    return dict(sorted(figures.items(), key=lambda item: item[1]["at_ms"]["p50"]))
