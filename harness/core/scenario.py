"""What the runner needs to know of a scenario: who it is, and somebody who directs it (`scenarios.play` makes both)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

from harness.core.audio import Int16
from harness.core.events import ScenarioEvent


class Placed(Protocol):
    """An event of the user's side that is put now: `samples` go to sample `clip_sample` of the user's stream."""

    @property
    def samples(self) -> Int16: ...

    @property
    def clip_sample(self) -> int: ...

    @property
    def speech_end(self) -> int: ...

    def record(self, t_ns: int, *, category: str = "", tags: tuple[str, ...] = ()) -> ScenarioEvent:
        """What the session records of it."""
        ...


class Directing(Protocol):
    """Directs one session. Instants are on the session's clock and may lie in the future."""

    def agent_started(self, heard_ns: int) -> None: ...

    def agent_stopped(self, heard_ns: int, *, final: bool = False) -> None: ...

    def agent_flushed(self, heard_ns: int) -> None: ...

    def advance(self, now_ns: int, position: int) -> Sequence[Placed]:
        """The events to put now; `position` is the first sample that can still be changed."""
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

    def at_rate(self, rate_hz: int) -> Self: ...

    def direct(self, repeat: int, start_ns: int, ahead_samples: int) -> Directing:
        """A director for a session whose user stream begins at `start_ns`."""
        ...
