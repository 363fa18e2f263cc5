"""Peers as they really are: sessions that end early, go-away, rate limits with a time, silence, odd sample rates."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlsplit

import msgspec
import pytest

from harness.core.errors import ConnectorError
from harness.core.events import (
    AudioReceived,
    ConnectionClosed,
    GoAway,
    Note,
    PeerError,
    ResponseDone,
    ResponseStarted,
    TurnEnded,
    TurnStarted,
)
from harness.core.pace import fitting_rate, is_plausible, pace_of
from harness.core.retry import LONGEST_WAIT_S, UNSAID_WAIT_S, asked_wait_s, read_retry_after
from harness.core.run_directory import RunDirectory
from harness.run import suite as suite_module
from harness.run.plan import PlanOptions
from harness.run.replay import score
from tests.run.fakes import FakePeer, FakeSession, ToneQuery
from tests.run.live import hold
from tests.run.test_suite import run_suite

pytestmark = pytest.mark.loopback


@pytest.fixture(autouse=True)
def short_waits(monkeypatch) -> None:
    monkeypatch.setattr(suite_module, "RETRY_WAITS_S", (0.01, 0.01))


class EndingPeer(FakePeer):
    """Ends each session during its answer number `after`: as `how` says, once the answer is over."""

    def __init__(self, how: str, after: int = 1, label: str = "fake") -> None:
        super().__init__(label)
        self.how, self.after = how, after

    async def connect(self, configure, sink):
        await super().connect(configure, sink)
        session = EndingSession(self, sink, self._clock)
        if self.how == "close at once":
            session.end()
        return session

    @property
    def _clock(self):
        from harness.core.clock import SystemClock

        return SystemClock()


class EndingSession(FakeSession):
    answers = 0

    def answer(self) -> None:
        self.answers += 1
        last = self.answers == self.peer.after
        if last and self.peer.how == "go away":
            self.sink(GoAway(t_ns=self.clock.now_ns(), time_left_ms=500))
        if last and self.peer.how == "error":
            now = self.clock.now_ns
            message = "Rate limit reached. Please try again in 300ms."
            self.sink(ResponseStarted(t_ns=now(), response="f"))
            self.sink(PeerError(t_ns=now(), code="rate_limit_exceeded", message=message))
            self.sink(ResponseDone(t_ns=now(), response="f", status="failed", reason="rate_limit_exceeded"))
            return
        sink, name = self.sink, f"r{self.answers}"
        self.sink = lambda e: sink(msgspec.structs.replace(e, response=name) if hasattr(e, "response") else e)
        super().answer()
        self.sink = sink
        if last and self.peer.how in ("close", "expired"):
            self.end()

    def end(self) -> None:
        now_ns = self.clock.now_ns()
        if self.peer.how == "expired":
            self.sink(PeerError(t_ns=now_ns, code="session_expired", message="over", fatal=True))
        self.sink(ConnectionClosed(t_ns=now_ns, by="peer", code=1001, reason="enough"))


def rows_and_sessions(out: Path):
    directory = RunDirectory(out / "fake")
    scored = score(directory)
    return scored, {session.header.session: session for session in directory.load()}


@pytest.mark.parametrize("how", ["go away", "close", "expired"])
def test_the_queries_that_are_left_move_to_a_new_session(tmp_path: Path, how: str) -> None:
    peer = EndingPeer(how)
    result = run_suite(tmp_path, peer, n=3, plan=PlanOptions(turns_per_session=3))
    assert (result.held, peer.connects, result.hopeless) == (3, 3, {})
    scored, sessions = rows_and_sessions(tmp_path)
    assert list(sessions) == ["00000-q0", "00000-q0~2", "00000-q0~3"]
    assert [(row["query"], row["status"]) for row in scored.rows] == [("q0", "ok"), ("q1", "ok"), ("q2", "ok")]
    first = sessions["00000-q0"]
    assert [(event.turn, event.moved_to) for event in first.of(TurnEnded)] == [
        (0, ""),
        (1, "00000-q0~2"),
        (2, "00000-q0~2"),
    ]
    assert [note.code for note in first.of(Note)] == ["reopened"]
    assert [note.code for note in sessions["00000-q0~2"].of(Note)] == ["reopened", "reopened"]
    assert "reopened" in {note["code"] for note in scored.summary["notes"]}
    assert scored.summary["turns"] == 3


def test_two_turns_of_a_session_are_finished_before_it_is_left(tmp_path: Path) -> None:
    peer = EndingPeer("go away", after=2)
    run_suite(tmp_path, peer, n=3, plan=PlanOptions(turns_per_session=3))
    scored, sessions = rows_and_sessions(tmp_path)
    assert [len(list(session.of(TurnStarted))) for session in sessions.values()] == [2, 1]
    assert [row["status"] for row in scored.rows] == ["ok"] * 3


def test_a_peer_that_closes_at_once_costs_one_query_a_session(tmp_path: Path) -> None:
    peer = EndingPeer("close at once")
    run_suite(tmp_path, peer, n=3, plan=PlanOptions(turns_per_session=3))
    scored, sessions = rows_and_sessions(tmp_path)
    assert len(sessions) == 3
    assert [(row["query"], row["status"]) for row in scored.rows] == [
        ("q0", "peer_error"),
        ("q1", "peer_error"),
        ("q2", "peer_error"),
    ]
    assert all("enough" in row["error"] for row in scored.rows)


def test_resume_goes_on_where_the_moved_queries_are(tmp_path: Path) -> None:
    import shutil

    plan = PlanOptions(turns_per_session=3)
    run_suite(tmp_path, EndingPeer("close"), n=3, plan=plan)
    directory = RunDirectory(tmp_path / "fake")
    shutil.rmtree(directory.sessions / "00000-q0~3")
    again = EndingPeer("close")
    result = run_suite(tmp_path, again, n=3, plan=plan)
    assert (result.held, result.kept, again.connects) == (1, 2, 1)
    assert [row["query"] for row in score(directory).rows] == ["q0", "q1", "q2"]


def test_a_moved_session_that_is_not_there_is_missing(tmp_path: Path) -> None:
    import shutil

    from harness.core.run_directory import RunInfo

    run_suite(tmp_path, EndingPeer("close"), n=2, plan=PlanOptions(turns_per_session=2))
    directory = RunDirectory(tmp_path / "fake")
    info = {"suite": "t", "created": "", "firstpacket": "", "config": {}, "planned": ("00000-q0",)}
    directory.write_info(RunInfo(peer="fake", **info))
    assert score(directory).summary["missing_sessions"] == 0
    shutil.rmtree(directory.sessions / "00000-q0~2")
    assert score(directory).summary["missing_sessions"] == 1


# --- rate limits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "message", "seconds"),
    [
        ("rate_limit_exceeded", "Rate limit reached: Limit 40000, Used 39000. Please try again in 1.644s.", 1.644),
        ("rate_limit_exceeded", "Please try again in 20ms. Visit the page", 0.02),
        ("RESOURCE_EXHAUSTED", "Please retry in 17.2s", 17.2),
        ("429", 'details: {"retryDelay": "17s"}', 17.0),
        ("too_many_requests", "retry after 30 seconds", 30.0),
        ("rate_limit_exceeded", "try again in 1m2.5s", 62.5),
        ("rate_limit_exceeded", "try again in 6 minutes", 360.0),
        ("rate_limit_exceeded", "no time is named for 24 tokens", UNSAID_WAIT_S),
        ("server_error", "try again in 5 s", None),
    ],
)
def test_the_words_of_a_rate_limit_are_read(code: str, message: str, seconds: float | None) -> None:
    assert asked_wait_s(code, message) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        (" 1.5 ", 1.5),
        ("Wed, 21 Oct 2015 07:28:30 GMT", 30.0),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0.0),
        ("soon", None),
        ("-3", None),
        ("9" * 40, None),
        ("Wed, 21 Oct 99999999999999999999 07:28:30 GMT", None),
        ("Wed, 21 Oct 2015 07:28:30 +99999999999999999999", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert read_retry_after(value, datetime(2015, 10, 21, 7, 28, tzinfo=UTC)) == seconds


def test_a_refusal_with_a_time_is_waited_for_and_said(tmp_path: Path, monkeypatch) -> None:
    said: list[str] = []
    make = suite_module.Suite.__init__

    def watched(self, *arguments, **options) -> None:
        make(self, *arguments, **{**options, "say": said.append})

    monkeypatch.setattr(suite_module.Suite, "__init__", watched)
    peer = FakePeer(failures=[ConnectorError("429", kind="peer", retryable=True, retry_after_s=0.4)])
    opened: list[int] = []
    connect = FakePeer.connect

    async def timed(self, configure, sink):
        from harness.core.clock import SystemClock

        opened.append(SystemClock.now_ns())
        return await connect(self, configure, sink)

    monkeypatch.setattr(FakePeer, "connect", timed)
    result = run_suite(tmp_path, peer, n=2)
    assert (result.held, len(opened)) == (2, 3)
    assert opened[1] - opened[0] >= 390_000_000
    assert said == ["fake asks for a pause: going on in 0 s"]


def test_a_peer_that_asks_for_hours_is_given_up_at_once(tmp_path: Path) -> None:
    peer = FakePeer(failures=[ConnectorError("429", kind="peer", retryable=True, retry_after_s=LONGEST_WAIT_S * 12)])
    result = run_suite(tmp_path, peer, n=4)
    assert peer.connects == 1
    assert "1 h 00 min" in result.hopeless["fake"]


def test_a_rate_limit_in_a_session_holds_back_the_next_turn(tmp_path: Path) -> None:
    peer = EndingPeer("error", after=1)
    run_suite(tmp_path, peer, n=2, plan=PlanOptions(turns_per_session=2))
    scored, sessions = rows_and_sessions(tmp_path)
    assert [row["status"] for row in scored.rows] == ["peer_error", "ok"]
    assert "try again in 300ms" in scored.rows[0]["error"]
    (session,) = sessions.values()
    (error,) = session.of(PeerError)
    assert list(session.of(TurnStarted))[1].t_ns - error.t_ns >= 299_000_000


def test_a_rate_limit_in_a_session_holds_back_the_next_session(tmp_path: Path) -> None:
    run_suite(tmp_path, EndingPeer("error", after=1), n=2)
    _, sessions = rows_and_sessions(tmp_path)
    first, second = sessions.values()
    (error,) = first.of(PeerError)
    assert second.events[0].t_ns - error.t_ns >= 299_000_000


# --- peers that stop without closing ----------------------------------------------------------------------------


def test_a_peer_that_falls_silent_costs_its_time_limit_and_no_more(tmp_path: Path) -> None:
    """It reads on, answers no ping and sends nothing: the turn's limit ends it, the next query is said."""
    queries = [ToneQuery("a"), ToneQuery("b")]
    held = hold(
        tmp_path / "run",
        {"never_answer": True, "no_pong": True},
        queries=queries,
        turn="manual",
        timeout_s=1.0,
        plan=PlanOptions(turns_per_session=2),
    )
    assert [(row["query"], row["status"]) for row in held.rows] == [("a", "timeout"), ("b", "timeout")]


def test_an_expired_session_of_the_agent_is_reopened(tmp_path: Path) -> None:
    queries = [ToneQuery(f"q{k}") for k in range(3)]
    held = hold(
        tmp_path / "run",
        {"goaway_ms": 2000, "answer_s": 0.5, "think_ms": 50, "burst_x": 0},
        queries=queries,
        turn="manual",
        plan=PlanOptions(turns_per_session=3),
    )
    assert [row["query"] for row in held.rows] == ["q0", "q1", "q2"]
    assert len(held.sessions) >= 2
    assert held.rows[0]["status"] == "ok"
    assert held.rows[-1]["session"].endswith("~2")
    assert "reopened" in {note["code"] for note in held.summary["notes"]}


# --- sample rates -----------------------------------------------------------------------------------------------


def packets(rate_hz: int, true_hz: int, *, seconds: float = 4.0, ms: int = 100, wobble_ms=lambda k: 0.0):
    """A peer that sends in real time at `true_hz` what it declares as `rate_hz`."""
    samples = true_hz * ms // 1000
    return [
        AudioReceived(t_ns=round((k * ms + wobble_ms(k)) * 1e6), samples=samples, rate_hz=rate_hz)
        for k in range(round(seconds * 1000 / ms))
    ]


@pytest.mark.parametrize(("declared", "true"), [(16_000, 24_000), (24_000, 16_000), (24_000, 22_050), (48_000, 44_100)])
def test_a_wrong_rate_shows_in_the_pace(declared: int, true: int) -> None:
    pace = pace_of(packets(declared, true))
    assert pace == pytest.approx(true / declared, rel=0.01)
    assert fitting_rate(declared, pace) == true
    assert not is_plausible(declared, pace)


@pytest.mark.parametrize(
    "wobble_ms",
    [
        lambda k: 40.0 * (k * 7919 % 11) / 11,  # jitter
        lambda k: -100.0 * min(k, 5),  # half a second of head start
        lambda k: max(0.0, 400.0 - 50 * (k - 15)) if k >= 15 else 0.0,  # a stall and the burst after it
    ],
    ids=["jitter", "head start", "stall"],
)
def test_an_ordinary_network_is_no_wrong_rate(wobble_ms) -> None:
    pace = pace_of(packets(24_000, 24_000, wobble_ms=wobble_ms))
    assert pace is not None
    assert is_plausible(24_000, pace)


def test_too_little_audio_says_nothing() -> None:
    assert pace_of(packets(16_000, 24_000, seconds=1.2)) is None
    assert pace_of([]) is None


def codes(held) -> set[str]:
    return {note["code"] for note in held.summary["notes"]}


def test_a_paced_agent_that_lies_about_its_rate_is_found_out(tmp_path: Path) -> None:
    """24 kHz samples in real time, declared as 16 kHz: they come 1.5 times as fast as they would play."""
    settings = {"delivery": "paced", "answer_s": 3, "think_ms": 50, "chunk_ms": 100}
    options = {"queries": [ToneQuery()], "turn": "manual"}
    held = hold(tmp_path / "lie", {**settings, "declare_rate_hz": 16_000}, **options)
    (said,) = [note["message"] for note in held.summary["notes"] if note["code"] == "rate_mismatch"]
    assert "declared 16000 Hz" in said
    assert "fit 24000 Hz" in said
    assert "rate_mismatch" not in codes(hold(tmp_path / "truth", settings, **options))


def test_a_header_in_the_audio_that_contradicts_the_session_is_said(tmp_path: Path) -> None:
    settings = {"wav_headers": True, "declare_rate_hz": 16_000, "answer_s": 0.5, "burst_x": 0}
    held = hold(tmp_path / "run", settings, queries=[ToneQuery()], turn="manual")
    assert "rate_mismatch" in codes(held)


# --- on real sockets, as the user calls it ----------------------------------------------------------------------


def refusing_server(answers: list[tuple[int, dict[str, str]]], seen: list[dict[str, str]]):
    """Refuses each upgrade with the next of `answers`, (status, headers), and echoes what it was sent."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Refuse(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            seen.append(dict(self.headers))
            status, headers = answers[min(len(seen), len(answers)) - 1]
            body = f"no: {self.headers.get('X-Secret')}".encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body)), "Connection": "close"}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = True

        def log_message(self, *arguments) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Refuse)


@contextmanager
def served(answers: list[tuple[int, dict[str, str]]]):
    """(address, headers of each request) of a server that refuses."""
    seen: list[dict[str, str]] = []
    with refusing_server(answers, seen) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}", seen
        finally:
            server.shutdown()
            thread.join()


def test_retry_after_of_a_refused_upgrade_reaches_the_suite(tmp_path: Path) -> None:
    with served([(429, {"Retry-After": "600"}), (401, {})]) as (address, seen):
        held = hold(tmp_path / "run", peer=f"ws://{address}/v1/realtime", queries=[ToneQuery()], turn="manual")
    (why,) = held.outcome.result.hopeless.values()
    assert len(seen) == 1
    assert "HTTP 429" in why
    assert "10 min 00 s" in why


def test_a_header_is_sent_and_its_value_stays_out_of_everything(tmp_path: Path) -> None:
    """The peer even sends the secret back in its refusal; --header on bench and on doctor."""
    environment = {**os.environ, "MY_SECRET": "s3cret-value", "HTTPS_PROXY": "", "HTTP_PROXY": ""}
    headers = ["--header", "X-Secret: $MY_SECRET", "--header", "X-Team: blue"]
    with served([(403, {})]) as (address, seen):
        for arguments in (
            ["bench", "--out", str(tmp_path / "run"), "--limit", "1"],
            ["doctor", "--out", str(tmp_path / "doctor")],
        ):
            command = [sys.executable, "-m", "harness.cli", *arguments, "--peer", f"ws://{address}/x", *headers]
            ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=100)
            assert ran.returncode == 4
            assert "s3cret-value" not in ran.stdout + ran.stderr
            assert "[key]" in ran.stdout + ran.stderr
    assert len(seen) == 2
    assert {(each["X-Secret"], each["X-Team"]) for each in seen} == {("s3cret-value", "blue")}
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert b"s3cret-value" not in file.read_bytes(), file
    config = next((tmp_path / "run").rglob("session.json")).read_text()
    assert "X-Secret" in config
    assert "blue" not in config


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("X-Secret: plain", "name an environment variable"),
        ("no colon", "write it as 'Name: value'"),
        ("X: $NOT_SET_ANYWHERE", "set the environment variable NOT_SET_ANYWHERE"),
    ],
)
def test_a_wrong_header_is_one_clear_line(header: str, words: str) -> None:
    command = [sys.executable, "-m", "harness.cli", "doctor", "--peer", "ws://127.0.0.1:1/x", "--header", header]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert ran.returncode in (2, 3)
    assert words in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert "plain" not in ran.stderr


def test_a_proxy_on_the_way_is_noted_by_its_host_alone(tmp_path: Path) -> None:
    """The proxy leads peer.test to the embedded agent; its password stands nowhere in the recording."""
    import asyncio

    from connectors.agent.knobs import Knobs
    from connectors.agent.server import serve
    from tests.connectors.transports.test_proxy import TestProxy

    ready, stop = Event(), Event()
    ports: list[int] = []

    def beside() -> None:
        async def main() -> None:
            async with serve(Knobs(think_ms=50, answer_s=0.3, burst_x=0)) as agent:
                proxy = TestProxy(urlsplit(agent.url).port or 0)
                listening = await asyncio.start_server(proxy.handle, "127.0.0.1", 0)
                ports.append(listening.sockets[0].getsockname()[1])
                ready.set()
                await asyncio.to_thread(stop.wait)
                listening.close()

        asyncio.run(main())

    thread = Thread(target=beside)
    thread.start()
    try:
        assert ready.wait(30)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HTTP_PROXY", f"http://me:s3cret@127.0.0.1:{ports[0]}")
            patch.setenv("NO_PROXY", "")
            patch.setenv("no_proxy", "")
            held = hold(tmp_path / "run", peer="ws://peer.test/v1/realtime", queries=[ToneQuery()], turn="manual")
    finally:
        stop.set()
        thread.join()
    assert held.row["status"] == "ok"
    (session,) = held.sessions
    (note,) = [note for note in session.of(Note) if note.code == "proxy"]
    assert "the proxy 127.0.0.1:" in note.message
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and b"s3cret" in file.read_bytes()]
