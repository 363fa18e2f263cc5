"""The summary of a run, from hand-written sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.errors import SessionFormatError
from harness.core.events import LoopLag, Note
from harness.core.run_directory import RunDirectory, RunInfo
from harness.core.session.header import PeerInfo
from scoring.timing.registry import all_metrics
from scoring.timing.rows import session_rows
from scoring.timing.scorer import TimingScorer
from tests.scoring.timing.recordings import MS, Script, header, silence, tone, vad_turn

pytestmark = pytest.mark.unit


def run_at(tmp_path: Path, **changes: Any) -> RunDirectory:
    run = RunDirectory(tmp_path)
    fields: dict[str, Any] = {
        "peer": "test-peer",
        "suite": "bundled",
        "created": "2026-01-01T00:00:00Z",
        "firstpacket": "0.1.0",
        "config": {"session": {"timeout_s": 30.0}},
    }
    run.write_info(RunInfo(**{**fields, **changes}))
    return run


def answered(packet_ms: float) -> Script:
    script = Script().connected().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1400).heard_stop(1400)
    script.begin(1401).text(packet_ms - 50).audio(packet_ms, tone(200)).audio(packet_ms + 40, tone(200))
    return script.done(packet_ms + 50).ended(packet_ms + 51)


def unanswered() -> Script:
    script = Script().connected().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1400).heard_stop(1400)
    return script.ended(31_000, "timeout")


def summary_of(run: RunDirectory) -> dict[str, Any]:
    return TimingScorer().score(run).summary


def test_interface(tmp_path: Path):
    run = run_at(tmp_path, calibration={"first_packet_error_ms": {"p50": 0.1}})
    answered(1600).write(run.sessions)
    summary = summary_of(run)
    assert summary["schema"] == 1
    assert (summary["peer"], summary["turns"], summary["failed"]) == ("test-peer", 1, 0)
    words = ["ok", "early", "silent", "timeout", "peer_error", "cancelled", "not_run"]
    assert list(summary["status"]) == words
    assert summary["calibration"] == {"first_packet_error_ms": {"p50": 0.1}}
    assert summary["timeout_s"] == 30.0
    entry = summary["metrics"]["first_packet_ms"]
    assert {"n", "p50", "p90", "p95", "p99", "mean", "ci95", "percentiles_all"} <= set(entry)
    assert {"send_late_ms", "loop_lag_ms", "error_ms", "tainted"} <= set(summary["harness"])
    assert summary["metric_versions"] == {metric.name: metric.version for metric in all_metrics()}
    assert summary["parameters"]["audibility"]["threshold_db"] == -40.0


def test_random_weights_stand_over_every_figure(tmp_path: Path):
    run = run_at(tmp_path)
    config = {"facts": {"weights": "random", "device": "cpu"}}
    answered(1600).write(run.sessions, header(peer=PeerInfo(kind="local", label="l", version="1", config=config)))
    scored = TimingScorer().score(run)
    assert scored.summary["peer"] == "test-peer, weights: random"
    assert [row["peer"] for row in scored.rows] == ["l, weights: random"]
    assert [note["code"] for note in scored.summary["notes"]] == ["random_weights"]


def test_figures(tmp_path: Path):
    run = run_at(tmp_path)
    for index, ms in enumerate((1600, 1700, 1900)):
        answered(ms).write(run.sessions, header(session=f"s{index}", queries=(f"q{index}",)))
    summary = summary_of(run)
    entry = summary["metrics"]["first_packet_ms"]
    assert (entry["n"], entry["p50"], entry["mean"]) == (3, 699.85, pytest.approx(733.183, abs=1e-3))
    assert (entry["p95"], entry["p99"]) == (None, None)
    assert summary["metrics"]["endpoint_ms"]["p50"] == 400.0
    assert "rtf_anchor" not in summary["metrics"]
    assert "tainted" not in summary["metrics"]


def test_failed_turns_stay_in_percentiles_all(tmp_path: Path):
    run = run_at(tmp_path)
    answered(1600).write(run.sessions, header(session="a"))
    answered(1700).write(run.sessions, header(session="b"))
    unanswered().write(run.sessions, header(session="c"))
    silent = unanswered().begin(1401).audio(1500, silence(300)).done(1510)
    silent.events = [event for event in silent.events if event.__class__.__name__ != "TurnEnded"]
    silent.write(run.sessions, header(session="d"))
    summary = summary_of(run)
    assert summary["status"] == {
        "ok": 2,
        "early": 0,
        "silent": 1,
        "timeout": 1,
        "peer_error": 0,
        "cancelled": 0,
        "not_run": 0,
    }
    assert sum(summary["status"].values()) == summary["turns"] == 4
    assert summary["failed"] == 2
    entry = summary["metrics"]["first_packet_ms"]
    # The silent answer's packet at 1500 would be the fastest of all: it is in no percentile.
    assert (entry["n"], entry["p50"]) == (2, 649.85)
    assert entry["percentiles_all"] == {"n": 4, "p50": "> timeout", "p90": "> timeout", "p95": None, "p99": None}
    # An endpoint that was heard belongs to turns that failed later: they count as failed there, too.
    assert summary["metrics"]["endpoint_ms"]["percentiles_all"]["n"] == 4


def test_a_run_without_any_answer(tmp_path: Path):
    run = run_at(tmp_path)
    unanswered().write(run.sessions)
    summary = summary_of(run)
    entry = summary["metrics"]["first_packet_ms"]
    assert (entry["n"], entry["p50"], entry["percentiles_all"]["p50"]) == (0, None, "> timeout")
    assert summary["metrics"]["rtt_ms"]["percentiles_all"] is None
    cell = summary["definitions"]["speech_end"]["first_packet"]
    assert cell == {"n": 0, "p50": None, "reason": "no turns"}


def test_a_metric_that_can_never_exist_is_not_failed(tmp_path: Path):
    run = run_at(tmp_path)
    unanswered().write(run.sessions, header(mode="manual"))
    assert summary_of(run)["metrics"]["endpoint_ms"]["percentiles_all"] == {
        "n": 0,
        "p50": None,
        "p90": None,
        "p95": None,
        "p99": None,
    }


def test_an_empty_run(tmp_path: Path):
    summary = summary_of(run_at(tmp_path, planned=("a", "b")))
    assert (summary["turns"], summary["failed"], summary["missing_sessions"]) == (0, 0, 2)
    assert summary["harness"]["send_late_ms"]["n"] == 0


def test_warm_ups_are_counted_and_in_no_figure(tmp_path: Path):
    run = run_at(tmp_path)
    answered(9000).write(run.sessions, header(session="w", warmup=True))
    answered(1600).write(run.sessions, header(session="a"))
    scored = TimingScorer().score(run)
    assert [row["warmup"] for row in scored.rows] == [False, True]
    assert (scored.summary["warmups"], scored.summary["turns"], scored.summary["sessions"]) == (1, 1, 1)
    assert scored.summary["metrics"]["first_packet_ms"]["max"] == 599.85
    assert scored.summary["harness"]["sends"] == 70


def test_tainted_rows_are_given_with_and_without(tmp_path: Path):
    run = run_at(tmp_path)
    disturbed = answered(1800)
    disturbed.add(LoopLag(t_ns=disturbed.at(1800), window_ns=50 * MS, max_lag_ns=9 * MS))
    disturbed.write(run.sessions, header(session="a"))
    answered(1600).write(run.sessions, header(session="b"))
    summary = summary_of(run)
    assert summary["harness"]["tainted"] == 1
    assert summary["metrics"]["first_packet_ms"]["n"] == 2
    assert summary["untainted"]["turns"] == 1
    assert summary["untainted"]["metrics"]["first_packet_ms"]["p50"] == 599.85
    assert summary["harness"]["error_ms"]["max"] == 9.0
    assert summary["harness"]["loop_lag_ms"]["p50"] == 9.0


def test_without_tainted_rows_nothing_is_said_twice(tmp_path: Path):
    run = run_at(tmp_path)
    answered(1600).write(run.sessions)
    summary = summary_of(run)
    assert (summary["untainted"], summary["first_turns"], summary["later_turns"]) == (None, None, None)


def test_first_turns_are_shown_apart(tmp_path: Path):
    run = run_at(tmp_path)
    script = answered(3000).turn(1, 4300, 5000, clip_ms=(4000, 5200)).send(4000, 5400).heard_stop(5400)
    script.begin(5401, "r1").audio(5600, tone(200), "r1").done(5610, "r1").ended(5611, turn=1)
    script.write(run.sessions, header(queries=("q0", "q1")))
    summary = summary_of(run)
    assert summary["first_turns"]["metrics"]["first_packet_ms"]["p50"] == 1999.85
    assert summary["later_turns"]["metrics"]["first_packet_ms"]["p50"] == 599.85
    # Session figures count once a session.
    assert summary["metrics"]["connect_ms"]["n"] == 1
    assert summary["metrics"]["since_ready_ms"]["n"] == 2


def test_rtf_is_a_ratio_of_sums_and_never_mixes_anchors(tmp_path: Path):
    run = run_at(tmp_path)
    answered(1600).write(run.sessions, header(session="a"))
    longer = answered(1800)
    longer.events = [event for event in longer.events if event.__class__.__name__ != "ResponseDone"]
    longer.audio(1860, tone(800)).done(1900).write(run.sessions, header(session="b"))
    no_endpoint = answered(1600)
    no_endpoint.events = [event for event in no_endpoint.events if event.__class__.__name__ != "UserSpeechStopped"]
    no_endpoint.write(run.sessions, header(session="c"))
    found = summary_of(run)["rtf_by_anchor"]
    assert list(found) == ["endpoint", "speech_sent"]
    # a: 1640 - 1400 over 0.4 s; b: 1860 - 1400 over 1.2 s.
    assert found["endpoint"] == {
        "n": 2,
        "generation_s": 0.7,
        "response_s": 1.6,
        "rtf": 0.4375,
        "mean_of_ratios": round((0.24 / 0.4 + round(0.46 / 1.2, 6)) / 2, 6),
    }
    assert found["speech_sent"]["n"] == 1


def test_early_sends_and_drops_are_told(tmp_path: Path):
    run = run_at(tmp_path)
    script = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1400, late_ms=-1.4)
    script.write(run.sessions, header(), dropped=3)
    harness = summary_of(run)["harness"]
    assert (harness["early_sends"], harness["sends"], harness["dropped"], harness["tainted"]) == (70, 70, 3, 1)
    assert harness["send_late_ms"]["p50"] == -1.4


def test_notes_are_told_once(tmp_path: Path):
    run = run_at(tmp_path)
    for name in ("a", "b"):
        script = answered(1600)
        note = Note(t_ns=script.at(1), code="rate", message="declared 16000, sent 24000")
        script.add(note).add(note).write(run.sessions, header(session=name))
    assert summary_of(run)["notes"] == [{"code": "rate", "message": "declared 16000, sent 24000", "sessions": 2}]


def test_languages(tmp_path: Path):
    run = run_at(tmp_path)
    answered(1600).write(run.sessions, header(session="a"))
    script = answered(1700)
    script.events = [
        msgspec.structs.replace(e, language="zh") if e.__class__.__name__ == "TurnStarted" else e for e in script.events
    ]
    script.write(run.sessions, header(session="b"))
    found = summary_of(run)["languages"]
    assert {name: entry["metrics"]["first_packet_ms"]["p50"] for name, entry in found.items()} == {
        "en": 599.85,
        "zh": 699.85,
    }


def test_definitions_matrix(tmp_path: Path):
    run = run_at(tmp_path)
    answered(1600).write(run.sessions, header(session="a"))
    answered(1700).write(run.sessions, header(session="b"))
    cells = summary_of(run)["definitions"]
    assert cells["speech_end"]["first_packet"] == {"n": 2, "p50": 650.0}
    assert cells["stream_start"]["first_packet"] == {"n": 2, "p50": 1650.0}
    assert cells["connect"]["first_packet"] == {"n": 2, "p50": 1800.0}
    assert cells["endpoint"]["done"] == {"n": 2, "p50": 300.0}
    assert cells["committed"]["done"] == {"n": 0, "p50": None, "reason": "only manual turns are committed"}


def test_scoring_twice_gives_the_same_bytes_in_the_same_order(tmp_path: Path):
    run = run_at(tmp_path, planned=("b", "a"))
    for index, name in enumerate(("a", "b", "c")):
        answered(1600 + index * 17.3).write(run.sessions, header(session=name))
    first, second = (msgspec.json.encode(TimingScorer().score(run)) for _ in range(2))
    assert first == second
    assert [row["session"] for row in TimingScorer().score(run).rows] == ["b", "a", "c"]


def test_no_json_has_nan_or_infinity(tmp_path: Path):
    run = run_at(tmp_path)
    answered(1600).write(run.sessions, header(session="a"))
    unanswered().write(run.sessions, header(session="b"))
    scored = TimingScorer().score(run)
    json.dumps(scored.rows, allow_nan=False)
    json.dumps(scored.summary, allow_nan=False)


def test_without_run_json_the_sessions_name_the_peer(tmp_path: Path):
    run = RunDirectory(tmp_path)
    vad_turn().write(run.sessions)
    summary = summary_of(run)
    assert (summary["peer"], summary["calibration"], summary["timeout_s"]) == ("test-peer", None, None)


def test_rows_of_one_session_are_the_scorers_rows(tmp_path: Path):
    run = run_at(tmp_path)
    session = vad_turn().write(run.sessions)
    assert TimingScorer().score(run).rows == session_rows(session)


@pytest.mark.parametrize(
    "line", ['{"p99_ms":"x"}', '{"p99_ms":0.1}', '{"n":1,"quiet":1,"p50_ms":0,"p99_ms":0,"max_ms":0}']
)
def test_noise_that_no_sentinel_wrote_is_said(tmp_path: Path, line: str):
    run = RunDirectory(tmp_path)
    (tmp_path / "noise.jsonl").write_text(line + "\n")
    with pytest.raises(SessionFormatError, match=r"noise\.jsonl"):
        TimingScorer().score(run)
