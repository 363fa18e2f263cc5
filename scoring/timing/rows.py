"""`metrics.jsonl`: one row a turn, a pure function of the session."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from harness.core.audibility import DEFAULT, Audibility
from harness.core.errors import ScoringError
from harness.core.scorer import Unscored
from harness.core.session.header import Header
from harness.core.session.reader import Session
from harness.core.weights_mark import marked
from scoring.timing.anchors import NAMES, Anchors
from scoring.timing.metric import Metric, Parameters, Scene, Value, missing
from scoring.timing.recording import Recording
from scoring.timing.registry import all_metrics
from scoring.timing.stages import stages_of
from scoring.timing.status import Status, error_of, status_of
from scoring.timing.timeline import Instant
from scoring.timing.turn import Turn, turns_of


def session_rows(
    session: Session,
    *,
    parameters: Parameters | None = None,
    rule: Audibility = DEFAULT,
    metrics: Sequence[Metric] | None = None,
) -> list[dict[str, Any]]:
    """The rows of one session, by turn. Raises SessionFormatError for damaged audio, ScoringError for a metric that
    gives a number that is none."""
    recording = Recording(session, rule)
    chosen = all_metrics() if metrics is None else metrics
    return [_row(turn, chosen, parameters or Parameters()) for turn in turns_of(recording)]


def _row(turn: Turn, metrics: Sequence[Metric], parameters: Parameters) -> dict[str, Any]:
    anchors = Anchors(turn)
    scene = Scene(turn=turn, anchors=anchors, parameters=parameters)
    status = status_of(turn, anchors)
    header = turn.session.header
    row: dict[str, Any] = {
        "session": header.session,
        "query": turn.query,
        "turn": turn.number,
        "turn_index": turn.index,
        "mode": header.mode,
        "status": status.word,
    }
    reasons: dict[str, str] = {} if status.word == "ok" else {"status": status.reason}
    undefined: list[str] = []
    for metric in metrics:
        never = missing(metric, header)
        if never is not None:
            undefined.append(metric.name)
        value = never or metric.compute(scene)
        row[metric.name] = _json(metric, value)
        if isinstance(value, Unscored):
            reasons[metric.name] = value.reason
    stages = stages_of(turn, anchors)
    if stages:
        row["stages"] = stages
    row["usage"] = usage_of(turn)
    row["error"] = error_of(turn, status)
    row |= _context(turn, status)
    row |= _anchor_columns(turn, anchors, reasons)
    row["undefined"] = undefined
    row["reasons"] = reasons
    return row


def _context(turn: Turn, status: Status) -> dict[str, Any]:
    header = turn.session.header
    early = turn.early_utterances if header.profile.continuous else turn.early
    return {
        "peer": marked(header.peer.label, header.peer.config),
        "language": turn.started.language if turn.started else planned_language(header, turn.index),
        "annotator": turn.started.annotator if turn.started else "",
        "repeat": header.repeat,
        "warmup": header.warmup,
        "failed": is_failed(status.word, error_of(turn, status)),
        "text_order": header.profile.text,
        "early": len(early),
        "late_packets": sum(len(response.late) for response in turn.responses),
        "late_sends": sum(packet.late for packet in turn.sent),
        "early_sends": 0
        if header.mode == "upload"
        else sum(packet.started_ns < packet.planned_ns for packet in turn.sent),
    }


def _anchor_columns(turn: Turn, anchors: Anchors, reasons: dict[str, str]) -> dict[str, Any]:
    instants: dict[str, int | None] = {}
    events: dict[str, int] = {}
    for name in NAMES:
        point = anchors.get(name)
        if isinstance(point, Instant):
            instants[name] = point.t_ns - turn.recording.origin_ns
            events[name] = point.seq
        else:
            instants[name] = None
            reasons[name] = point.reason
    return {"anchors": instants, "anchor_events": events}


def planned_language(header: Header, turn: int) -> str:
    """The language of a turn that never began, so that a failure stays with its language."""
    return header.languages[turn] if turn < len(header.languages) else ""


def is_failed(status: str, error: str | None) -> bool:
    """Whether a turn counts as failed: anything but `ok`, save a turn that was left out without fault of the peer."""
    return status != "ok" and not (status == "not_run" and error is None)


def usage_of(turn: Turn) -> dict[str, Any] | None:
    """What the peer says it used, summed over all responses of the turn (early ones cost as well)."""
    total: dict[str, Any] | None = None
    for response in turn.responses:
        if response.done is not None and response.done.usage:
            total = _added(total or {}, response.done.usage)
    return total


def _added(total: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers are added, objects by key, anything else is taken from the later one."""
    out = dict(total)
    for key, value in more.items():
        known = out.get(key)
        if isinstance(value, Mapping):
            out[key] = _added(known if isinstance(known, Mapping) else {}, value)
        elif _numeric(value) and _numeric(known):
            out[key] = known + value
        else:
            out[key] = value
    return out


def _numeric(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _json(metric: Metric, value: Value) -> Any:
    if isinstance(value, Unscored):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        raise ScoringError(f"{metric.name} gave {value}: a figure that does not exist is Unscored")
    return value
