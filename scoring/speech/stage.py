"""One speech stage (ASR, MOS or emotion) over many answers: what is cached is taken, the rest computed by length."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Self

import msgspec

from harness.core.scorer import Unscored
from harness.engines.asr import Transcript
from harness.engines.clip_engine import EngineSpec, Kind
from harness.engines.pool import EnginePool
from scoring.speech.answer import Answer
from scoring.stage_cache import StageCache, key_of

Progress = Callable[[int, int, float], None]
"""Called with (answers done, answers in all, seconds of sound still to be heard)."""

_TYPES: dict[Kind, Any] = {"asr": Transcript, "mos": float, "emotion": dict[str, float]}


class Heard(NamedTuple):
    """What came of one answer: `Transcript` (asr), 1 to 5 (mos), label to probability (emotion), or Unscored.

    cached: it was known from an earlier run.
    """

    key: str
    value: Any | Unscored
    cached: bool


class SpeechStage:
    """One engine with its workers and cache; a context manager, since the workers are processes.

    name, fingerprint: the engine's, see `harness.engines.clip_engine.ClipEngine`. workers: see `EnginePool`. The cache
    may be shared with other stages, not with other threads. Raises what `make_engine` raises.
    """

    def __init__(self, spec: EngineSpec, cache: StageCache, *, workers: int | None = None) -> None:
        self._pool = EnginePool(spec, workers=workers)
        self._cache = cache
        self._kind = spec.kind
        self.name = self._pool.engine.name
        self.fingerprint = self._pool.engine.fingerprint

    def run(self, answers: Iterable[Answer], progress: Progress | None = None) -> Iterator[Heard]:
        """Every answer once: cached ones first, then the others as they are done, longest first. Equal sounds are
        computed once. Not for an event loop: iterate in a thread.

        Raises ConfigError or PrerequisiteError when the engine cannot be loaded or the cache's disk is full. A clip
        that fails is Unscored, and tried again by the next run.
        """
        listed = list(answers)
        fresh: dict[str, list[Answer]] = {}
        done = 0
        for answer in listed:
            key = self._key(answer)
            known = self._known(key)
            if known is None:
                fresh.setdefault(key, []).append(answer)
                continue
            done += 1
            yield Heard(answer.key, known, True)
        # Longest first: batches are of like length, and no long clip is left over for one worker at the end.
        order = sorted(fresh, key=lambda key: -fresh[key][0].seconds)
        left_s = sum(fresh[key][0].seconds for key in order)
        tell = progress or (lambda done, total, left_s: None)
        tell(done, len(listed), left_s)
        for outcome in self._pool.stream([fresh[key][0].load for key in order]):
            key = order[outcome.at]
            if not isinstance(outcome.value, Unscored):
                self._cache.put(key, msgspec.to_builtins(outcome.value))
            left_s -= fresh[key][0].seconds
            done += len(fresh[key])
            tell(done, len(listed), max(left_s, 0.0))
            for answer in fresh[key]:
                yield Heard(answer.key, outcome.value, False)

    def _key(self, answer: Answer) -> str:
        return key_of(self._kind, answer.sha256, self.fingerprint)

    def _known(self, key: str) -> Any:
        if key not in self._cache:
            return None
        try:
            return msgspec.convert(self._cache.get(key), _TYPES[self._kind])
        except msgspec.ValidationError:
            return None  # a line from another version: computed anew

    def close(self) -> None:
        """End the workers."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
