"""Clips read one batch at a time, and a batch run so that one bad clip costs only itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.core.errors import HarnessError
from harness.core.scorer import Unscored
from harness.engines.clip_engine import Clip, ClipEngine, Load

_SHARE = 3
"""Towards the end batches shrink to a third of a worker's share, so that the workers end together."""


class Outcome(NamedTuple):
    """What became of load number `at`: the engine's result, or why there is none."""

    at: int
    value: Any | Unscored


class Batch(NamedTuple):
    """Clips, and where they stand among the loads."""

    indices: list[int]
    clips: list[Clip]

    def singles(self) -> list[Batch]:
        return [Batch([index], [clip]) for index, clip in zip(self.indices, self.clips, strict=True)]


class BatchReader:
    """Reads `loads` in order into batches of at most `most`; what cannot be read is told by `failures`."""

    def __init__(self, loads: Sequence[Load], *, most: int, workers: int) -> None:
        self._loads = loads
        self._most = most
        self._workers = workers
        self._next = 0
        self._ahead: Batch | None = None
        self._failures: list[Outcome] = []

    @property
    def left(self) -> int:
        """Clips that no batch has been handed out for."""
        return len(self._loads) - self._next + (len(self._ahead.clips) if self._ahead else 0)

    def next(self) -> Batch | None:
        """The next batch, or None at the end."""
        self.prefetch()
        batch, self._ahead = self._ahead, None
        return batch

    def prefetch(self) -> None:
        """Read the batch that `next` will give, if there is one and it has not been read."""
        size = max(1, min(self._most, (len(self._loads) - self._next) // (self._workers * _SHARE)))
        while self._ahead is None and self._next < len(self._loads):
            batch = Batch([], [])
            while len(batch.clips) < size and self._next < len(self._loads):
                self._read(batch)
            self._ahead = batch if batch.clips else None

    def _read(self, batch: Batch) -> None:
        index = self._next
        self._next += 1
        try:
            clip = self._loads[index]()
            reason = _unusable(clip)
        except (HarnessError, OSError, ValueError, RuntimeError) as exc:
            # RuntimeError: soundfile's own errors derive from it.
            self._failures.append(Outcome(index, Unscored(reason=f"the sound cannot be read: {first_line(exc)}")))
            return
        if reason:
            self._failures.append(Outcome(index, Unscored(reason=reason)))
        else:
            batch.indices.append(index)
            batch.clips.append(clip)

    def failures(self) -> list[Outcome]:
        """The clips since the last call that could not be read."""
        failures, self._failures = self._failures, []
        return failures


def _unusable(clip: Clip) -> str:
    if len(clip.pcm) == 0:
        return "the answer has no sound"
    if not np.isfinite(clip.pcm).all():
        return "the sound holds values that are no numbers"
    return ""


def run_batch(engine: ClipEngine[Any], clips: Sequence[Clip]) -> list[Any | Unscored]:
    """Results in order; when the batch fails, each clip alone, and Unscored for one that still fails."""
    try:
        return list(engine.run(clips))
    except Exception as exc:  # noqa: BLE001 - whatever the packages behind the engine raise on one odd clip
        if len(clips) == 1:
            return [Unscored(reason=f"{engine.name} failed: {first_line(exc)}")]
    return [run_batch(engine, [clip])[0] for clip in clips]


def outcomes(batch: Batch, values: Sequence[Any | Unscored]) -> Iterator[Outcome]:
    return (Outcome(index, value) for index, value in zip(batch.indices, values, strict=True))


def first_line(exc: BaseException) -> str:
    """An error in one line, for a reason."""
    text = str(exc).strip()
    return text.splitlines()[0][:200] if text else type(exc).__name__
