"""Many sessions: retries, giving a peer up, warm-ups on resume, and the collector's place between sessions."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from harness.core.errors import ConfigError, ConnectorError
from harness.core.run_directory import RunDirectory
from harness.run import suite as suite_module
from harness.run.plan import PlanOptions
from harness.run.quiet import hold
from harness.run.rig import Rig
from harness.run.session_plan import SessionOptions
from harness.run.suite import PeerRun, Suite, SuiteOptions, SuiteResult, begun, prepare_directory
from tests.run.fakes import FakePeer, ToneQuery

BUSY = {"kind": "connect", "retryable": True}


@pytest.fixture(autouse=True)
def short_waits(monkeypatch) -> None:
    monkeypatch.setattr(suite_module, "RETRY_WAITS_S", (0.01, 0.01))


def run_suite(out: Path, *peers: FakePeer, n: int = 3, progress=None, **options) -> SuiteResult:
    queries = tuple(ToneQuery(f"q{k}", ms=60, lead_ms=0) for k in range(n))
    runs = [PeerRun(peer=p, directory=RunDirectory(out / p.label), queries=queries, suite="t") for p in peers]
    suite_options = SuiteOptions(session=SessionOptions(turn="manual", timeout_s=5.0, linger_ms=1), **options)

    async def main() -> SuiteResult:
        async with Rig() as rig:
            return await Suite(rig, runs, suite_options, progress or (lambda *done: None)).run()

    return asyncio.run(main())


def finished(out: Path, peer: FakePeer) -> list[str]:
    return RunDirectory(out / peer.label).finished()


def test_a_busy_peer_is_tried_again_and_the_query_is_not_lost(tmp_path: Path) -> None:
    peer = FakePeer(failures=[ConnectorError("busy", **BUSY), ConnectorError("busy", **BUSY)])
    result = run_suite(tmp_path, peer, n=2)
    assert (result.held, result.hopeless, peer.connects) == (2, {}, 4)
    assert len(begun(RunDirectory(tmp_path / "fake"))) == 2


def test_what_cannot_pass_is_not_tried_again(tmp_path: Path) -> None:
    peer = FakePeer(failures=[ConnectorError("401", kind="peer")])
    result = run_suite(tmp_path, peer, n=3)
    assert result.hopeless == {"fake": "401"}
    assert (result.held, peer.connects) == (1, 1)


def test_a_peer_that_stays_away_is_given_up_after_three_sessions(tmp_path: Path) -> None:
    peer = FakePeer(failures=[ConnectorError("refused", **BUSY) for _ in range(99)])
    result = run_suite(tmp_path, peer, n=6)
    assert result.hopeless == {"fake": "refused"}
    assert (result.held, peer.connects) == (3, 9)


def test_a_peer_that_was_there_before_is_not_given_up(tmp_path: Path) -> None:
    peer = FakePeer()
    lost: list[int] = []

    def progress(result, done, total) -> None:
        if done == 1:
            peer.failures = [ConnectorError("refused", **BUSY) for _ in range(12)]
            lost.append(done)

    result = run_suite(tmp_path, peer, n=6, progress=progress)
    assert lost
    assert (result.held, result.hopeless) == (6, {})


@pytest.mark.parametrize("seed", range(4))
def test_one_dead_peer_does_not_stop_the_other(tmp_path: Path, seed: int) -> None:
    dead, well = FakePeer("dead", [ConnectorError("401", kind="peer") for _ in range(9)]), FakePeer("well")
    result = run_suite(tmp_path, dead, well, n=3, plan=PlanOptions(seed=seed))
    assert result.hopeless == {"dead": "401"}
    assert len(finished(tmp_path, well)) == 3


def test_resume_holds_warm_ups_and_failed_set_ups_again_and_nothing_else(tmp_path: Path) -> None:
    peer = FakePeer(failures=[])
    plan = PlanOptions(warmup=1)
    run_suite(tmp_path, peer, n=2, plan=plan)
    assert peer.connects == 3
    again = FakePeer()
    result = run_suite(tmp_path, again, n=2, plan=plan)
    assert (result.held, again.connects) == (0, 0)

    flaky = FakePeer("flaky", [ConnectorError("no", **BUSY) for _ in range(3)])
    run_suite(tmp_path, flaky, n=2, plan=plan)  # the warm-up fails, the queries are answered
    run_suite(tmp_path, flaky, n=2, plan=plan)
    assert flaky.connects == 3 + 2 + 1
    more = FakePeer("fake")
    result = run_suite(tmp_path, more, n=3, plan=plan)
    assert (result.held, more.connects) == (2, 2)  # the new query, and the warm-up before it


def test_concurrency_is_used_and_never_exceeded(tmp_path: Path) -> None:
    peer = FakePeer()
    run_suite(tmp_path, peer, n=9, concurrency=4)
    assert peer.most_open == 4
    assert peer.open == 0


def test_the_collector_is_off_in_a_session_and_runs_between(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(suite_module, "COLLECT_AFTER", 3)
    enabled, waiting = [], []
    connect = FakePeer.connect

    async def watched(self, configure, sink):
        enabled.append(gc.isenabled())
        waiting.append(hold.held_since_collection)
        return await connect(self, configure, sink)

    monkeypatch.setattr(FakePeer, "connect", watched)
    run_suite(tmp_path, FakePeer(), n=12, concurrency=3)
    assert enabled == [False] * 12
    assert max(waiting) <= 3 + 3
    assert gc.isenabled()
    assert hold.depth == 0


def test_a_fault_of_our_own_ends_the_run_with_its_own_error(tmp_path: Path, monkeypatch) -> None:
    from tests.run.fakes import FakeSession

    def broken(self, command):
        raise KeyError("a bug of ours")

    monkeypatch.setattr(FakeSession, "prepare", broken)
    with pytest.raises(KeyError, match="a bug of ours"):
        run_suite(tmp_path, FakePeer(), n=2)
    assert finished(tmp_path, FakePeer()) == []


def test_directories_are_checked(tmp_path: Path) -> None:
    run, peer = RunDirectory(tmp_path / "fake"), FakePeer()
    arguments = (run, peer, "t", {"a": 1}, ["x"])
    with pytest.raises(ConfigError, match="holds no run"):
        prepare_directory(*arguments, resume=True)
    prepare_directory(*arguments, resume=False)
    prepare_directory(*arguments, resume=False)  # nothing was held yet: begun anew
    run_suite(tmp_path, peer, n=1)
    with pytest.raises(ConfigError, match="already holds a run"):
        prepare_directory(*arguments, resume=False)
    prepare_directory(*arguments, resume=True)
    with pytest.raises(ConfigError, match="--resume: a was 1 and is now 2"):
        prepare_directory(run, peer, "t", {"a": 2}, ["x"], resume=True)
