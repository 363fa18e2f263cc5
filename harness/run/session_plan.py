"""One session to be held: how, what is said in it, and what became of it. Holding it is `harness.run.runner`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from harness.core.errors import ConnectorError
from harness.core.profile import TurnControl

REOPENED = "~"
"""Stands before the number in the id of a session that takes over: `00003-q~2`."""

TurnEnd = Literal["answered", "timeout", "closed", "error", "not_run"]


class SessionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How every session of a run is held. chunk_ms None: the peer's wish, else 20. linger_ms: how long a session stays
    open after its last answer, so that late packets are recorded."""

    turn: TurnControl = "vad"
    chunk_ms: int | None = None
    commit_after: Literal["speech", "clip"] = "speech"
    timeout_s: float = 30.0
    instructions: str | None = None
    voice: str | None = None
    model: str | None = None
    audio_format: Literal["flac", "wav"] = "flac"
    linger_ms: int = 100


class SessionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One session to run: its id and the queries of its turns, at the peer's input rate. takes_over: the peer ended the
    session before too soon."""

    id: str
    queries: tuple[Any, ...]
    repeat: int = 0
    warmup: bool = False
    takes_over: bool = False

    def rest(self, done: int) -> SessionPlan:
        """A session for the queries from `done` on."""
        root, dot, number = self.id.rpartition(REOPENED)
        name = f"{root}{REOPENED}{int(number) + 1}" if dot and number.isdigit() else f"{self.id}{REOPENED}2"
        return msgspec.structs.replace(self, id=name, queries=self.queries[done:], takes_over=True)


class SessionResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the runner saw, for progress and for deciding whether to go on; figures come from scoring.

    rest: the queries that are left since the peer ended the session before them. resume_ns: when the peer, which spoke
    of a rate limit, may be asked again (0: it did not). connected: false where nothing could be said, so that the peer
    was left alone.
    """

    plan: SessionPlan
    outcomes: tuple[TurnEnd, ...]
    reason: str = ""
    error: ConnectorError | None = None
    rest: SessionPlan | None = None
    resume_ns: int = 0
    connected: bool = True

    @property
    def answered(self) -> bool:
        return "answered" in self.outcomes
