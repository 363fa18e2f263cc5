"""What became of a turn: one word, and why it is not `ok`. The words of all turns sum to the turns.

In this order: never started -> `not_run` (`peer_error` for the query that the failed connection was opened for); an
answer with audio -> by the first used response; an answer without audio; early answers only -> `early`; nothing at
all -> what the peer or the runner said. The runner's own outcome only tells `timeout`, `peer_error` and `not_run`
apart where the peer said nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from harness.core.audio import NS_PER_S
from harness.core.events import ConnectionClosed, Event, PeerError
from scoring.timing.anchors import Anchors
from scoring.timing.listener import JOIN_NS
from scoring.timing.response import Response
from scoring.timing.turn import Turn

Word = Literal["ok", "early", "silent", "timeout", "peer_error", "cancelled", "not_run"]
GOING_ON_NS = 2 * NS_PER_S
"""Longest pause at the time limit after which an answer still counts as going on: longer than any pause of speech."""
WORDS: tuple[Word, ...] = ("ok", "early", "silent", "timeout", "peer_error", "cancelled", "not_run")


class Status(msgspec.Struct, frozen=True, kw_only=True):
    word: Word
    reason: str = ""


def status_of(turn: Turn, anchors: Anchors) -> Status:
    """The status of one turn."""
    if turn.started is None or (turn.ended is not None and turn.ended.outcome == "not_run"):
        return _never(turn)
    if turn.session.header.profile.continuous:
        return _continuous(turn)
    if turn.used:
        return _answered(turn, anchors)
    if turn.later:
        return _without_audio(turn)
    if turn.early:
        return Status(word="early", reason="answered only before the query was over")
    return _nothing(turn)


def error_of(turn: Turn, status: Status) -> str | None:
    """The peer's first error line in the turn (`code: message`), else, in a turn that is not ok, why the connection
    was closed or what the runner saw."""
    errors = (event for event in _within(turn) if isinstance(event, PeerError))
    said = next((event for event in errors if event.fatal or turn.started is not None), None)
    if said is not None:
        return ": ".join(part for part in (said.code, said.message) if part) or "the peer reported an error"
    if status.word in ("ok", "early", "silent"):
        return None
    closed = _closed(turn)
    if closed is not None:
        return _closing(closed)
    if turn.ended is not None and turn.ended.outcome in ("error", "closed") and turn.ended.reason:
        return turn.ended.reason
    return None


def _never(turn: Turn) -> Status:
    ended = turn.ended
    reason = ended.reason if ended is not None and ended.outcome == "not_run" else ""
    if turn.index == 0 and error_of(turn, Status(word="not_run")) is not None:
        return Status(word="peer_error", reason=reason or "the session failed before the query could be sent")
    if turn.index == 0 and ended is not None and ended.outcome == "timeout":
        return Status(word="timeout", reason=ended.reason or "the session was not ready in time")
    return Status(word="not_run", reason=reason or "the session ended before this query")


def _continuous(turn: Turn) -> Status:
    if turn.utterance is not None:
        closed = _closed(turn)
        if closed is not None and closed.t_ns - turn.utterance.end_ns < JOIN_NS:
            return Status(word="peer_error", reason="the session ended in the middle of the answer")
        return Status(word="ok")
    if turn.early_utterances:
        return Status(word="early", reason="spoke only before the query was over")
    if _peer_failed(turn) or any(isinstance(event, PeerError) for event in _within(turn)):
        return Status(word="peer_error", reason="the peer failed before it spoke")
    if turn.recording.packets:
        return Status(word="silent", reason="the peer's audio never became audible")
    return _nothing(turn)


def _answered(turn: Turn, anchors: Anchors) -> Status:
    first = turn.used[0]
    if turn.ended is not None and turn.ended.outcome == "timeout" and first.packets[0].seq > turn.ended.seq:
        return Status(word="timeout", reason="the answer came after the time limit")
    if any(response.completed for response in turn.used) or _finished(first):
        if turn.recording.listener.audible(first.packets):
            return Status(word="ok")
        reason = getattr(anchors.first_audible, "reason", "")
        return Status(word="silent", reason=reason or "the answer never becomes audible")
    return _unfinished(turn, first)


def _without_audio(turn: Turn) -> Status:
    first = turn.later[0]
    if any(_finished(response) for response in turn.later):
        return Status(word="silent", reason="the answer has no audio")
    return _unfinished(turn, first)


def _finished(response: Response) -> bool:
    """Ended by the peer itself: completed, or cut short by a limit of its own."""
    return response.done is not None and not response.cancelled and not response.failed


def _unfinished(turn: Turn, response: Response) -> Status:
    if response.failed:
        said = response.done.reason if response.done else ""
        return Status(word="peer_error", reason=said or "the peer's answer failed")
    if response.cancelled:
        return Status(word="cancelled", reason="the answer was cancelled")
    if _peer_failed(turn):
        return Status(word="peer_error", reason="the session ended in the middle of the answer")
    if turn.ended is not None and turn.ended.outcome == "timeout" and not _going_on(turn, response, turn.ended.t_ns):
        return Status(word="timeout", reason="the answer was not over in time")
    if not response.packets:
        return Status(word="silent", reason="the answer has no audio")
    if turn.recording.listener.audible(response.packets):
        return Status(word="ok")
    return Status(word="silent", reason="the answer never becomes audible")


def _going_on(turn: Turn, response: Response, at_ns: int) -> bool:
    """Whether the answer was still being heard at `at_ns`, or had been until shortly before: then the time limit cut a
    long answer, not a hung one."""
    heard = [turn.recording.listener.played[packet.seq].end_ns for packet in response.packets]
    return bool(heard) and max(heard) >= at_ns - GOING_ON_NS


def _nothing(turn: Turn) -> Status:
    if _peer_failed(turn) or any(isinstance(event, PeerError) for event in _within(turn)):
        return Status(word="peer_error", reason="the peer failed before it answered")
    if turn.ended is not None and turn.ended.outcome == "interrupted":
        return Status(word="cancelled", reason="the turn was called off before an answer")
    if turn.anchor_packet is None and turn.recording.sent:
        return Status(word="not_run", reason="the query was not sent to its end")
    return Status(word="timeout", reason="no answer")


def _peer_failed(turn: Turn) -> bool:
    """The connection was lost or a fatal error came while the turn was under way, or the runner says so."""
    if turn.ended is not None and turn.ended.outcome in ("error", "closed"):
        return True
    if turn.ended is not None and turn.ended.outcome == "answered":
        return False
    return _closed(turn) is not None or any(isinstance(event, PeerError) and event.fatal for event in _within(turn))


def _closed(turn: Turn) -> ConnectionClosed | None:
    """The closing that was not ours, in the turn's own time."""
    return next((e for e in _within(turn) if isinstance(e, ConnectionClosed) and e.by != "us"), None)


def _closing(closed: ConnectionClosed) -> str:
    code = f" ({closed.code})" if closed.code is not None else ""
    return f"closed by the {closed.by}{code}: {closed.reason}" if closed.reason else f"closed by the {closed.by}{code}"


def _within(turn: Turn) -> Iterator[Event]:
    """Events recorded in the turn: from its `TurnStarted` (the first turn: from the beginning) to its `TurnEnded`, or
    to the next turn. A turn that never started: all, as whatever ended the session is why."""
    if turn.started is None:
        return iter(turn.session.events)
    last = turn.last_seq if turn.ended is None else min(turn.last_seq, turn.ended.seq)
    return iter(turn.session.events[turn.first_seq : last])
