"""The truth log: what the agent received and sent, and when, on the clock of the client's own machine.

The loop appends tuples to a queue; a thread turns them into lines, a few at a time, so that neither the disk nor the
encoding of a long batch delays a stamp. All instants are ns of `CLOCK_MONOTONIC`.
"""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path
from typing import Any

import msgspec

FIELDS: dict[str, tuple[str, ...]] = {
    "open": ("conn", "t_ns", "dialect", "path"),
    "ready": ("conn", "before_ns", "after_ns"),
    "configured": ("conn", "t_ns", "turn", "language", "input_rate_hz", "output_rate_hz"),
    "append": ("conn", "t_ns", "sample", "end_sample", "turn_sample", "turn_end_sample"),
    "speech_start": ("conn", "t_ns", "sample"),
    "endpoint": ("conn", "t_ns", "source", "sample", "received_samples"),
    "policy": ("conn", "t_ns", "decision", "sample", "received_samples"),
    "response": ("conn", "t_ns", "turn", "response", "answer", "language", "rate_hz", "role", "from_sample"),
    "stage": ("conn", "t_ns", "response", "name"),
    "write": ("conn", "response", "kind", "before_ns", "after_ns", "samples", "bytes", "buffered_bytes"),
    "stop": ("conn", "t_ns", "response", "reason", "sent_samples", "playing"),
    "heard": ("conn", "response", "begin_ns", "end_ns", "samples", "cut"),
    "done": ("conn", "before_ns", "after_ns", "response", "status"),
    "error": ("conn", "t_ns", "code"),
    "close": ("conn", "t_ns", "code", "by"),
}
"""Record types and their fields. Samples count from 0; `sample` since the session began, `turn_sample` since the last
commit; ends are exclusive. write.kind: `audio`, `text`, `late` (audio after done) or `event`; buffered_bytes: what the
transport had not passed on after the write. stop: an answer was cut short; playing: it would still have been heard.
heard: from when to when an answer sounds for a listener without a buffer (null: never), `samples` of it in all; one
that was cut is gone for a listener who falls silent at the stop. policy: what the agent decided about the speech that
began at `sample`. stage: a brain finished a stage of its answer (`asr`, `first_token`), by its own mark.
response.from_sample: of the answer, where one that was cut short goes on."""

BATCH = 100
"""Lines encoded at a stretch: about 0.1 ms, the longest time for which the thread holds the interpreter."""
REST_S = 0.02

Record = tuple[Any, ...]


class Truth:
    """Collects records: appended to `path` as JSON lines until `close`, or kept in memory, or (neither) let go."""

    def __init__(self, path: Path | None = None, *, keep: bool = False) -> None:
        self._queue: deque[Record] = deque(maxlen=None if keep or path is not None else 0)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.failure: str | None = None
        """Why the file is incomplete, if it is (a full disk): one line."""
        self.add = self._queue.append
        """Take one record: its type, then the values of its fields."""
        if path is not None:
            # Opened here, so that a wrong path is an error at start and not a thread that died.
            self._file = path.open("ab", buffering=0)
            self._thread = threading.Thread(target=self._write, name="truth-writer", daemon=True)
            self._thread.start()

    def records(self, *kinds: str) -> list[dict[str, Any]]:
        """What is kept in memory, as dicts in order (where a file is written: what has not reached it yet)."""
        return [_named(record) for record in list(self._queue) if not kinds or record[0] in kinds]

    def close(self) -> None:
        """Write what is left and close the file; safe to call twice."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None
            self._file.close()

    def _write(self) -> None:
        while not self._stop.wait(REST_S):
            self._drain()
        self._drain()

    def _drain(self) -> None:
        encode = msgspec.json.Encoder().encode
        while self._queue:
            batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
            if self.failure is not None:
                continue
            try:
                self._file.write(b"".join(encode(_named(record)) + b"\n" for record in batch))
            except OSError as exc:
                self.failure = f"the truth log {self._file.name} is incomplete: {exc.strerror}"


def _named(record: Record) -> dict[str, Any]:
    kind = record[0]
    return {"type": kind} | dict(zip(FIELDS[kind], record[1:], strict=True))
