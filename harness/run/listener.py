"""One session in the process that hears: what there is to hear, in order, and what it tells. No clock, no I/O."""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import numpy as np

from harness.core.audio import Int16, pcm16_to_int16, samples_to_ns
from harness.core.speech_edges import is_silent
from harness.engines.vad import StreamingVad
from harness.run.ear_channel import Conclude, Concluded, Flush, FromEar, Sound, Started, Stopped
from harness.run.speech_finder import PRIME_FRAMES, Boundary, SpeechFinder

BLOCK_MS = 32
"""What is heard in one turn: a frame of the network, about 0.6 ms of a core."""


class _Todo(NamedTuple):
    """Something to hear, int16 of shape (n,). start_ns: of its first sample. silent: a pause, or a packet without
    sound. order, part: of its message."""

    order: int
    samples: Int16
    rate_hz: int
    start_ns: int
    silent: bool
    part: bool


class Listener:
    """`take` each message, `hear` a block at a time, and pass on what that tells."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._epoch = 0
        self._vad = StreamingVad()
        self._todo: deque[_Todo | tuple[int, Conclude]] = deque()
        self._part = False
        self._last_ns = 0
        self._begin()

    @property
    def busy(self) -> bool:
        """Whether there is something to hear."""
        return bool(self._prime or self._todo)

    @property
    def due_ns(self) -> float:
        """When the next of it is heard; infinite where silence before the first word is all there is."""
        if not self._todo:
            return math.inf
        todo = self._todo[0]
        return todo.start_ns if isinstance(todo, _Todo) else todo[1].end_ns

    @property
    def order(self) -> int | None:
        """Of the oldest message that is not heard yet."""
        return self._todo[0][0] if self._todo else None

    def take(self, order: int, message: Sound | Conclude | Flush) -> None:
        """A message of this session; `order` ascends."""
        if isinstance(message, Flush):
            self._epoch = message.epoch
            self._todo.clear()
            self._begin()
        elif isinstance(message, Conclude):
            self._todo.append((order, message))
        elif message.start_ns is None:
            silence = np.zeros(message.samples, dtype=np.int16)
            self._todo.append(_Todo(order, silence, message.rate_hz, self._last_ns, True, message.part))
        else:
            samples = pcm16_to_int16(message.pcm)
            silent = is_silent(samples, message.rate_hz)
            self._last_ns = message.start_ns
            self._todo.append(_Todo(order, samples, message.rate_hz, message.start_ns, silent, message.part))

    def hear(self) -> list[FromEar]:
        """Hear a block; what it tells."""
        if self._prime:
            self._prime -= 1
            self._finder.prime()
            return []
        if not self._todo:
            return []
        todo = self._todo.popleft()
        return self._hear(todo) if isinstance(todo, _Todo) else self._conclude(todo[1])

    def _hear(self, todo: _Todo) -> list[FromEar]:
        self._part = todo.part
        n = todo.rate_hz * BLOCK_MS // 1000
        if len(todo.samples) > n:
            rest_ns = todo.start_ns + samples_to_ns(n, todo.rate_hz)
            self._todo.appendleft(todo._replace(samples=todo.samples[n:], start_ns=rest_ns))
        start_ns = None if todo.silent else todo.start_ns
        return [self._tell(each) for each in self._finder.hear(todo.samples[:n], todo.rate_hz, start_ns)]

    def _conclude(self, message: Conclude) -> list[FromEar]:
        found = self._finder.finish()
        stop = found.pop() if found and found[-1].kind == "stop" else None
        told = [self._tell(each) for each in found]
        self._begin()
        t_ns = None if stop is None else min(stop.t_ns, message.end_ns)
        return [*told, Concluded(self._number, self._epoch, t_ns, message.final)]

    def _tell(self, found: Boundary) -> FromEar:
        if found.kind != "stop":
            return Started(self._number, self._epoch, found.t_ns, found.kind == "moved")
        return Stopped(self._number, self._epoch, found.t_ns, self._part)

    def _begin(self) -> None:
        """Forget what was heard, and be ready for the next word."""
        self._finder = SpeechFinder(self._vad)
        self._prime = PRIME_FRAMES
