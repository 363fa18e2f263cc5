"""The worker process: `python -m connectors.local.worker FD`. Two threads, one reads orders, one runs the model.

It ends when the harness closes its end of the socket, or dies, and takes what the model started with it. Ctrl-C is the
harness's to handle. The model's prints go to standard error, as do its complaints. With `--describe` it only answers
one question, on its standard streams.
"""

from __future__ import annotations

import gc
import io
import os
import select
import signal
import socket
import sys
import sysconfig
import threading
import traceback
from pathlib import Path
from typing import BinaryIO

import harness
from connectors.local.allowance import Allowance, FloodError
from connectors.local.framing import Framer
from connectors.local.group import leave
from connectors.local.inbox import Inbox
from connectors.local.model import LocalModel
from connectors.local.model_thread import ModelThread
from connectors.local.outputs import declared, facts_of
from connectors.local.settings import arguments, model_class
from connectors.local.wire import (
    ALIVE_PERIOD_S,
    Alive,
    Described,
    Emitted,
    Failed,
    FromWorker,
    Hello,
    Loaded,
    decode_to_worker,
    encode,
)
from harness.core.audio import NS_PER_S
from harness.core.clock import SystemClock
from harness.core.errors import ConfigError, PrerequisiteError

READ_BYTES = 1 << 18
SWITCH_S = 0.0005
"""How long a busy model may keep the interpreter from the reading thread (Python's default is 5 ms)."""
_OURS = frozenset(
    Path(__file__).with_name(name) for name in ("worker.py", "model_thread.py", "outputs.py", "seat.py", "settings.py")
)
_HARNESS = Path(harness.__file__).parent
_STANDARD_LIBRARY = Path(sysconfig.get_paths()["stdlib"])


class Worker:
    """Joins the socket, the inbox and the model's thread."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._clock = SystemClock()
        self._inbox = Inbox(self._clock)
        self._writing = threading.Lock()
        self._thread: ModelThread | None = None
        self._allowance = Allowance(self._clock)

    def run(self) -> None:
        """Read until the harness hangs up, then end the process at once, whatever the model is doing."""
        try:
            self._read()
        except OSError:  # the harness died with words of ours unread
            leave(0)
        except Exception as exc:  # noqa: BLE001  whatever it is, nothing may be left behind
            sys.excepthook(type(exc), exc, exc.__traceback__)
            leave(1)

    def _read(self) -> None:
        framer = Framer()
        due_ns = 0
        while True:
            readable, _, _ = select.select([self._channel], [], [], ALIVE_PERIOD_S)
            now_ns = self._clock.now_ns()
            if now_ns >= due_ns:
                self._send(Alive(self._step_ns()))
                due_ns = now_ns + round(ALIVE_PERIOD_S * NS_PER_S)
            if not readable:
                continue
            data = self._channel.recv(READ_BYTES)
            if not data:
                leave(0)
            for message in framer.feed(data, self._clock.now_ns()):
                order = decode_to_worker(message.payload)
                if isinstance(order, Hello):
                    threading.Thread(target=self._model, args=(order,), name="model", daemon=True).start()
                else:
                    self._inbox.put(order)
            if self._inbox.full:
                self._fail(Failed("model", "behind", "the model is more than 30 s behind the user's audio"))

    def _step_ns(self) -> int:
        started_ns = self._thread.step_started_ns if self._thread else 0
        return self._clock.now_ns() - started_ns if started_ns else 0

    def _model(self, hello: Hello) -> None:
        try:
            model = build(hello)
            self._send(Described(declared(model)))
            started_ns = self._clock.now_ns()
            model.load()
            loaded_ns = self._clock.now_ns()
            model.warm_up()
            warm_ns = self._clock.now_ns() - loaded_ns
            # Weights and modules live as long as we do: no later collection need look at them.
            gc.collect()
            gc.freeze()
            thread = ModelThread(model, hello.target or "parrot", self._inbox, self._send, self._clock)
            self._thread = thread
            self._send(Loaded(loaded_ns - started_ns, warm_ns, facts_of(model)))
            thread.serve()
        except BaseException as exc:  # noqa: BLE001  a model may raise anything, and the harness must hear of it
            self._fail(failure(exc))

    def _send(self, record: FromWorker) -> None:
        data = encode(record)
        if isinstance(record, Emitted):
            self._allowance.take(len(data))
        try:
            with self._writing:
                self._channel.sendall(data)
        except OSError:
            leave(0)

    def _fail(self, failed: Failed) -> None:
        self._send(failed)
        os._exit(1)


def build(hello: Hello) -> LocalModel:
    """Import the class and make the model, with nothing loaded. Raises ConfigError or PrerequisiteError."""
    sys.path += [path for path in hello.path if path not in sys.path]
    kind = model_class(hello.target, hello.place)
    return kind(**arguments(kind, hello.settings))


def failure(exc: BaseException) -> Failed:
    """What to tell the harness about an exception; the traceback goes to standard error."""
    if isinstance(exc, ConfigError):
        return Failed("config", "", str(exc))
    if isinstance(exc, PrerequisiteError):
        return Failed("prerequisite", "", str(exc))
    sys.excepthook(type(exc), exc, exc.__traceback__)
    sys.stderr.flush()
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    if isinstance(exc, FloodError):
        return Failed("model", "flood", str(exc))
    message = (f"{type(exc).__name__}: {lines[0]}" if lines else type(exc).__name__) + _where(exc)
    # torch.cuda.OutOfMemoryError is no MemoryError, and torch is not imported here.
    if isinstance(exc, MemoryError) or "OutOfMemory" in type(exc).__name__:
        return Failed("model", "out_of_memory", message)
    return Failed("model", "model_error", message)


def _where(exc: BaseException) -> str:
    """The last line of the model's own that an exception came through, as ` (file:line)`; empty if there is none."""
    own, installed = "", ""
    for frame, line in traceback.walk_tb(exc.__traceback__):
        path = Path(frame.f_code.co_filename)
        if not path.is_file() or path in _OURS or path.is_relative_to(_HARNESS):
            continue
        if {"site-packages", "dist-packages"} & set(path.parts):
            installed = f" ({_short(path)}:{line})"
        elif not path.is_relative_to(_STANDARD_LIBRARY):
            own = f" ({_short(path)}:{line})"
    return own or installed


def _short(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else Path(*path.parts[-2:])


def describe(asked: BinaryIO, answer: BinaryIO) -> None:
    """Answer one `Hello` with `Described` or `Failed`."""
    (message,) = Framer().feed(asked.read(), 0)
    hello = decode_to_worker(message.payload)
    try:
        if not isinstance(hello, Hello):
            raise TypeError("a worker is greeted first")
        record: FromWorker = Described(declared(build(hello)))
    except Exception as exc:  # noqa: BLE001  a module may raise anything on import
        record = failure(exc)
    answer.write(encode(record))
    answer.flush()


def main() -> None:
    """Take the socket that was left open for us and serve."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.setswitchinterval(SWITCH_S)
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # So that the last thing said before a crash is known.
        sys.stdout.reconfigure(line_buffering=True)
    if sys.argv[1] == "--describe":
        describe(sys.stdin.buffer, answer)
        os._exit(0)
    channel = socket.socket(fileno=int(sys.argv[1]))
    # Programs that the model starts must not hold the line after our death.
    channel.set_inheritable(False)
    Worker(channel).run()


if __name__ == "__main__":
    main()
