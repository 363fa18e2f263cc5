"""A scenario: what the user's side does on a timeline, and what the agent should do about it. No audio, no clock.

Reading YAML is `scenarios.scenario_file`'s work, turning it into samples `scenarios.compiler`'s.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

Source = Literal["say", "noise", "other_speaker"]
Anchor = Literal["session_start", "user_end", "agent_start", "agent_end"]
Expect = Literal["respond", "stop", "keep_talking", "stay_silent"]
Kind = Literal["turn", "backchannel", "tic", "non_directed", "noise", "other_speaker"]

SOURCES: tuple[str, ...] = get_args(Source)
ANCHORS: tuple[str, ...] = get_args(Anchor)
EXPECTATIONS: tuple[str, ...] = get_args(Expect)
KINDS_OF_SPEECH: tuple[str, ...] = ("turn", "backchannel", "tic", "non_directed")
"""What `say` may be: meant as a turn, a sign of listening, a sound like a sigh, words for somebody else."""

GENERATED_NOISE: tuple[str, ...] = ("white", "pink", "babble")
"""Noises that are made, not loaded; a clip of one of these names is never looked for."""
START_DELAY_MS = 500
"""Silence before an event at session start that names no delay: detectors of speech start cold."""
AGENT_START_TIMEOUT_MS = 10_000
AGENT_END_TIMEOUT_MS = 30_000
LONGEST_MS = 600_000
"""Bound of every duration in a scenario: ten minutes."""
LONGEST_NOISE_MS = 120_000
"""Bound of a generated noise, which is held in memory whole."""
EARLIEST_MS = -10_000
"""Bound of a negative delay."""


class HistoryTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn of the conversation that the peer is told took place before the session."""

    role: Literal["user", "assistant"]
    text: str


class UserEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One thing on the user's side.

    source, clip: `say` (the user), `other_speaker` or `noise`, and the clip's id or the kind of a generated noise.
    at, after, delay_ms: the speech begins `delay_ms` after the anchor, which belongs to the event `after`: the end of
    its speech, or the start or end of the agent's speech that followed it ("" at session start). jitter_ms: lowest and
    highest of a random time that is added. timeout_ms: how long after the end of `after` an agent's anchor is waited
    for. duration_ms: length of a generated noise. gain_db: level change of the clip. where: file:line:column.
    """

    id: str
    source: Source
    clip: str
    at: Anchor
    after: str = ""
    delay_ms: int = 0
    jitter_ms: tuple[int, int] = (0, 0)
    timeout_ms: int = 0
    kind: Kind
    expect: Expect
    duration_ms: int = 0
    gain_db: float = 0.0
    tags: tuple[str, ...] = ()
    where: str = ""

    @property
    def generated(self) -> bool:
        """Whether the sound is made by a noise generator instead of loaded."""
        return self.source == "noise" and self.clip in GENERATED_NOISE


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation as the user's side plans it; events in the order of the file, each `after` names an earlier one.

    linger_ms: how long the session stays open after the last event's speech (None: until the answer is over).
    """

    id: str
    events: tuple[UserEvent, ...]
    title: str = ""
    language: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    instructions: str = ""
    history: tuple[HistoryTurn, ...] = ()
    impairments: tuple[str, ...] = ()
    linger_ms: int | None = None
    where: str = ""

    @property
    def clips(self) -> tuple[str, ...]:
        """Ids of the clips that must be there, each once, in order of use."""
        return tuple(dict.fromkeys(event.clip for event in self.events if not event.generated))
