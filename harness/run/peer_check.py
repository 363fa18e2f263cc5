"""One recorded turn held against the order of events that its peer's profile promises. Pure; `peer_doctor` records it.

The steps are in `peer_steps`. The departure is the first failed step, else the first warning: what was
expected, what came instead, and what to try.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from harness.core.audio import Int16
from harness.core.events import (
    ConnectionClosed,
    Event,
    PeerError,
    RawReceived,
    TurnEnded,
)
from harness.core.session.header import Header
from harness.run.peer_hints import hint_for, is_foreign
from harness.run.peer_steps import LOOKS, State, Step, TurnEvents, closing, said_by

NOTHING = "nothing"


class Departure(msgspec.Struct, frozen=True, kw_only=True):
    """Where the turn first left the expected order."""

    step: str
    state: State
    expected: str
    instead: str
    hint: str = ""


class PeerCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What `doctor --peer` found. ok: no step failed. other: messages without meaning for the measurement, by name."""

    peer: str
    mode: str
    query: str
    ok: bool
    steps: tuple[Step, ...]
    departure: Departure | None = None
    other: dict[str, int] = {}
    recording: str = ""


def check_turn(header: Header, events: Sequence[Event], agent: Int16) -> PeerCheck:
    """Judge the first turn of a session. agent: the received audio, shape (n,), int16, at `header.agent.rate_hz`."""
    turn = TurnEvents(header, events, agent)
    steps = _with_errors(turn, _foreign(turn, [look(turn) for look in LOOKS]))
    steps = _silenced(steps)
    return PeerCheck(
        peer=header.peer.label,
        mode=header.mode,
        query=header.queries[0] if header.queries else "",
        ok=all(step.state != "failed" for step in steps),
        steps=tuple(steps),
        departure=_departure(turn, steps),
        other=dict(Counter(event.name for event in turn.of(RawReceived)).most_common(20)),
    )


def _with_errors(turn: TurnEvents, steps: list[Step]) -> list[Step]:
    """An error of the peer that stopped nothing is a warning at the step that was next when it came."""
    failed = _first_failed(steps)
    for error in turn.of(PeerError):
        later = [index for index, step in enumerate(steps) if step.seq > error.seq]
        if later and later[0] < failed and steps[later[0]].state == "ok":
            step = steps[later[0]]
            detail = f"before it, an error that stopped nothing: {said_by(error)}"
            steps[later[0]] = msgspec.structs.replace(step, state="warn", detail=detail)
    return steps


def _foreign(turn: TurnEvents, steps: list[Step]) -> list[Step]:
    """Where the turn failed and the peer had not known our first messages, it was the session that failed."""
    names = [step.name for step in steps]
    session, sent = names.index("session"), names.index("audio sent")
    failed = _first_failed(steps)
    unknown = turn.first(PeerError, lambda error: is_foreign(error.message))
    if unknown is None or not session < failed < len(steps) or unknown.seq > steps[sent].seq >= 0:
        return steps
    step = msgspec.structs.replace(steps[session], state="failed", detail="", seq=-1)
    return [*steps[:session], step, *steps[session + 1 :]]


def _first_failed(steps: list[Step]) -> int:
    return next((index for index, step in enumerate(steps) if step.state == "failed"), len(steps))


def _silenced(steps: list[Step]) -> list[Step]:
    """After a failed step those that rest on it tell nothing more."""
    failed = _first_failed(steps)
    return [
        step
        if index <= failed or (step.seq >= 0 and step.state != "failed")
        else msgspec.structs.replace(step, state="skipped", detail="not reached")
        for index, step in enumerate(steps)
    ]


def _departure(turn: TurnEvents, steps: list[Step]) -> Departure | None:
    for wanted in ("failed", "warn"):
        for index, step in enumerate(steps):
            if step.state != wanted:
                continue
            before = max((each.seq for each in steps[:index]), default=-1)
            instead = _instead(turn, before) if step.state == "failed" else ""
            if step.detail and instead == NOTHING:
                instead = ""
            error = turn.first(PeerError, lambda e, before=before: e.seq > before)  # type: ignore[misc]
            strange = step.name == "session" and bool(_meaningless(turn, before))
            hint = hint_for(step.name, error, turn.header, understood=not strange)
            details = () if step.name == "reach" else (step.detail,)
            said = "; ".join(part for part in (*details, instead) if part)
            return Departure(step=step.name, state=step.state, expected=step.expected, instead=said, hint=hint)
    return None


def _instead(turn: TurnEvents, after: int) -> str:
    """What came in place of a step: the peer's own words, the end of the connection, other messages, or nothing."""
    raw = _meaningless(turn, after)
    names = ", ".join(f"{name} ({count})" if count > 1 else name for name, count in raw.most_common(5))
    only = f"only messages without a meaning here: {names}"
    error = turn.first(PeerError, lambda e: e.seq > after)
    if error is not None:
        waited_for = raw and error.code == "timeout"
        return f"the error {said_by(error)}" + (f"; {only}" if waited_for else "")
    closed = turn.first(ConnectionClosed, lambda e: e.seq > after and e.by != "us")
    if closed is not None:
        return closing(closed)
    ended = turn.first(TurnEnded)
    waited = ended.reason if ended and ended.outcome == "timeout" else NOTHING
    return f"{waited}; {only}" if raw else waited


def _meaningless(turn: TurnEvents, after: int) -> Counter[str]:
    return Counter(event.name for event in turn.of(RawReceived) if event.seq > after)
