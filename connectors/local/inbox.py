"""Where the worker's reading thread leaves what the model's thread has to do, in order."""

from __future__ import annotations

import threading
from collections import Counter, deque

from connectors.local.wire import Begin, Do, End
from harness.core.clock import Clock
from harness.core.commands import AppendAudio, Cancel

Order = Begin | Do | End
AUDIO_LIMIT = 1_500
"""Blocks of user audio that may wait (30 s of 20 ms): a model that is further behind never catches up."""


class Inbox:
    """A queue between two threads. full: more audio of one session waits than `AUDIO_LIMIT`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._orders: deque[Order] = deque()
        self._changed = threading.Condition()
        self._audio: Counter[int] = Counter()
        self._stops: Counter[int] = Counter()

    @property
    def full(self) -> bool:
        with self._changed:  # the other thread takes meanwhile
            return any(waiting > AUDIO_LIMIT for waiting in self._audio.values())

    @property
    def waiting(self) -> bool:
        return bool(self._orders)

    def stop_waits(self, session: int) -> bool:
        """Whether the session's answer is about to be cut off, so that nothing more of it should leave."""
        return session in self._stops

    def put(self, order: Order) -> None:
        with self._changed:
            self._orders.append(order)
            self._count(order, 1)
            self._changed.notify()

    def take(self, until_ns: int | None) -> Order | None:
        """The next order; waits for one until `until_ns` (None: for ever), then returns None."""
        with self._changed:
            while not self._orders:
                wait_s = None if until_ns is None else (until_ns - self._clock.now_ns()) / 1e9
                if wait_s is not None and wait_s <= 0:
                    return None
                self._changed.wait(wait_s)
            order = self._orders.popleft()
            self._count(order, -1)
            return order

    def _count(self, order: Order, by: int) -> None:
        if isinstance(order, End) or (isinstance(order, Do) and isinstance(order.command, Cancel)):
            self._add(self._stops, order.session, by)
        elif isinstance(order, Do) and isinstance(order.command, AppendAudio):
            self._add(self._audio, order.session, by)

    @staticmethod
    def _add(counts: Counter[int], session: int, by: int) -> None:
        counts[session] += by
        if not counts[session]:
            del counts[session]
