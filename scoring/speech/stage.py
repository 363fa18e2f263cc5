"""One speech stage (ASR, MOS or emotion) over many answers: what is cached is taken, the rest computed by length."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Self

from harness.core.scorer import Unscored
from harness.engines.clip_engine import EngineSpec
from scoring.speech.answer import Answer
from scoring.stage_cache import StageCache

Progress = Callable[[int, int, float], None]
"""Called with (answers done, answers in all, seconds of sound still to be heard)."""


class Heard(NamedTuple):
    """What came of one answer: text (ASR), 1 to 5 (MOS), label to probability (emotion); Unscored with the reason."""

    key: str
    value: Any | Unscored
    cached: bool


class SpeechStage:
    """One engine with its workers and cache; a context manager, since the workers are processes.

    name, fingerprint: the engine's; see `harness.engines.clip_engine.ClipEngine`. Raises what `make_engine` raises.
    """

    name: str
    fingerprint: str

    def __init__(self, spec: EngineSpec, cache: StageCache, *, workers: int | None = None) -> None:
        raise NotImplementedError

    def run(self, answers: Iterable[Answer], progress: Progress | None = None) -> Iterator[Heard]:
        """Every answer once, cached ones first, then as they are done. Not for an event loop: iterate in a thread.

        Raises ConfigError or PrerequisiteError when the engine itself cannot be loaded; a clip that fails is Unscored
        (and tried again by the next run).
        """
        raise NotImplementedError

    def close(self) -> None:
        """End the workers."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
