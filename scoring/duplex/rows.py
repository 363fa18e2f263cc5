"""One row an event of a conversation: what it was, what the agent did, or why there is no figure."""

from __future__ import annotations

from collections import Counter
from typing import Any

from harness.core.events import ScenarioEvent
from harness.core.scorer import Unscored
from harness.core.session.reader import Session
from harness.core.weights_mark import marked
from scoring.duplex.floor import Floor, Parameters
from scoring.duplex.hearing import Heard
from scoring.duplex.metric import Censored, Scene, Value, to_ms
from scoring.duplex.metrics import METRICS
from scoring.duplex.spans import Conversation, Utterance

ROLES = ("answer", "backchannel", "interruption", "false_start", "resume", "greeting", "other")


def conversation_rows(
    conversation: Conversation, *, session: str = "", parameters: Parameters | None = None
) -> list[dict[str, Any]]:
    """The rows of a conversation, by the onset of its events; times in ms from the beginning of listening."""
    return floor_rows(Floor(conversation, parameters), session=session)


def floor_rows(floor: Floor, *, session: str = "") -> list[dict[str, Any]]:
    """The rows of a conversation that was worked out already."""
    return [_row(floor, index, session) for index in range(len(floor.user))]


def session_rows(session: Session, heard: Heard, floor: Floor) -> list[dict[str, Any]]:
    """`floor_rows` with what the session knows beside the spans; events that never sounded come last."""
    header = session.header
    events = {event.event: event for event in session.of(ScenarioEvent)}
    rows = floor_rows(floor, session=header.session)
    rows += [_unplaced(header.session, event, reason) for event, reason in heard.unplaced.items()]
    language = header.languages[0] if header.languages else ""
    for row in rows:
        behind_ns = heard.behind_ns.get(row["event"])
        row["playout_behind_ms"] = None if behind_ns is None else to_ms(behind_ns)
        event = events.get(row["event"])
        if event is not None:
            row |= {"kind": event.kind, "category": event.category, "expect": event.expect}
            row |= {"anchor": event.anchor, "timed_out": event.timed_out, "clip": event.clip}
            row |= {"impairment": event.impairment, "tags": list(event.tags)}
        row |= {
            "peer": marked(header.peer.label, header.peer.config),
            "language": language,
            "repeat": header.repeat,
            "warmup": header.warmup,
        }
    return rows


def roles(floor: Floor) -> Counter[str]:
    """How often each role was played by one of the agent's utterances; each counts once, in the order of `ROLES`."""
    found: dict[Utterance, str] = {}
    for index, event in enumerate(floor.user):
        if floor.claims(index):
            _book(found, floor.backchannels(index), "backchannel")
            _book(found, floor.interruptions(index), "interruption")
            continue
        holder = floor.holders[index]
        if holder is None:
            stray = floor.starts_between(event.start_ns, event.end_ns + floor.ns("stray"))
            _book(found, [u for u in stray if floor.demands[index] == "stay_silent"], "false_start")
        else:
            after = floor.starts_between(holder.end_ns - 1, holder.end_ns + floor.ns("resume"))
            _book(found, after[:1], "resume")
    first_ns = floor.user[0].start_ns if floor.user else floor.end_ns
    _book(found, [utterance for utterance in floor.utterances if utterance.start_ns <= first_ns], "greeting")
    _book(found, floor.utterances, "other")
    found |= dict.fromkeys(floor.answers.values(), "answer")
    return Counter(found.values())


def _book(found: dict[Utterance, str], utterances: Any, role: str) -> None:
    for utterance in utterances:
        found.setdefault(utterance, role)


def _row(floor: Floor, index: int, session: str) -> dict[str, Any]:
    event, holder = floor.user[index], floor.holders[index]
    begin_ns = floor.conversation.begin_ns
    row: dict[str, Any] = {
        "session": session,
        "event": event.event,
        "category": event.category,
        "kind": event.kind,
        "expect": event.expect,
        "demand": floor.demands[index],
        "offset_exact": event.offset_exact,
        "start_ms": to_ms(event.start_ns - begin_ns),
        "end_ms": to_ms(event.end_ns - begin_ns),
        "agent_speaking": holder is not None,
        "agent_ended": None if holder is None else {True: "by_itself", False: "broken_off", None: None}[holder.natural],
    }
    reasons: dict[str, str] = {}
    censored: dict[str, float | None] = {}
    scene = Scene(floor=floor, index=index)
    for metric in METRICS:
        row[metric.name] = _json(metric.name, metric.compute(scene), reasons, censored)
    return row | {"reasons": reasons, "censored": censored}


def _json(name: str, value: Value, reasons: dict[str, str], censored: dict[str, float | None]) -> float | bool | None:
    """The figure; None with its reason, and a censored one's lower bound apart, so that nobody averages it."""
    if isinstance(value, Censored):
        censored[name] = None if value.at_least_ns is None else to_ms(value.at_least_ns)
    if isinstance(value, Unscored | Censored):
        reasons[name] = value.reason
        return None
    return value


def _unplaced(session: str, event: str, reason: str) -> dict[str, Any]:
    row: dict[str, Any] = {"session": session, "event": event, "category": "", "kind": "turn", "expect": ""}
    row |= {"demand": None, "offset_exact": False, "start_ms": None, "end_ms": None}
    row |= {"agent_speaking": False, "agent_ended": None}
    row |= dict.fromkeys(metric.name for metric in METRICS)
    return row | {"reasons": {metric.name: reason for metric in METRICS} | {"event": reason}, "censored": {}}
