"""Upload mode end to end: the whole query in one request, the answer streamed, figures beside the agent's truth log."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from connectors.chat import ChatCompletions
from harness.core.commands import AppendAudio, CreateResponse
from harness.core.events import (
    AudioReceived,
    AudioSent,
    CommandSent,
    ConnectionClosed,
    ConnectionPhase,
    PeerError,
    ResponseDone,
    StreamStarted,
    TurnEnded,
    TurnStarted,
)
from harness.core.profile import Profile
from harness.core.run_directory import RunDirectory
from harness.run import bench, suite
from harness.run.microphone import Microphone
from harness.run.pacer import Pacer, Slots
from harness.run.plan import PlanOptions
from harness.run.rig import Rig
from harness.run.session_plan import SessionOptions
from harness.run.suite import PeerRun, Suite, SuiteOptions, SuiteResult
from tests.run.fakes import FakeConnection, FakePeer, FakeSession, ToneQuery
from tests.run.live import Held, hold

pytestmark = pytest.mark.loopback
QUICK = {"think_ms": 100, "answer_s": 0.6, "text_lead_ms": 50}
NS_PER_MS = 1_000_000


class Uploads:
    """Agents in processes of their own, and runs against them through chat completions."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._monkeypatch = monkeypatch
        self._agents: list[subprocess.Popen[str]] = []

    def hold(self, knobs: dict[str, object], settings: dict[str, object] | None = None, **options: Any) -> Held:
        """Hold a run; its truth log is read with `truth`."""
        number = len(self._agents)
        url = self._serve(knobs, self._folder / f"truth-{number}.jsonl")

        def make_peer(text: str, asked: Any, clock: Any) -> ChatCompletions:
            return ChatCompletions(msgspec.structs.replace(asked, target=url), clock)

        self._monkeypatch.setattr(bench, "make_peer", make_peer)
        options.setdefault("queries", [ToneQuery(ms=900)])
        return hold(self._folder / f"run-{number}", settings, peer="chat", **options)

    def truth(self, *kinds: str) -> list[dict[str, Any]]:
        """Records of the last agent, which is stopped so that all of them are there."""
        self.stop()
        lines = (self._folder / f"truth-{len(self._agents) - 1}.jsonl").read_text("utf-8").splitlines()
        return [record for record in map(json.loads, lines) if record["type"] in kinds]

    def stop(self) -> None:
        for agent in self._agents:
            if agent.stdin is not None and not agent.stdin.closed:
                agent.stdin.close()
            agent.wait(timeout=20)
            if agent.stdout is not None:
                agent.stdout.close()

    def _serve(self, knobs: dict[str, object], truth: Path) -> str:
        command = [sys.executable, "-m", "connectors.agent", "--port", "0", "--exit-with-stdin", "--truth", str(truth)]
        for key, value in knobs.items():
            command += ["--set", f"{key}={str(value).lower() if isinstance(value, bool) else value}"]
        agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._agents.append(agent)
        assert agent.stdout is not None
        url: str = json.loads(agent.stdout.readline())["url"]
        return url.replace("ws", "http", 1).removesuffix("/realtime")


@pytest.fixture
def uploads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Uploads]:
    held = Uploads(tmp_path, monkeypatch)
    yield held
    held.stop()


@pytest.mark.parametrize("dialect", ["openai", "dashscope", "vllm-omni"])
def test_figures_agree_with_the_truth(uploads: Uploads, dialect: str) -> None:
    held = uploads.hold(QUICK, {"dialect": dialect})
    row = held.row
    assert (row["status"], row["mode"]) == ("ok", "upload")
    (session,) = held.sessions
    assert session.header.mode == "upload"
    assert [event.phase for event in session.of(ConnectionPhase)][:3] == ["started", "dns", "tcp"]
    (append,) = uploads.truth("append")
    write = next(record for record in uploads.truth("write") if record["kind"] == "audio")
    # On one clock: we began to send before the agent had heard it, and had its sound after it began to write that.
    upload, packet = next(session.of(AudioSent)), next(event for event in session.of(AudioReceived) if event.samples)
    assert upload.started_ns <= append["t_ns"]
    assert write["before_ns"] <= packet.t_ns
    assert row["first_packet_ms"] == pytest.approx((packet.t_ns - upload.t_ns) / NS_PER_MS, abs=0.001)
    assert 0 < row["ttft_ms"] <= row["first_packet_ms"]
    assert row["rtf_anchor"] == "upload"
    assert row["response_s"] == pytest.approx(0.6, abs=0.001)
    assert row["generation_s"] >= row["first_packet_ms"] / 1000  # equal where one read brought everything
    for name in ("first_audible_ms", "endpoint_ms", "send_late_p99_ms"):
        assert row[name] is None
        assert "upload" in row["reasons"][name] or "this mode" in row["reasons"][name]
    assert row["connect_ms"] > 0
    assert row["usage"]


def test_the_whole_clip_is_one_send_without_a_timeline(uploads: Uploads) -> None:
    query = ToneQuery(ms=1500)
    (session,) = uploads.hold(QUICK, queries=[query]).sessions
    (turn,) = session.of(TurnStarted)
    (sent,) = session.of(AudioSent)
    assert (sent.sample, sent.samples) == (turn.clip_sample, len(query.samples)) == (0, turn.clip_samples)
    assert sent.planned_ns == sent.started_ns <= sent.t_ns
    assert not list(session.of(StreamStarted))
    assert not list(session.of(CommandSent))
    assert np.array_equal(session.user, query.samples)
    first = next(session.of(AudioReceived))
    assert first.t_ns - turn.t_ns < 1_500_000_000  # the clip was not played in real time
    assert uploads.truth("append")[0]["end_sample"] == len(query.samples)


def test_turns_of_a_session_share_its_connection_and_its_history(uploads: Uploads) -> None:
    queries = [ToneQuery(f"q{k}", ms=400 + 100 * k) for k in range(3)]
    held = uploads.hold(QUICK, queries=queries, plan=PlanOptions(turns_per_session=3))
    assert [row["status"] for row in held.rows] == ["ok"] * 3
    assert all(row["response_s"] == pytest.approx(0.6, abs=0.001) for row in held.rows)
    (session,) = held.sessions
    assert [event.phase for event in session.of(ConnectionPhase)].count("tcp") == 1
    assert [event.response for event in session.of(ResponseDone)] == [f"chatcmpl-{turn}" for turn in (1, 2, 3)]
    assert [event.by for event in session.of(ConnectionClosed)] == ["us"]
    turns = list(session.of(TurnStarted))
    assert [turn.clip_sample for turn in turns] == [
        0,
        len(queries[0].samples),
        sum(len(q.samples) for q in queries[:2]),
    ]


def test_a_connection_lost_in_mid_answer_costs_one_turn(uploads: Uploads) -> None:
    knobs = QUICK | {"close_after_ms": 50, "answer_s": 5, "burst_x": 1, "close_code": 0}
    queries = [ToneQuery("q0"), ToneQuery("q1")]
    held = uploads.hold(knobs, queries=queries, plan=PlanOptions(turns_per_session=2))
    assert [row["status"] for row in held.rows] == ["peer_error", "peer_error"]
    assert all("closed" in row["error"] for row in held.rows)
    assert len(held.sessions) == 1


def test_a_peer_that_does_not_answer_is_a_timeout_and_the_next_turn_asks_anew(uploads: Uploads) -> None:
    queries = [ToneQuery("q0"), ToneQuery("q1")]
    held = uploads.hold({"never_answer": True}, queries=queries, timeout_s=0.7, plan=PlanOptions(turns_per_session=2))
    assert [row["status"] for row in held.rows] == ["timeout", "timeout"]
    assert len(uploads.truth("append")) == 2


def test_a_refused_key_is_said_once_and_ends_the_run(uploads: Uploads) -> None:
    held = uploads.hold({"refuse_with": 401}, queries=[ToneQuery(f"q{k}") for k in range(4)])
    assert "401" in held.outcome.result.hopeless[next(iter(held.outcome.result.hopeless))]
    assert [row["status"] for row in held.rows] == ["peer_error"]
    (session,) = held.sessions
    assert [event.fatal for event in session.of(PeerError)] == [True]


def test_a_rate_limit_is_waited_for(uploads: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "RETRY_WAITS_S", (0.01, 0.01))
    held = uploads.hold(
        {"error": "rate_limit"}, queries=[ToneQuery("q0"), ToneQuery("q1")], plan=PlanOptions(turns_per_session=2)
    )
    assert [row["status"] for row in held.rows] == ["peer_error", "not_run"]
    (session,) = held.sessions
    assert [event.code for event in session.of(PeerError)] == ["429"]
    times = [record["t_ns"] for record in uploads.truth("error")]
    assert len(times) == 3
    assert all(later - sooner >= 1_000 * NS_PER_MS for sooner, later in pairwise(times))  # the peer's Retry-After


class RefusingPeer(FakePeer):
    """A chat peer in memory that answers, but for the requests whose number has an error in `errors`."""

    def __init__(self, errors: dict[int, PeerError]) -> None:
        super().__init__()
        self.profile = Profile(upload=True, turns=())
        self.errors, self.requests = errors, 0

    async def connect(self, configure: Any, sink: Any) -> FakeSession:
        session = await super().connect(configure, sink)
        return RefusingSession(self, sink, session.clock)


class RefusingSession(FakeSession):
    def answer(self) -> None:
        self.peer.requests += 1
        error = self.peer.errors.get(self.peer.requests)
        now_ns, name = self.clock.now_ns(), f"r{self.peer.requests}"
        if error is None:
            self.sink(AudioReceived(t_ns=now_ns, samples=480, rate_hz=24_000, response=name, pcm=bytes(960)))
        else:
            self.sink(msgspec.structs.replace(error, t_ns=now_ns))
        self.sink(ResponseDone(t_ns=now_ns, response=name, status="failed" if error else "completed"))


def refused(out: Path, errors: dict[int, PeerError], **plan: int) -> tuple[RefusingPeer, SuiteResult, list[list[str]]]:
    """The peer after three queries, the result, and the outcomes of each session's turns."""
    peer, directory = RefusingPeer(errors), RunDirectory(out)
    queries = tuple(ToneQuery(f"q{k}", ms=60, lead_ms=0) for k in range(3))
    runs = [PeerRun(peer=peer, directory=directory, queries=queries, suite="t")]
    options = SuiteOptions(session=SessionOptions(timeout_s=5.0, linger_ms=1), plan=PlanOptions(**plan))

    async def main() -> SuiteResult:
        async with Rig() as rig:
            return await Suite(rig, runs, options, lambda *done: None).run()

    result = asyncio.run(main())
    return peer, result, [[event.outcome for event in session.of(TurnEnded)] for session in directory.load()]


def test_a_first_request_that_is_refused_for_now_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "RETRY_WAITS_S", (0.01, 0.01))
    busy = PeerError(t_ns=0, code="429", message="HTTP 429: slow down; try again in 0.1 s")
    peer, result, outcomes = refused(tmp_path, {1: busy}, turns_per_session=3)
    assert (result.held, result.hopeless, peer.requests) == (1, {}, 4)
    assert outcomes == [["answered"] * 3]


def test_a_later_request_that_is_refused_for_now_costs_its_turn(tmp_path: Path) -> None:
    busy = PeerError(t_ns=0, code="429", message="HTTP 429: slow down; try again in 0.1 s")
    peer, _, outcomes = refused(tmp_path, {2: busy}, turns_per_session=3)
    assert outcomes == [["answered", "error", "answered"]]
    assert peer.requests == 3


def test_a_later_request_that_is_refused_for_good_moves_the_queries_that_are_left(tmp_path: Path) -> None:
    gone = PeerError(t_ns=0, code="403", message="HTTP 403: no more", fatal=True)
    peer, result, outcomes = refused(tmp_path, {2: gone}, turns_per_session=3)
    assert result.hopeless == {}
    assert outcomes == [["answered", "error", "not_run"], ["answered"]]
    assert peer.requests == 3


def test_a_busy_line_is_recorded_when_the_last_byte_has_left() -> None:
    """A send that the transport has not passed on is recorded at the instant at which it has."""
    from harness.core.clock import SystemClock

    async def main() -> None:
        clock = SystemClock()
        connection, events, failures = FakeConnection(clock), [], []
        pacer = Pacer(clock)
        microphone = Microphone(
            connection,
            pacer=pacer,
            slots=Slots(),
            record=events.append,
            on_failure=failures.append,
            rate_hz=24_000,
            chunk_samples=480,
        )
        samples = ToneQuery().samples
        assert microphone.say(samples) == 0
        connection.pending = 7
        started_ns = microphone.upload(len(samples))
        assert [type(command) for _, command in connection.sent] == [AppendAudio, CreateResponse]
        assert events == []
        drained: Callable[[int], None] = connection.waiting[0]
        drained(started_ns + 5)
        (sent,) = events
        assert (sent.started_ns, sent.t_ns, sent.lost) == (started_ns, started_ns + 5, False)
        connection.pending = 7
        microphone.say(samples)
        microphone.upload(len(samples))
        microphone.stop()
        assert [(event.sample, event.lost) for event in events] == [(0, False), (len(samples), True)]
        assert not microphone.running
        pacer.close()

    asyncio.run(main())
