"""The process that draws: takes snapshots from a pipe and repaints the terminal, away from the measuring loop.

Started by `harness.live.screen` as `python -m harness.live.screen_process`. It ignores Ctrl-C (the measuring process
decides) and ends at the end of its input; what it drew last stays.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys

import msgspec
from rich.console import Console
from rich.live import Live
from rich.text import Text

from harness.live.view import Snapshot, draw
from harness.run.channel import Unpacker

READ_BYTES = 1 << 16
NICENESS = 10
_snapshot = msgspec.msgpack.Decoder(Snapshot)


def main() -> None:
    """Serve until standard input ends; of several snapshots that wait, the last is drawn."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    unpacker = Unpacker()
    with Live(Text("connecting"), console=Console(), auto_refresh=False, vertical_overflow="crop") as live:
        while data := os.read(sys.stdin.fileno(), READ_BYTES):
            bodies = list(unpacker.feed(data))
            if bodies:
                live.update(draw(_snapshot.decode(bodies[-1])), refresh=True)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, OSError):
        main()
