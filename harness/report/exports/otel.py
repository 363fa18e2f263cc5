"""A run as an OpenTelemetry trace: OTLP in JSON, one trace a session, a span a turn, anchors as its events.

Encoding: OTLP 1.x, JSON Protobuf mapping (ids in hex, 64-bit numbers as strings). Wall time comes from the session's
one wall anchor, so spans of several machines agree as well as their clocks do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from harness.core.run_directory import RunDirectory, RunInfo
from harness.core.session.reader import Session
from harness.report.anchor import anchors_of, spans_of
from harness.report.failure import message_of, plain
from harness.report.heard import origin_ns
from harness.report.redaction import redact

SCOPE = "firstpacket"
INTERNAL, CLIENT = 1, 3
"""Span kinds."""
OK, ERROR = 1, 2
"""Status codes."""
_NO_FIGURES = frozenset({"anchors", "anchor_events", "reasons", "undefined", "error", "usage", "connect_phases_ms"})

Json = dict[str, Any]


def otel_trace(run: RunDirectory) -> Json:
    """The trace of every finished session; turns come from `metrics.jsonl`. Raises SessionFormatError."""
    info = run.info()
    by_session: dict[str, list[Json]] = {}
    for row in redact(run.read_lines("metrics.jsonl")):
        by_session.setdefault(str(row["session"]), []).append(row)
    spans = [
        span
        for session in run.load()
        if session.events
        for span in _session_spans(session, by_session.get(session.header.session, []))
    ]
    scope = {"name": SCOPE, "version": info.firstpacket}
    resource = {"attributes": _attributes(_resource(info))}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]}


def _resource(info: RunInfo) -> Json:
    return {
        "service.name": info.peer,
        "firstpacket.suite": info.suite,
        "firstpacket.run.created": info.created,
    }


def _session_spans(session: Session, rows: Iterable[Mapping[str, Any]]) -> list[Json]:
    """The session's span, then those of its turns and of what was measured in each."""
    header = session.header
    trace = _hex(f"{header.session} {header.anchor.wall_ns} {header.peer.label}", 16)
    whole = _Span(trace=trace, path=header.session, shift_ns=header.anchor.wall_ns - header.anchor.monotonic_ns)
    begin, end = session.events[0].t_ns, max(event.t_ns for event in session.events)
    told = {
        "firstpacket.session": header.session,
        "firstpacket.peer": plain(header.peer.label),
        "firstpacket.mode": header.mode,
        "firstpacket.warmup": header.warmup,
        "firstpacket.clock": header.clock.name,
    }
    spans = [whole.made("session", begin, end, kind=INTERNAL, attributes=told)]
    origin = origin_ns(session)
    for row in rows:
        spans += _turn_spans(whole, row, anchors_of(row, origin))
    return spans


def _turn_spans(session: _Span, row: Mapping[str, Any], anchors: Mapping[str, int]) -> list[Json]:
    """Nothing for a turn of which no instant is known."""
    if not anchors:
        return []
    turn = session.below(f"turn {row['turn_index']}")
    figures = {f"firstpacket.{name}": value for name, value in row.items() if name not in _NO_FIGURES}
    span = turn.made(
        f"turn {plain(str(row['query']))}",
        min(anchors.values()),
        max(anchors.values()),
        kind=CLIENT,
        attributes=figures,
    )
    span["events"] = [
        {"timeUnixNano": session.wall(t_ns), "name": name}
        for name, t_ns in sorted(anchors.items(), key=lambda each: each[1])
    ]
    failed = bool(row.get("failed", row["status"] != "ok"))
    span["status"] = {"code": ERROR, "message": message_of(row)} if failed else {"code": OK}
    measured = [
        turn.below(each.metric).made(
            each.metric,
            anchors[each.start],
            anchors[each.end],
            kind=INTERNAL,
            attributes={f"firstpacket.{each.metric}": each.value_ms},
        )
        for each in spans_of(row, anchors)
        if anchors[each.start] <= anchors[each.end]
    ]
    return [span, *measured]


class _Span:
    """A place in the tree of a trace. shift_ns: from the session's clock to wall time."""

    def __init__(self, *, trace: str, path: str, shift_ns: int, parent: str = "") -> None:
        self._trace, self._path, self._shift_ns, self._parent = trace, path, shift_ns, parent
        self._id = _hex(f"{trace} {path}", 8)

    def below(self, name: str) -> _Span:
        return _Span(trace=self._trace, path=f"{self._path}/{name}", shift_ns=self._shift_ns, parent=self._id)

    def wall(self, t_ns: int) -> str:
        """ns since 1970, as OTLP writes 64-bit numbers."""
        return str(t_ns + self._shift_ns)

    def made(self, name: str, begin_ns: int, end_ns: int, *, kind: int, attributes: Mapping[str, Any]) -> Json:
        ids = {"traceId": self._trace, "spanId": self._id}
        if self._parent:
            ids["parentSpanId"] = self._parent
        return {
            **ids,
            "name": name,
            "kind": kind,
            "startTimeUnixNano": self.wall(begin_ns),
            "endTimeUnixNano": self.wall(end_ns),
            "attributes": _attributes(attributes),
        }


def _attributes(values: Mapping[str, Any]) -> list[Json]:
    """Scalars only; what is None is left out."""
    return [{"key": key, "value": found} for key, value in values.items() if (found := _value(value)) is not None]


def _value(value: Any) -> Json | None:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": plain(value)} if isinstance(value, str) else None


def _hex(text: str, size: int) -> str:
    """An id of `size` bytes that is the same at every export."""
    return hashlib.sha256(text.encode()).hexdigest()[: 2 * size]
