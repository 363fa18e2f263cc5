"""Who holds the floor: the agent's utterances, what each event demands, and which utterance answers which event.

Definitions in DUPLEX.md. Pure functions of a conversation; all comparisons are on integer nanoseconds.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import msgspec

from harness.core.audio import NS_PER_MS
from scoring.duplex.spans import Conversation, Ordered, Span, UserSpan, Utterance, merge

Demand = Literal["respond", "stop", "keep_talking", "stay_silent"]
_SPEECH = frozenset({"turn", "interruption"})
"""Kinds of user events that ask for an answer where a scenario does not say what it expects."""
_FOREVER_NS = 2**63 - 1


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """Recorded choices, all in ms.

    join: shorter silences do not end an utterance of which only the sound is known. backchannel: longest agent
    backchannel. touch: an agent that starts this short a time before the user's end (or less) does not interrupt; the
    reach of the spans' refinement. yield_within: a stop later than this after the onset is no yield. keep: how long
    after the end of a backchannel (or noise) the agent must go on. stray: how long after the end of what asks for no
    answer a start is booked on it. resume: how long a resumption may take. miss: an answer that has not begun this long
    after the user's end, in a recording that goes on at least as long, is missed.
    """

    join_ms: int = 600
    backchannel_ms: int = 1000
    touch_ms: int = 100
    yield_within_ms: int = 2000
    keep_ms: int = 1000
    stray_ms: int = 2000
    resume_ms: int = 3000
    miss_ms: int = 5000


class Floor:
    """A conversation worked out; each part on first use."""

    def __init__(self, conversation: Conversation, parameters: Parameters | None = None) -> None:
        self.conversation = conversation
        self.parameters = parameters or Parameters()
        self.user: tuple[UserSpan, ...] = conversation.user
        self.end_ns = conversation.end_ns

    def ns(self, name: str) -> int:
        """A parameter by its name without the unit."""
        return int(getattr(self.parameters, f"{name}_ms")) * NS_PER_MS

    @cached_property
    def utterances(self) -> tuple[Utterance, ...]:
        """As the session tells them; else the agent's spans joined across silences under `join_ms`. Those that begin
        when listening ends are left out."""
        told = self.conversation.utterances
        if told is None:
            joined = merge(self.conversation.agent, self.ns("join") - 1)
            told = tuple(Utterance(span.start_ns, span.end_ns) for span in joined)
        return tuple(utterance for utterance in told if utterance.start_ns < self.end_ns)

    @cached_property
    def _by_time(self) -> Ordered[Utterance]:
        return Ordered(self.utterances)

    @cached_property
    def _agent(self) -> Ordered[Span]:
        return Ordered(self.conversation.agent)

    def heard_during(self, span: Span) -> list[Span]:
        """The agent's speech that sounds in `span`, and perhaps some before it."""
        return self._agent.near(span)

    def censored(self, span: Span) -> bool:
        """Whether listening ended during `span`."""
        return span.end_ns >= self.end_ns

    @cached_property
    def holders(self) -> tuple[Utterance | None, ...]:
        """For each event, the utterance that holds the floor at its onset: start <= onset < end."""
        return tuple(self._by_time.holding(event.start_ns) for event in self.user)

    @cached_property
    def demands(self) -> tuple[Demand, ...]:
        """What each event asks of the agent: its `expect`; where there is none, speech asks for an answer, anything
        else asks the agent to go on with what it does."""
        return tuple(_demand(event, holder) for event, holder in zip(self.user, self.holders, strict=True))

    def claims(self, index: int) -> bool:
        """Whether the event claims the floor (`respond` or `stop`)."""
        return self.demands[index] in ("respond", "stop")

    def next_claim_ns(self, index: int) -> int | None:
        """Onset of the next event that claims the floor, if there is one."""
        return self._next_claims[index]

    @cached_property
    def _next_claims(self) -> list[int | None]:
        found: list[int | None] = []
        next_ns: int | None = None
        for index in range(len(self.user) - 1, -1, -1):
            found.append(next_ns)
            next_ns = self.user[index].start_ns if self.claims(index) else next_ns
        return found[::-1]

    @cached_property
    def answers(self) -> dict[int, Utterance]:
        """Event to answer: of what starts after the event's onset and before the next claim's, the first utterance that
        ends after the user does and is no backchannel."""
        found: dict[int, Utterance] = {}
        for index, event in enumerate(self.user):
            if not self.claims(index):
                continue
            next_ns = self.next_claim_ns(index)
            for utterance in self.starts_between(event.start_ns, _FOREVER_NS if next_ns is None else next_ns):
                if utterance.end_ns > event.end_ns and not self._backchannels(utterance, event):
                    found[index] = utterance
                    break
        return found

    @cached_property
    def answering(self) -> frozenset[Utterance]:
        """All that is an answer to something."""
        return frozenset(self.answers.values())

    def starts_between(self, after_ns: int, before_ns: int) -> list[Utterance]:
        """Utterances that start after `after_ns` and before `before_ns`."""
        return self._by_time.starting(after_ns, before_ns)

    def next_from(self, t_ns: int) -> Utterance | None:
        """The first utterance that starts at `t_ns` or later."""
        return self._by_time.next_from(t_ns)

    def starts_inside(self, index: int) -> list[Utterance]:
        """Utterances that start during the event, more than `touch_ms` before its end."""
        event = self.user[index]
        return self.starts_between(event.start_ns, event.end_ns - self.ns("touch"))

    def backchannels(self, index: int) -> list[Utterance]:
        """The agent's short ones that start inside the event."""
        return [u for u in self.starts_inside(index) if self._backchannels(u, self.user[index])]

    def interruptions(self, index: int) -> list[Utterance]:
        """Whatever else of the agent's starts inside the event."""
        return [u for u in self.starts_inside(index) if not self._backchannels(u, self.user[index])]

    def _backchannels(self, utterance: Utterance, event: UserSpan) -> bool:
        """Short, begun inside the user's speech, and neither broken off nor cut by the end of listening."""
        inside = event.start_ns < utterance.start_ns < event.end_ns - self.ns("touch")
        short = utterance.length_ns <= self.ns("backchannel")
        return inside and short and utterance.natural is not False and not self.censored(utterance)


def _demand(event: UserSpan, holder: Utterance | None) -> Demand:
    if event.expect:
        return _EXPECTED[event.expect]
    if event.kind in _SPEECH:
        return "respond"
    return "stay_silent" if holder is None else "keep_talking"


_EXPECTED: dict[str, Demand] = {
    "respond": "respond",
    "stop": "stop",
    "keep_talking": "keep_talking",
    "stay_silent": "stay_silent",
}
