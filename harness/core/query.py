"""What the runner needs to know of something that is said: samples and the marks of the speech in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self, runtime_checkable

from harness.core.audio import Int16
from harness.core.item import Item


class Query(Protocol):
    """One spoken query (`scenarios.clip.Clip` is one).

    samples: mono int16, shape (n,), at `rate_hz`. speech_start, speech_end: first and one past the last sample of
    speech. annotator: who set the marks (`manifest` or an annotator's name and version). sha256: of the sound as it was
    loaded, of an impaired one of `samples`. impairment: what was done to the clean sound ("": nothing).
    """

    @property
    def id(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def language(self) -> str: ...

    @property
    def rate_hz(self) -> int: ...

    @property
    def samples(self) -> Int16: ...

    @property
    def speech_start(self) -> int: ...

    @property
    def speech_end(self) -> int: ...

    @property
    def annotator(self) -> str: ...

    @property
    def sha256(self) -> str: ...

    @property
    def impairment(self) -> str: ...

    def at_rate(self, rate_hz: int) -> Self:
        """The whole clip resampled, delay-compensated, its marks mapped."""
        ...


@runtime_checkable
class Deferred(Protocol):
    """A query whose sound is read only when its session is about to begin. It can be sent to another process."""

    def loaded(self) -> Query:
        """The same query with its sound. Takes its time, so it is never called where something is measured."""
        ...


@runtime_checkable
class Posed(Protocol):
    """What a benchmark's query says beside its sound. history: (role, text) of the rounds before it. missing: why it
    cannot be said, or empty."""

    @property
    def item(self) -> Item: ...

    @property
    def history(self) -> Sequence[tuple[str, str]]: ...

    @property
    def missing(self) -> str: ...
