"""The traps of timing definitions, section 5, produced on purpose by the embedded agent and met end to end.

What a recording alone decides is tested in `tests/scoring/timing/test_traps.py`; here real sockets, a real VAD and a
real answer are in the loop. Bounds are wide where a busy machine could move them, exact where it cannot.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.audio import samples_to_ns
from harness.core.events import (
    AudioReceived,
    AudioSent,
    CommandSent,
    ConnectionClosed,
    PeerError,
    ResponseDone,
    StreamStarted,
    TurnStarted,
)
from harness.run.plan import PlanOptions
from tests.run.fakes import ToneQuery
from tests.run.live import clip, hold

pytestmark = pytest.mark.loopback

QUICK = {"answer_s": 0.6, "think_ms": 100}


def manual(out: Path, settings: dict[str, object] | None = None, **options):
    """A manual turn on a short tone: no VAD needed, under two seconds."""
    options.setdefault("queries", [ToneQuery()])
    return hold(out, {**QUICK, **(settings or {})}, turn="manual", **options)


@pytest.mark.exact
def test_an_ordinary_turn_has_every_figure(tmp_path: Path) -> None:
    held = hold(tmp_path / "run", QUICK)
    row = held.row
    assert row["status"] == "ok"
    order = (
        "speech_start",
        "speech_end",
        "speech_sent",
        "endpoint",
        "first_text",
        "first_packet",
        "first_audible",
        "done",
    )
    instants = [row["anchors"][name] for name in order]
    assert instants == sorted(instants)
    assert 450 < row["endpoint_ms"] < 1500
    assert 90 < row["think_ms"] < 500
    assert row["first_audible_ms"] > 550
    assert row["response_s"] == pytest.approx(0.6, abs=0.01)
    assert row["rtt_ms"] > 0
    assert held.summary["harness"]["early_sends"] == 0


@pytest.mark.exact
def test_1_silent_packets_are_no_sound(tmp_path: Path) -> None:
    row = manual(tmp_path / "run", {"leading_silence_ms": 400, "burst_x": 0}).row
    assert row["leading_silence_ms"] == pytest.approx(402, abs=15)  # the bundled answers begin 2 ms into the clip
    silent = manual(tmp_path / "silent", {"silent_answer": True}).row
    assert (silent["status"], silent["first_audible_ms"]) == ("silent", None)


def test_2_and_3_and_16_chunks_leave_in_real_time_after_their_last_sample(tmp_path: Path) -> None:
    (session,) = hold(tmp_path / "run", QUICK).sessions
    start = next(session.of(StreamStarted))
    sent = list(session.of(AudioSent))
    (turn,) = session.of(TurnStarted)
    assert sent[-1].sample > turn.speech_end + 24_000 * 0.4  # silence flows on in real time until the answer is there
    for chunk in sent:
        exists_ns = start.t_ns + samples_to_ns(chunk.sample + chunk.samples - start.sample, start.rate_hz)
        assert chunk.planned_ns == exists_ns
        assert chunk.started_ns >= exists_ns


def test_2_the_tail_is_paced_before_the_commit(tmp_path: Path) -> None:
    query = ToneQuery(ms=413)
    (session,) = manual(tmp_path / "run", queries=[query], commit_after="clip").sessions
    start = next(session.of(StreamStarted))
    commit = next(event for event in session.of(CommandSent) if event.command == "commit")
    assert list(session.of(AudioSent))[-1].samples == len(query.samples) % 480
    assert commit.started_ns >= start.t_ns + samples_to_ns(len(query.samples), 24_000)


def test_6_a_slow_start_is_not_booked_on_the_answer(tmp_path: Path) -> None:
    row = manual(tmp_path / "run", {"slow_ready_ms": 1500}).row
    assert row["ready_ms"] > 1400
    assert row["first_packet_ms"] < 1000


@pytest.mark.parametrize(
    "settings",
    [
        {"odd_bytes": True},
        {"wav_headers": True},
        {"wav_headers": True, "empty_packets": 2},
        {"audio_rate_hz": 16_000},
        {"audio_rate_hz": 44_100},
    ],
    ids=str,
)
def test_9_odd_splits_headers_and_rates_change_no_duration(tmp_path: Path, settings: dict[str, object]) -> None:
    held = manual(tmp_path / "run", {**settings, "burst_x": 0})
    assert held.row["response_s"] == pytest.approx(0.6, abs=0.002)
    (session,) = held.sessions
    rate = settings.get("audio_rate_hz", 24_000)
    assert {event.rate_hz for event in session.of(AudioReceived) if event.samples} == {rate}
    assert sum(event.samples for event in session.of(AudioReceived)) == len(session.agent)


def test_9_a_rate_that_differs_from_the_one_asked_for_is_said(tmp_path: Path) -> None:
    held = manual(tmp_path / "run", {"declare_rate_hz": 16_000})
    assert any("16000 Hz" in str(note) for note in held.summary["notes"])


@pytest.mark.parametrize("settings", [{"no_pong": True}, {"ping_delay_ms": 3000}], ids=str)
def test_10_keep_alive_never_kills_a_slow_peer(tmp_path: Path, settings: dict[str, object]) -> None:
    row = manual(tmp_path / "run", {**settings, "think_ms": 3000}).row
    assert row["status"] == "ok"
    assert row["rtt_ms"] is None or row["rtt_ms"] >= 2900


def test_10_a_message_far_above_one_megabyte_is_taken(tmp_path: Path) -> None:
    held = manual(tmp_path / "run", {"answer_s": 60, "chunk_ms": 10_000, "audio_rate_hz": 48_000, "burst_x": 0})
    (session,) = held.sessions
    assert max(event.wire_bytes for event in session.of(AudioReceived)) > 1_200_000
    assert held.row["response_s"] == pytest.approx(60, abs=0.01)


def test_11_a_session_that_the_peer_ends_is_over_at_once(tmp_path: Path) -> None:
    held = manual(tmp_path / "run", {"goaway_ms": 1000, "think_ms": 20_000}, timeout_s=15)
    assert held.row["status"] == "peer_error"
    (session,) = held.sessions
    closed = next(session.of(ConnectionClosed))
    (start,) = session.of(StreamStarted)
    assert closed.t_ns - start.t_ns < 5_000_000_000


def test_12_a_delta_after_done_is_recorded_and_counts_nowhere(tmp_path: Path) -> None:
    held = manual(tmp_path / "run", {"late_delta_ms": 30, "burst_x": 0}, linger_ms=1500)
    (session,) = held.sessions
    done = next(session.of(ResponseDone))
    assert [event for event in session.of(AudioReceived) if event.t_ns > done.t_ns]
    assert held.row["late_packets"] == 1
    assert held.row["response_s"] == pytest.approx(0.6, abs=0.002)


def test_13_a_peer_that_never_answers_stays_in_the_figures(tmp_path: Path) -> None:
    held = manual(tmp_path / "run", {"never_answer": True}, timeout_s=1.0)
    assert held.row["status"] == "timeout"
    assert held.summary["failed"] == held.summary["turns"] == 1
    assert "timeout" in str(held.summary["metrics"]["first_packet_ms"]["percentiles_all"]["p50"])


@pytest.mark.exact
def test_15_a_stall_of_our_own_loop_is_not_booked_on_the_peer(tmp_path: Path, monkeypatch) -> None:
    """The loop is held up for 60 ms just when the answer arrives; the row must say so."""
    import time

    from harness.run import runner

    take, stalled = runner.SessionRunner._sink, []

    def slow(self, event) -> None:
        take(self, event)
        if isinstance(event, CommandSent) and event.command == "create_response" and not stalled:
            stalled.append(event.t_ns)
            self._rig.pacer.call_at(event.t_ns + 80_000_000, lambda: time.sleep(0.06))

    monkeypatch.setattr(runner.SessionRunner, "_sink", slow)
    row = manual(tmp_path / "run").row
    assert stalled
    assert row["own_error_ms"] > 15
    assert row["tainted"] is True


def test_17_turns_of_one_session_keep_their_own_answers(tmp_path: Path) -> None:
    held = hold(
        tmp_path / "run",
        {**QUICK, "answer_s": 1.0},
        queries=[clip("en-14"), clip("zh-13"), clip("en-12")],
        plan=PlanOptions(turns_per_session=3),
    )
    assert [row["status"] for row in held.rows] == ["ok"] * 3
    assert [row["turn_index"] for row in held.rows] == [0, 1, 2]
    (session,) = held.sessions
    turns = list(session.of(TurnStarted))
    done = [event.t_ns for event in session.of(ResponseDone)]
    assert turns[1].t_ns > done[0]
    assert all(row["response_s"] == pytest.approx(1.0, abs=0.01) for row in held.rows)
    assert all(row["barge_in_stop_ms"] is None for row in held.rows)


def test_18_an_answer_to_a_pause_is_early_and_no_fast_answer(tmp_path: Path) -> None:
    held = hold(tmp_path / "run", {**QUICK, "pause_answer": True, "think_ms": 0}, queries=[clip("en-10")])
    row = held.row
    assert row["early"] >= 1
    assert row["status"] in ("ok", "early")
    if row["status"] == "ok":
        assert row["first_audible_ms"] > 0
    else:
        assert row["first_audible_ms"] is None


def test_18_an_early_answer_alone_is_early(tmp_path: Path) -> None:
    held = hold(tmp_path / "run", {**QUICK, "early_answer_ms": 300}, timeout_s=6.0)
    assert held.row["early"] >= 1


def test_broken_json_floods_and_back_pressure_do_not_break_a_session(tmp_path: Path) -> None:
    held = manual(tmp_path / "run", {"broken_json": True, "flood": 2000, "burst_x": 0})
    assert held.row["status"] == "ok"
    (session,) = held.sessions
    assert "unreadable" in [event.code for event in session.of(PeerError)]
    stalled = manual(tmp_path / "stall", {"stall_read_ms": 800, "stall_read_at_ms": 100}, queries=[ToneQuery(ms=1500)])
    assert stalled.row["status"] == "ok"


@pytest.mark.parametrize(
    ("settings", "status", "words"),
    [
        ({"error": "rate_limit"}, "peer_error", "rate_limit_exceeded"),
        ({"error": "server_error"}, "peer_error", "server"),
        ({"close_after_ms": 100, "answer_s": 3}, "peer_error", "closes in mid-answer"),
        ({"close_after_ms": 100, "answer_s": 3, "close_code": 0}, "peer_error", ""),
    ],
    ids=str,
)
def test_failures_carry_the_peers_own_words(tmp_path: Path, settings, status: str, words: str) -> None:
    held = manual(tmp_path / "run", settings, timeout_s=8.0)
    assert held.row["status"] == status
    assert words in str(held.row["error"])
    assert held.row["first_packet_ms"] is None or held.row["status"] == "ok" or held.row["reasons"] is not None


def test_a_refused_key_is_said_once_and_ends_the_run(tmp_path: Path) -> None:
    queries = [ToneQuery(f"q{k}") for k in range(5)]
    held = manual(tmp_path / "run", {"refuse_with": 401}, queries=queries)
    assert "401" in held.outcome.result.hopeless["agent"]
    assert len(held.rows) == 1
    assert held.rows[0]["status"] == "peer_error"


def test_replayed_figures_are_equal_bit_for_bit(tmp_path: Path) -> None:
    from harness.core.run_directory import RunDirectory
    from harness.run.replay import differences, score

    manual(tmp_path / "run", plan=PlanOptions(repeat=3), concurrency=3)
    run = RunDirectory(tmp_path / "run")
    before = (run.path / "metrics.jsonl").read_bytes()
    scored = score(run)
    assert differences(run, scored) == []
    run.write_lines("metrics.jsonl", scored.rows)
    assert (run.path / "metrics.jsonl").read_bytes() == before
    rows = run.read_lines("metrics.jsonl")
    rows[0]["first_packet_ms"] += 0.001
    run.write_lines("metrics.jsonl", rows)
    (difference,) = differences(run, scored)
    assert "first_packet_ms" in difference.where
