"""`python -m connectors.agent`: the agent in a process of its own; prints one JSON line when it listens.

Exit codes: 0 ended as asked, 2 a wrong option, 3 something is missing; the last two with one line on stderr.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from connectors.agent.brain import BrainOptions
from connectors.agent.knobs import Knobs, read_knobs
from connectors.agent.routes import served
from connectors.agent.server import serve
from connectors.agent.speech import BUNDLED
from harness.core.errors import ConfigError, HarnessError, PrerequisiteError


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The command line, read."""

    knobs: Knobs
    host: str
    port: int
    truth: Path | None
    tls: bool
    public: bool
    answers: Path
    exit_with_stdin: bool
    brain: BrainOptions | None = None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        raise ConfigError(message)


def read_options(arguments: Sequence[str]) -> Options:
    """Raises ConfigError for anything wrong."""
    parser = _Parser(prog="python -m connectors.agent", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KNOB=VALUE", help="see connectors/agent/README.md"
    )
    parser.add_argument("--truth", type=Path, help="JSON-lines file for the true instants")
    parser.add_argument("--brain", metavar="MODEL", help="a local model that answers: cascade, package.module:Class")
    parser.add_argument("--brain-set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the brain")
    parser.add_argument("--answers", type=Path, default=BUNDLED, help="folder with manifest.jsonl")
    parser.add_argument("--tls", action="store_true", help="with a throw-away certificate authority")
    parser.add_argument("--public", action="store_true", help="allow a host that other machines can reach")
    parser.add_argument("--exit-with-stdin", action="store_true", help="end when stdin ends")
    given = parser.parse_args(arguments)
    if given.brain_set and not given.brain:
        raise ConfigError("--brain-set needs --brain MODEL")
    settings = _pairs("--brain-set", given.brain_set)
    return Options(
        knobs=read_knobs(_pairs("--set", given.set)),
        host=given.host,
        port=given.port,
        truth=given.truth,
        tls=given.tls,
        public=given.public,
        answers=given.answers,
        exit_with_stdin=given.exit_with_stdin,
        brain=BrainOptions(target=given.brain, settings=settings) if given.brain else None,
    )


def _pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"{option} {pair}: must be {'KNOB' if option == '--set' else 'KEY'}=VALUE")
        pairs[name.strip()] = value.strip()
    return pairs


async def run(options: Options) -> None:
    """Serve until SIGINT, SIGTERM or (if asked) the end of stdin."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    if options.exit_with_stdin:
        ended = _after_stdin(lambda: loop.call_soon_threadsafe(stop.set))
        threading.Thread(target=ended, name="stdin-watch", daemon=True).start()
    async with serve(
        options.knobs,
        host=options.host,
        port=options.port,
        truth=options.truth,
        tls=options.tls,
        public=options.public,
        answers=options.answers,
        quiet_gc=True,
        brain=options.brain,
    ) as agent:
        line = {
            "url": agent.url,
            "pid": os.getpid(),
            "ca": str(agent.ca) if agent.ca else None,
            "serves": served(agent.url),
        }
        sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
        sys.stdout.flush()
        await stop.wait()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    try:
        options = read_options(sys.argv[1:] if arguments is None else arguments)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(run(options))
    except HarnessError as exc:
        sys.stderr.write(f"{exc}\n")
        return 3 if isinstance(exc, PrerequisiteError) else 2
    return 0


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _after_stdin(call: Callable[[], object]) -> Callable[[], None]:
    def wait() -> None:
        # os.read, not sys.stdin: a daemon thread inside a buffered read would hold up the interpreter's end.
        try:
            while os.read(0, 4096):
                pass
        except OSError:
            pass
        call()

    return wait


if __name__ == "__main__":
    sys.exit(main())
