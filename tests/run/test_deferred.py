"""Queries of a benchmark in a run: loaded when it is their turn, history put in, what cannot be said told."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import msgspec
import pytest

from harness.core.commands import AddHistory
from harness.core.errors import ConnectorError
from harness.core.events import CommandSent, TurnEnded
from harness.core.run_directory import RunDirectory
from harness.core.session.reader import Session
from harness.run.rig import Rig
from harness.run.session_plan import SessionOptions
from harness.run.suite import PeerRun, Suite, SuiteOptions, SuiteResult
from scenarios.benchmarks.query import BenchmarkQuery
from scenarios.clip import Clip
from tests.run.fakes import FakePeer, FakeSession
from tests.scenarios.benchmarks.made import KNOWLEDGE, ROUND, opened, write_rows, write_sounds

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRSTPACKET_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def queries(tmp_path: Path) -> tuple[BenchmarkQuery, ...]:
    """Two queries on knowledge with sound, one without, one that goes on from earlier rounds."""
    root = write_rows(tmp_path / "set", chinese_knowledge=KNOWLEDGE, multi_round=ROUND)
    return opened(write_sounds(root, *KNOWLEDGE[:2], *ROUND)).queries


def peer(*, history: bool, label: str = "fake", failures: list[ConnectorError] | None = None) -> FakePeer:
    made = FakePeer(label, failures)
    made.profile = msgspec.structs.replace(made.profile, history=history)
    return made


def hold(out: Path, to: FakePeer, queries, progress=None) -> SuiteResult:
    at_rate = tuple(query.at_rate(to.profile.input_rate_hz) for query in queries)
    run = PeerRun(peer=to, directory=RunDirectory(out), queries=at_rate, suite="t")
    options = SuiteOptions(session=SessionOptions(turn="manual", timeout_s=5.0, linger_ms=1))

    async def main() -> SuiteResult:
        async with Rig() as rig:
            return await Suite(rig, [run], options, progress or (lambda *done: None)).run()

    return asyncio.run(main())


def sessions_of(out: Path) -> dict[str, Session]:
    return {session.header.items[0].qid: session for session in RunDirectory(out).load()}


def test_a_run_of_a_benchmark(tmp_path: Path, queries) -> None:
    to, alive = peer(history=True), list[int]()

    def progress(result, done, total) -> None:
        alive.append(sum(type(each) is Clip for each in gc.get_objects()))

    assert hold(tmp_path / "run", to, queries, progress) == SuiteResult(held=4, kept=0)
    assert to.connects == 3  # nothing can be said of the query without sound
    assert max(alive) <= 1  # one clip at a time, however many queries there are
    sessions = sessions_of(tmp_path / "run")

    (item,) = sessions["chinese_knowledge-0001"].header.items
    assert (item.index, item.fields, item.question_samples, item.question_rate_hz) == (1, KNOWLEDGE[1], 3200, 16_000)
    assert sessions["chinese_knowledge-0001"].header.user.rate_hz == 24_000
    assert sessions["chinese_knowledge-0001"].header.user.samples == 4800

    missing = sessions["chinese_knowledge-0002"]
    (ended,) = missing.of(TurnEnded)
    assert (ended.outcome, ended.reason) == ("not_run", "no sound: knowledge/chinese/0002.wav is missing")
    assert missing.header.items[0].sound == ""

    rounds = sessions["multi_round-000"]
    assert rounds.header.items[0].history == "injected"
    sent = [event for event in rounds.of(CommandSent) if event.command == "add_history"]
    assert [event.turn for event in sent] == [0, 0]


def test_history_is_said_before_the_query_in_its_order(tmp_path: Path, queries, monkeypatch) -> None:
    said: list[AddHistory] = []
    send = FakeSession.send

    def watched(self, prepared: object) -> int:
        if isinstance(prepared, AddHistory):
            said.append(prepared)
        return send(self, prepared)

    monkeypatch.setattr(FakeSession, "send", watched)
    hold(tmp_path / "run", peer(history=True), queries[3:])
    assert said == [AddHistory(role="user", text="小明比小红高。"), AddHistory(role="assistant", text="好的。")]
    (session,) = sessions_of(tmp_path / "run").values()
    kinds = [event.command for event in session.of(CommandSent)]
    assert kinds == ["add_history", "add_history", "commit", "create_response"]


def test_a_peer_without_history_is_left_alone(tmp_path: Path, queries) -> None:
    to = peer(history=False)
    hold(tmp_path / "run", to, queries[3:])
    assert to.connects == 0
    (session,) = sessions_of(tmp_path / "run").values()
    (ended,) = session.of(TurnEnded)
    assert ended.outcome == "not_run"
    assert ended.reason == "the peer takes no text history, and multi_round-000 goes on from 2 messages before it"
    assert session.header.items[0].history == "missing"


def test_sound_that_came_later_is_asked_on_resume(tmp_path: Path, queries) -> None:
    hold(tmp_path / "run", peer(history=True), queries)
    root = write_sounds(tmp_path / "set", KNOWLEDGE[2])
    to = peer(history=True)
    assert hold(tmp_path / "run", to, opened(root).queries) == SuiteResult(held=1, kept=3)
    assert to.connects == 1
    (ended,) = sessions_of(tmp_path / "run")["chinese_knowledge-0002"].of(TurnEnded)
    assert ended.outcome == "answered"


def test_a_query_that_was_not_asked_says_nothing_of_the_peer(tmp_path: Path, queries) -> None:
    """The first session is no proof that the peer can be reached: a refusal right after it gives the peer up."""
    to = peer(history=True, failures=[ConnectorError("401", kind="peer")])
    first, second, unsayable, _ = queries
    assert hold(tmp_path / "run", to, [unsayable, first, second]).hopeless == {"fake": "401"}
    assert to.connects == 1


def test_a_damaged_file_does_not_stop_the_run(tmp_path: Path, queries) -> None:
    path = tmp_path / "set" / KNOWLEDGE[0]["Audio"]
    path.write_bytes(path.read_bytes()[:99])
    assert hold(tmp_path / "run", peer(history=True), queries[:2]).held == 2
    (ended,) = sessions_of(tmp_path / "run")["chinese_knowledge-0000"].of(TurnEnded)
    assert ended.reason == f"{path}: truncated (91 of 6436 bytes)"
