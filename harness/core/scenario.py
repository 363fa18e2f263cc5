"""What the runner needs to know of a scenario: who it is, and somebody who directs it (`scenarios.play` makes both)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, Self

from harness.core.audio import Int16
from harness.core.events import ScenarioEvent

EndRule = Literal["", "response_done", "playback_stopped"]
"""The peer's own word that its turn is over; "": it gave none."""


class Placed(Protocol):
    """An event of the user's side that is put now: `samples` go to sample `clip_sample` of the user's stream."""

    @property
    def samples(self) -> Int16: ...

    @property
    def clip_sample(self) -> int: ...

    @property
    def speech_end(self) -> int: ...

    @property
    def missed(self) -> str:
        """What of the agent was waited for in vain, "" if nothing."""
        ...

    def record(self, t_ns: int, *, category: str = "", tags: tuple[str, ...] = ()) -> ScenarioEvent:
        """What the session records of it."""
        ...


class Directing(Protocol):
    """Directs one session. Instants are on the session's clock and may lie in the future."""

    def agent_started(self, heard_ns: int) -> None: ...

    def agent_stopped(self, heard_ns: int, *, final: EndRule = "") -> None: ...

    def agent_wrote(self, t_ns: int) -> None:
        """Text of its answer came: it has not ended."""
        ...

    def agent_flushed(self, heard_ns: int) -> None: ...

    def advance(self, now_ns: int, position: int, *, behind_ns: int = 0) -> Sequence[Placed]:
        """The events to put now; `position` is the first sample that can still be changed. behind_ns: how far the one
        who tells of the agent may be behind."""
        ...

    def over(self, now_ns: int) -> bool: ...


class Play(Protocol):
    """A scenario at one rate, planned like a query. linger_ms: the scenario's own wish (None: it has none)."""

    @property
    def id(self) -> str: ...

    @property
    def language(self) -> str: ...

    @property
    def category(self) -> str: ...

    @property
    def tags(self) -> tuple[str, ...]: ...

    @property
    def instructions(self) -> str: ...

    @property
    def history(self) -> Sequence[tuple[str, str]]:
        """(role, text) of each turn before the session."""
        ...

    @property
    def linger_ms(self) -> int | None: ...

    @property
    def rules(self) -> dict[str, int]:
        """The parameters by which the agent's turns are told apart, for the session's record."""
        ...

    def at_rate(self, rate_hz: int) -> Self: ...

    def hangs_on_agent(self, repeat: int) -> bool:
        """Whether a place in the stream, or the session's end, is found by listening to the agent."""
        ...

    def direct(self, repeat: int, start_ns: int, ahead_samples: int) -> Directing:
        """A director for a session whose user stream begins at `start_ns`."""
        ...
