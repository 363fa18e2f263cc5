"""The main job: say queries to one or several peers and leave run directories; scoring and showing come after."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harness.core.clock import SystemClock, wall_anchor
from harness.core.connector import Peer, PeerOptions
from harness.core.errors import ConfigError, HarnessError
from harness.core.query import Query
from harness.core.run_directory import RunDirectory, slug
from harness.run.calibration import stored_calibration
from harness.run.labels import distinct
from harness.run.peers import DEFAULT_PEER, make_peer
from harness.run.plan import plan_sessions
from harness.run.progress import Progress
from harness.run.quiet import Priority
from harness.run.recorder import RecordingError
from harness.run.rig import Rig
from harness.run.runner import SessionRunner
from harness.run.scenario_session import ScenarioRunner
from harness.run.sentinel import HostNoise, Sentinel
from harness.run.suite import PeerRun, Suite, SuiteOptions, SuiteResult, prepare_directory

T = TypeVar("T")
RESULTS = Path("bench_results")


class BenchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What `firstpacket bench` was asked for. sentinel: the noise watch's own priority; normal tells what a peer on
    this machine meets as well. duplex: the queries are scenarios."""

    peers: tuple[str, ...] = (DEFAULT_PEER,)
    options: PeerOptions = PeerOptions()
    suite: SuiteOptions = SuiteOptions()
    out: Path | None = None
    resume: bool = False
    priority: Priority = "normal"
    sentinel: Priority = "normal"
    show_progress: bool = True
    duplex: bool = False


class BenchOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """directories: one run directory a peer; result: None when the run was interrupted."""

    directories: tuple[Any, ...]
    result: SuiteResult | None


def run_bench(request: BenchRequest, name: str, queries: Sequence[Query], pack: dict[str, Any]) -> BenchOutcome:
    """Hold the run and return its directories; an interrupted run returns what it has.

    name: of the query pack. pack: what identifies the pack, for `run.json`. Raises HarnessError.
    """
    clock = SystemClock()
    peers = distinct([make_peer(text, request.options, clock) for text in request.peers])
    _check(peers, request)
    directories = run_directories(peers, name, request.out)
    runs = [
        PeerRun(
            peer=peer,
            directory=directory,
            queries=tuple(query.at_rate(peer.profile.input_rate_hz) for query in queries),
            suite=name,
            runner=ScenarioRunner if request.duplex else SessionRunner,
        )
        for peer, directory in zip(peers, directories, strict=True)
    ]
    plan = plan_sessions([run.queries for run in runs], request.suite.plan)
    for index, run in enumerate(runs):
        planned = [session.id for peer, session in plan if peer == index]
        config = {
            "peer": {"kind": run.peer.kind, "label": run.peer.label, **run.peer.config},
            "queries": pack,
            **msgspec.to_builtins(request.suite),
            "interleaved_with": [other.peer.label for other in runs if other is not run],
        }
        prepare_directory(
            run.directory, run.peer, name, config, planned, resume=request.resume, calibration=stored_calibration()
        )
    progress = Progress(clock, shown=request.show_progress)
    try:
        with _noise_beside(directories, request.sentinel):
            result = run_async(lambda: _hold(request, clock, runs, progress))
    except KeyboardInterrupt:
        return BenchOutcome(directories=tuple(directories), result=None)
    except RecordingError as exc:
        kept = sum(len(directory.finished()) for directory in directories)
        where = directories[0].path if len(directories) == 1 else directories[0].path.parent
        raise RecordingError(
            f"{exc}; {kept} finished sessions are kept, the same command with --out {where} --resume goes on"
        ) from exc
    finally:
        progress.end()
    return BenchOutcome(directories=tuple(directories), result=result)


@contextmanager
def _noise_beside(directories: Sequence[RunDirectory], asked: Priority) -> Iterator[None]:
    """Run the host-noise sentinel beside the measurement and keep what it saw, a line a stretch, in `noise.jsonl`."""
    begin_ns = SystemClock.now_ns()
    with ExitStack() as stack:
        sentinel: Sentinel | None = None
        with suppress(HarnessError, OSError):  # no room for its shared memory, say: then the noise is not known
            sentinel = stack.enter_context(Sentinel(priority=asked))
        try:
            yield
        finally:
            noise = sentinel.result(begin_ns) if sentinel else HostNoise(n=0)
            for directory in directories:
                with suppress(OSError):  # a full disk is told by the recorder
                    directory.append_line("noise.jsonl", noise)


async def _hold(request: BenchRequest, clock: SystemClock, runs: list[PeerRun], progress: Progress) -> SuiteResult:
    async with AsyncExitStack() as stack:
        rig = await stack.enter_async_context(Rig(clock, asked=request.priority))
        for run in runs:
            await stack.enter_async_context(run.peer)
        return await Suite(rig, runs, request.suite, progress, progress.say).run()


def run_async(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine on uvloop where it exists (finer timers, cheaper sockets), else on the stock loop."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if sys.platform != "win32":
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main())


def _check(peers: Sequence[Peer], request: BenchRequest) -> None:
    turn = request.suite.session.turn
    for peer in peers:
        if not (request.duplex or peer.profile.upload) and turn not in peer.profile.turns:
            can = " or ".join(peer.profile.turns) or "none"
            raise ConfigError(f"{peer.label} cannot do --turn {turn}; it has: {can}")
    if request.resume and request.out is None:
        raise ConfigError("--resume needs --out DIR: the run directory to go on with")


def run_directories(peers: Sequence[Peer], name: str, out: Path | None) -> list[RunDirectory]:
    """One peer: the run directory itself. Several: one below it for each, named after the peer.

    out: as asked for; None: a new one below `RESULTS`. Raises ConfigError for a file.
    """
    if out is None:
        date = datetime.fromtimestamp(wall_anchor(SystemClock()).wall_ns / 1e9, UTC).strftime("%Y%m%d-%H%M%S")
        who = slug("-vs-".join(peer.label for peer in peers))
        out = _unused(RESULTS / f"{date}_{who}_{slug(name)}")
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out {out}: is a file; name a directory")
    if len(peers) == 1:
        return [RunDirectory(out)]
    labels: list[str] = []
    for peer in peers:
        label = slug(peer.label)
        twins = sum(each == label or each.rpartition("-")[0] == label for each in labels)
        labels.append(f"{label}-{twins + 1}" if twins else label)
    return [RunDirectory(out / label) for label in labels]


def _unused(path: Path) -> Path:
    """`path`, or the first of `path-2`, `path-3`, … that does not exist: two runs may begin in one second."""
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}-{number}")
    return free
