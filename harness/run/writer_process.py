"""The writer process: takes events from a pipe and puts sessions on disk, away from the measuring loop.

Started by `harness.run.recorder` as `python -m harness.run.writer_process`; messages come on standard input, answers
go to standard output. It runs at a lower priority, ignores Ctrl-C (the measuring process decides) and ends at the end
of its input; a session that was not closed by then stays as a partial directory.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

from harness.core.session.writer import SessionWriter
from harness.run.channel import (
    EVERY_SESSION,
    AppendEvent,
    Closed,
    CloseSession,
    OpenSession,
    ToWriter,
    Unpacker,
    for_writer,
    pack,
)

READ_BYTES = 1 << 18
NICENESS = 10


class Desk:
    """The open sessions. A session whose disk failed is remembered, and told about when it is closed."""

    def __init__(self) -> None:
        self._open: dict[int, SessionWriter] = {}
        self._failed: dict[int, str] = {}

    def take(self, message: ToWriter) -> Closed | None:
        """Do what `message` says; a `Closed` is the answer to send."""
        if isinstance(message, CloseSession):
            return self._close(message)
        try:
            if isinstance(message, OpenSession):
                self._open[message.number] = SessionWriter(Path(message.sessions), message.header)
            elif message.number == EVERY_SESSION:
                for number in list(self._open):
                    self.take(AppendEvent(number, message.event))
            elif message.number in self._open:
                self._open[message.number].append(message.event)
        except Exception as exc:  # noqa: BLE001 - told with the session's close; the other sessions go on
            self._failed[message.number] = _line(exc)
            self._open.pop(message.number, None)
        return None

    def _close(self, message: CloseSession) -> Closed:
        writer = self._open.pop(message.number, None)
        error = self._failed.pop(message.number, "")
        if writer is None:
            return Closed(message.number, error=error or "the session was never opened")
        try:
            if not message.keep:
                writer.flush()
                shutil.rmtree(writer.partial, ignore_errors=True)
                return Closed(message.number)
            return Closed(message.number, events=writer.close(message.dropped).events)
        except Exception as exc:  # noqa: BLE001 - one session's failure, told to the measuring side
            return Closed(message.number, error=_line(exc))

    def flush(self) -> None:
        for number, writer in list(self._open.items()):
            try:
                writer.flush()
            except OSError as exc:
                self._failed[number] = _line(exc)
                self._open.pop(number)


def _line(exc: BaseException) -> str:
    if isinstance(exc, OSError) and exc.errno is not None:
        return f"{exc.strerror} ({Path(str(exc.filename)).name})" if exc.filename else str(exc.strerror)
    return " ".join(str(exc).split()) or type(exc).__name__


def main() -> None:
    """Serve until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    desk, unpacker = Desk(), Unpacker()
    while data := os.read(sys.stdin.fileno(), READ_BYTES):
        for body in unpacker.feed(data):
            answer = desk.take(for_writer(body))
            if answer is not None:
                _answer(pack(answer))
    desk.flush()


def _answer(data: bytes) -> None:
    while data:
        try:
            data = data[os.write(sys.stdout.fileno(), data) :]
        except BrokenPipeError:
            return


if __name__ == "__main__":
    main()
