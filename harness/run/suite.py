"""Many sessions: planned, held with a set number at once, resumed after an interruption. Every finished one is kept."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from harness import __version__
from harness.core.audio import NS_PER_S
from harness.core.clock import SystemClock, wall_anchor
from harness.core.connector import Peer
from harness.core.errors import ConfigError
from harness.core.events import TurnEnded, decode_event
from harness.core.retry import LONGEST_WAIT_S
from harness.core.run_directory import RunDirectory, RunInfo
from harness.run.loader import Loader
from harness.run.plan import PlanOptions, plan_sessions
from harness.run.progress import duration
from harness.run.quiet import hold
from harness.run.rig import Rig
from harness.run.runner import SessionRunner
from harness.run.session_plan import SessionOptions, SessionPlan, SessionResult

RETRY_WAITS_S = (1.0, 4.0)
"""Pauses before a session whose connection failed in a way that may pass is held again."""
COLLECT_AFTER = 500
"""Concurrent sessions after which the run pauses for the garbage collector; one at a time it runs between any two."""
_BEGUN = re.compile(rb'"type":"(?:turn_started|scenario_event)"|"moved_to"')
HOPELESS_AFTER = 3
"""Sessions in a row that could not even be set up, with none set up before: the run stops."""


class SuiteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a resumed run must share, apart from peers and queries."""

    session: SessionOptions = SessionOptions()
    plan: PlanOptions = PlanOptions()
    concurrency: int = 1


class PeerRun(msgspec.Struct, frozen=True, kw_only=True):
    """One peer of the run, where its sessions go, and its queries at its own rate. runner: what holds a session, called
    as `SessionRunner` is."""

    peer: Any
    directory: RunDirectory
    queries: tuple[Any, ...]
    suite: str
    runner: Any = SessionRunner


class SuiteResult(msgspec.Struct, frozen=True, kw_only=True):
    """held: sessions finished now; kept: finished before (resume); hopeless: peers that were given up, and why."""

    held: int
    kept: int
    hopeless: dict[str, str] = {}


class Health:
    """What is known of one peer: whether any session was set up, whether it is worth going on, and from when (ns)."""

    def __init__(self) -> None:
        self._set_up = False
        self._failures = 0
        self.hopeless = ""
        self.resume_ns = 0

    def heed(self, result: SessionResult, now_ns: int) -> None:
        """Remember how long the peer asks us to stay away; one that asks for too long is given up."""
        wait_s = result.error.retry_after_s if result.error else None
        asked_ns = result.resume_ns if wait_s is None else now_ns + round(wait_s * NS_PER_S)
        if asked_ns - now_ns > LONGEST_WAIT_S * NS_PER_S:
            wish = f"asks to be left alone for {duration((asked_ns - now_ns) / NS_PER_S)}; --resume goes on then"
            self.hopeless = self.hopeless or (f"{result.reason}; it {wish}" if result.reason else wish)
        else:
            self.resume_ns = max(self.resume_ns, asked_ns)

    def learn(self, result: SessionResult) -> None:
        """Give a peer up when no session can be set up: the rest would fail alike."""
        if not result.connected:
            return
        if result.error is None:
            self._set_up = True
            return
        self._failures += 1
        if not self._set_up and (not result.error.retryable or self._failures >= HOPELESS_AFTER):
            self.hopeless = str(result.error)


class Suite:
    """Runs `runs` (one for each peer) on one rig.

    progress: called after each session; say: takes a line for whoever watches. Both must return at once.
    """

    def __init__(
        self,
        rig: Rig,
        runs: Sequence[PeerRun],
        options: SuiteOptions,
        progress: Callable[[SessionResult, int, int], None],
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._rig = rig
        self._runs = runs
        self._options = options
        self._progress = progress
        self._say = say
        self._health = [Health() for _ in runs]
        self._held = 0
        self._ended = asyncio.Event()
        self._loader = Loader()

    async def run(self) -> SuiteResult:
        """Hold every session that is not finished yet. Raises RecordingError when the disk fails.

        A session that was never set up is held again, and so are warm-ups: the peer is cold after a pause.
        """
        finished = [begun(run.directory) for run in self._runs]
        plan = plan_sessions([run.queries for run in self._runs], self._options.plan)
        known = [moved(run.directory, done) for run, done in zip(self._runs, finished, strict=True)]
        plan = [(peer, each) for peer, session in plan for each in _unfolded(session, known[peer])]
        todo = [(peer, session) for peer, session in plan if session.id not in finished[peer]]
        if todo:
            warm = [(peer, session) for peer, session in plan if session.warmup and session.id in finished[peer]]
            todo = warm + todo
        self._total, self._kept = len(plan), len(plan) - len(todo)
        waiting = iter(todo)
        try:
            async with self._loader, asyncio.TaskGroup() as group:
                for _ in range(min(self._options.concurrency, len(todo))):
                    group.create_task(self._work(waiting))
        except BaseExceptionGroup as exc:
            raise _first(exc) from None
        hopeless = {
            run.peer.label: health.hopeless
            for run, health in zip(self._runs, self._health, strict=True)
            if health.hopeless
        }
        return SuiteResult(held=self._held, kept=self._kept, hopeless=hopeless)

    async def _work(self, waiting: Iterator[tuple[int, SessionPlan]]) -> None:
        for peer, session in waiting:
            following: SessionPlan | None = session
            while following is not None and not self._health[peer].hopeless:
                following = (await self._one(peer, following)).rest
                self._total += following is not None

    async def _one(self, peer: int, session: SessionPlan) -> SessionResult:
        """Hold one session when its time has come, and learn from it."""
        await self._stay_away(peer)
        session = await self._loader.load(session)
        await self._breathe()
        alone = hold.depth == 0
        with hold:
            if alone:  # entering collected garbage; that pause belongs to no session
                self._rig.watch.start()
            result = await self._hold(peer, session)
        self._ended.set()
        self._held += 1
        self._health[peer].learn(result)
        self._progress(result, self._held + self._kept, self._total)
        return result

    async def _stay_away(self, peer: int) -> None:
        """Wait as long as a busy peer asked for."""
        health = self._health[peer]
        wait_s = (health.resume_ns - self._rig.clock.now_ns()) / NS_PER_S
        if wait_s > 0:
            self._say(f"{self._runs[peer].peer.label} asks for a pause: going on in {duration(wait_s)}")
            await self._rig.pacer.until(health.resume_ns)

    async def _breathe(self) -> None:
        """Now and then let all sessions end before the next begins, so that the collector can run beside none."""
        while hold.depth and hold.held_since_collection >= COLLECT_AFTER:
            self._ended.clear()
            await self._ended.wait()

    async def _hold(self, peer: int, plan: SessionPlan) -> SessionResult:
        """Hold one session, again if its connection failed in a way that may pass: after a pause of ours, or of the
        length that the peer asked for."""
        run = self._runs[peer]
        for wait_s in (*RETRY_WAITS_S, None):
            runner = run.runner(self._rig, run.peer, self._options.session, plan, run.directory.sessions)
            result: SessionResult = await runner.run()
            self._health[peer].heed(result, self._rig.clock.now_ns())
            if wait_s is None or result.error is None or not result.error.retryable or self._health[peer].hopeless:
                return result
            await self._rig.pacer.until(self._rig.clock.now_ns() + round(wait_s * NS_PER_S))
            await self._stay_away(peer)
        raise AssertionError("unreachable")


def begun(directory: RunDirectory) -> set[str]:
    """Ids of the finished sessions in which a query was begun, or moved to another one: those are not held again."""
    return {name for name in directory.finished() if _BEGUN.search(_events(directory, name))}


def _events(directory: RunDirectory, name: str) -> bytes:
    return (directory.sessions / name / "events.jsonl").read_bytes()


def moved(directory: RunDirectory, finished: set[str]) -> dict[str, tuple[int, str]]:
    """Of the finished sessions that their peer ended too soon: how many queries stayed, and where the rest went."""
    found: dict[str, tuple[int, str]] = {}
    for name in finished:
        for line in _events(directory, name).splitlines():
            event = decode_event(line) if b'"moved_to"' in line else None
            if isinstance(event, TurnEnded) and event.moved_to and name not in found:
                found[name] = event.turn, event.moved_to
    return found


def _unfolded(session: SessionPlan, moved: Mapping[str, tuple[int, str]]) -> Iterator[SessionPlan]:
    """A session and those that took over from it."""
    yield session
    while session.id in moved:
        session = session.rest(moved[session.id][0])
        yield session


def check_new(directory: RunDirectory) -> None:
    """Raises ConfigError where something stands that a new run would mix with."""
    if directory.exists() and directory.finished():
        raise ConfigError(f"{directory.path} already holds a run: choose another --out, or go on with --resume")
    if not directory.exists() and directory.path.exists() and any(directory.path.iterdir()):
        raise ConfigError(f"{directory.path} exists and is no run directory: choose another --out")


def prepare_directory(
    directory: RunDirectory,
    peer: Peer,
    suite: str,
    config: dict[str, Any],
    planned: Sequence[str],
    *,
    resume: bool,
    calibration: dict[str, Any] | None = None,
) -> None:
    """Write `run.json`, or check that a resumed run asks for the same thing.

    Raises ConfigError for an existing directory without resume, and for a changed configuration, naming the key.
    """
    if resume and directory.exists():
        _same(directory.info().config, config)
        return
    if resume:
        raise ConfigError(f"--resume: {directory.path} holds no run; leave --resume away to begin one")
    check_new(directory)
    info = RunInfo(
        peer=peer.label,
        suite=suite,
        created=datetime.fromtimestamp(wall_anchor(SystemClock()).wall_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        firstpacket=__version__,
        config=config,
        planned=tuple(planned),
        calibration=calibration,
    )
    directory.write_info(info)


def _same(before: dict[str, Any], now: dict[str, Any], path: str = "") -> None:
    now = msgspec.json.decode(msgspec.json.encode(now))
    for key in sorted({*before, *now}):
        old, new = before.get(key), now.get(key)
        name = f"{path}{key}"
        if isinstance(old, dict) and isinstance(new, dict):
            _same(old, new, f"{name}.")
        elif old != new:
            raise ConfigError(
                f"--resume: {name} was {_short(old)} and is now {_short(new)}; "
                "resume with the same settings, or start a new run with another --out"
            )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _first(group: BaseExceptionGroup) -> BaseException:
    """The first real error in a group: what the user should read."""
    for error in group.exceptions:
        return _first(error) if isinstance(error, BaseExceptionGroup) else error
    return group
