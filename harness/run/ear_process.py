"""The process that hears the agents of all sessions, away from the measuring loop, which runs no model.

Started by `harness.run.ear_desk` as `python -m harness.run.ear_process`; messages come on standard input, answers go to
standard output. Of all that there is to hear, the 32 ms that are played first come first: a burst, which is heard by
its listener over seconds, holds up no other session. Ignores Ctrl-C (the measuring process decides) and ends at the
end of its input.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading

from harness.core.audio import NS_PER_S
from harness.core.clock import Clock, SystemClock
from harness.run.channel import Unpacker, pack
from harness.run.ear_channel import Forget, FromEar, Progress, ToEar, for_ear
from harness.run.listener import Listener

READ_BYTES = 1 << 18
PROGRESS_NS = 100_000_000
MOST_READ = 10_000
"""Messages between the two threads; the sender bounds what is under way by bytes."""


class Room:
    """All listeners. `take` messages, `hear` the block that is due first."""

    def __init__(self) -> None:
        self._listeners: dict[int, Listener] = {}
        self._taken = 0

    @property
    def busy(self) -> bool:
        return any(listener.busy for listener in self._listeners.values())

    @property
    def done(self) -> int:
        """Messages that were done with, as far as none before them is left."""
        orders = [listener.order for listener in self._listeners.values()]
        return min((order for order in orders if order is not None), default=self._taken)

    def take(self, message: ToEar) -> None:
        order = self._taken
        self._taken += 1
        if isinstance(message, Forget):
            self._listeners.pop(message.number, None)
            return
        listener = self._listeners.get(message.number)
        if listener is None:
            listener = self._listeners[message.number] = Listener(message.number)
        listener.take(order, message)

    def hear(self) -> list[FromEar]:
        busy = [listener for listener in self._listeners.values() if listener.busy]
        return min(busy, key=lambda each: each.due_ns).hear() if busy else []


class Office:
    """Serves a room: takes what came, hears, answers, and tells how far it is ten times a second."""

    def __init__(self, incoming: queue.Queue[ToEar | None], clock: Clock) -> None:
        self._incoming = incoming
        self._clock = clock
        self._room = Room()
        self._told = 0
        self._due_ns = 0

    def serve(self) -> None:
        """Until the input ends, or nobody reads the answers."""
        while self._read():
            answers = self._room.hear()
            if self._room.done > self._told and self._clock.now_ns() >= self._due_ns:
                self._told = self._room.done
                self._due_ns = self._clock.now_ns() + PROGRESS_NS
                answers.append(Progress(self._told))
            if answers and not _answer(b"".join(pack(each) for each in answers)):
                return

    def _read(self) -> bool:
        """Take what came; wait for it only where there is nothing to hear. False: nothing will come any more."""
        patience_s = PROGRESS_NS / NS_PER_S if self._room.done > self._told else None
        try:
            message = self._incoming.get(block=not self._room.busy, timeout=patience_s)
            while message is not None:
                self._room.take(message)
                message = self._incoming.get_nowait()
        except queue.Empty:
            return True
        return False


def main() -> None:
    """Serve until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    incoming: queue.Queue[ToEar | None] = queue.Queue(MOST_READ)
    threading.Thread(target=_receive, args=(incoming,), daemon=True).start()
    Office(incoming, SystemClock()).serve()


def _receive(incoming: queue.Queue[ToEar | None]) -> None:
    unpacker = Unpacker()
    try:
        while data := os.read(sys.stdin.fileno(), READ_BYTES):
            for body in unpacker.feed(data):
                incoming.put(for_ear(body))
    finally:
        incoming.put(None)


def _answer(data: bytes) -> bool:
    while data:
        try:
            data = data[os.write(sys.stdout.fileno(), data) :]
        except BrokenPipeError:
            return False
    return True


if __name__ == "__main__":
    main()
