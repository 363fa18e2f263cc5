"""One word a turn: which, and the error line beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.events import ConnectionClosed, PeerError
from tests.scoring.timing.recordings import Script, silence, tone, vad_turn

pytestmark = pytest.mark.unit


def asked() -> Script:
    return Script().connected().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1400).heard_stop(1400)


def closed(script: Script, ms: float, by: str = "peer") -> Script:
    return script.add(ConnectionClosed(t_ns=script.at(ms), by=by, code=1011, reason="boom"))


def test_ok(tmp_path: Path):
    row = vad_turn().row(tmp_path)
    assert (row["status"], row["failed"], row["error"]) == ("ok", False, None)
    assert "status" not in row["reasons"]


def test_never_answered(tmp_path: Path):
    row = asked().ended(31_000, "timeout").row(tmp_path)
    assert (row["status"], row["reasons"]["status"], row["error"]) == ("timeout", "no answer", None)
    assert row["endpoint_ms"] == 400.0


def test_a_recording_that_just_ends_is_a_timeout(tmp_path: Path):
    assert asked().row(tmp_path)["status"] == "timeout"


def test_an_error_line_without_an_answer(tmp_path: Path):
    script = asked()
    script.add(PeerError(t_ns=script.at(1500), code="rate_limit", message="slow down"))
    row = script.ended(5000, "error", reason="rate_limit: slow down").row(tmp_path)
    assert (row["status"], row["error"]) == ("peer_error", "rate_limit: slow down")


def test_an_error_line_in_an_answered_turn_is_told_and_not_counted(tmp_path: Path):
    script = vad_turn()
    script.events.insert(10, PeerError(t_ns=script.at(50), code="odd", message="ignored"))
    row = script.row(tmp_path)
    assert (row["status"], row["error"], row["failed"]) == ("ok", "odd: ignored", False)


def test_closed_before_the_answer(tmp_path: Path):
    row = closed(asked(), 1500).ended(1501, "closed").row(tmp_path)
    assert (row["status"], row["error"]) == ("peer_error", "closed by the peer (1011): boom")


def test_closed_in_the_middle_of_the_answer_keeps_its_latency_and_fails(tmp_path: Path):
    row = closed(asked().begin(1401).audio(1600, tone(300)), 1700).ended(1701, "closed").row(tmp_path)
    assert (row["status"], row["failed"], row["first_packet_ms"]) == ("peer_error", True, 599.85)
    assert row["rtf"] is None


def test_closed_after_the_answer_is_no_failure(tmp_path: Path):
    row = closed(vad_turn(), 3000).row(tmp_path)
    assert (row["status"], row["error"]) == ("ok", None)


def test_closed_by_us_is_no_failure(tmp_path: Path):
    row = closed(asked().begin(1401).audio(1600, tone(300)), 3000, by="us").row(tmp_path)
    assert row["status"] == "ok"


def test_a_failed_response(tmp_path: Path):
    row = asked().begin(1401).done(1500, status="failed", reason="quota").ended(1501, "error").row(tmp_path)
    assert (row["status"], row["reasons"]["status"]) == ("peer_error", "quota")


def test_an_answer_cut_by_the_peers_own_limit_is_ok_without_rtf(tmp_path: Path):
    row = asked().begin(1401).audio(1600, tone(300)).done(1700, status="incomplete").row(tmp_path)
    assert (row["status"], row["first_packet_ms"], row["rtf"]) == ("ok", 599.85, None)


def test_text_only_is_silent(tmp_path: Path):
    row = asked().begin(1401).text(1500).done(1600).row(tmp_path)
    assert (row["status"], row["reasons"]["status"]) == ("silent", "the answer has no audio")
    assert row["first_packet_ms"] is None


def test_cancelled_before_any_audio(tmp_path: Path):
    row = asked().begin(1401).done(1500, status="cancelled").ended(31_000, "timeout").row(tmp_path)
    assert (row["status"], row["first_packet_ms"]) == ("cancelled", None)


def test_cancelled_then_answered_takes_the_first_with_audio(tmp_path: Path):
    script = asked().begin(1401).done(1500, status="cancelled").begin(1600, "r1")
    row = script.audio(1700, tone(200), "r1").done(1710, "r1").row(tmp_path)
    assert (row["status"], row["first_packet_ms"]) == ("ok", 699.85)


def test_cut_by_the_next_turn_keeps_its_latency(tmp_path: Path):
    script = asked().begin(1401).audio(1600, tone(3000)).turn(1, 2000, 2500, clip_ms=(1900, 2600)).heard_start(2100)
    script.done(2110, status="cancelled").send(1400, 3000).heard_stop(2900).begin(2901, "r1")
    script.audio(3000, tone(200), "r1").done(3010, "r1")
    first, second = script.rows(tmp_path, queries=("q0", "q1"))
    assert (first["status"], first["first_packet_ms"], first["rtf"]) == ("cancelled", 599.85, None)
    assert (second["status"], second["first_audible_ms"]) == ("ok", 500.0)


def test_called_off_before_an_answer(tmp_path: Path):
    assert asked().ended(2000, "interrupted").row(tmp_path)["status"] == "cancelled"


def test_a_refused_connection_fails_the_first_query_and_runs_none_of_the_others(tmp_path: Path):
    script = Script()
    script.add(PeerError(t_ns=script.at(0), code="connect", message="refused", fatal=True))
    script.ended(1, "not_run", 0, "refused").ended(1, "not_run", 1, "refused")
    first, second = script.rows(tmp_path, queries=("q0", "q1"))
    assert (first["status"], second["status"]) == ("peer_error", "not_run")
    assert first["error"] == second["error"] == "connect: refused"
    assert (first["failed"], second["failed"]) == (True, True)
    assert first["anchors"]["speech_end"] is None


def test_queries_after_a_lost_connection_are_not_run_and_failed(tmp_path: Path):
    script = closed(asked(), 1500).ended(1501, "closed", reason="boom").ended(1502, "not_run", 1, "boom")
    first, second = script.rows(tmp_path, queries=("q0", "q1"))
    assert (first["status"], second["status"]) == ("peer_error", "not_run")
    assert (second["failed"], second["query"], second["turn"]) == (True, "q1", 1)


def test_a_query_left_out_without_fault_is_no_failure(tmp_path: Path):
    script = vad_turn().ended(3000, "not_run", 1, "the peer takes no text history")
    second = script.rows(tmp_path, queries=("q0", "q1"))[1]
    assert (second["status"], second["failed"]) == ("not_run", False)
    assert second["reasons"]["status"] == "the peer takes no text history"


def test_a_query_that_was_never_sent_to_its_end(tmp_path: Path):
    script = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 500)
    row = closed(script, 510, by="network").row(tmp_path)
    assert (row["status"], row["reasons"]["speech_sent"]) == ("peer_error", "the query was not sent to its end")
    assert row["anchors"]["speech_end"] is None


def test_silence_that_never_ends_is_a_timeout(tmp_path: Path):
    row = asked().begin(1401).audio(1600, silence(300)).ended(31_000, "timeout").row(tmp_path)
    assert row["status"] == "timeout"


def test_a_long_answer_cut_by_the_time_limit_was_answered(tmp_path: Path):
    script = asked().begin(1401)
    for ms in range(1600, 6000, 100):
        script.audio(ms, tone(100))
    row = script.ended(6000, "timeout").row(tmp_path)
    assert (row["status"], row["first_packet_ms"], row["rtf"]) == ("ok", 599.85, None)


def test_an_answer_that_hangs_is_a_timeout(tmp_path: Path):
    row = asked().begin(1401).audio(1600, tone(500)).ended(6000, "timeout").row(tmp_path)
    assert (row["status"], row["reasons"]["status"]) == ("timeout", "the answer was not over in time")


def test_the_runners_word_is_no_source_of_latency(tmp_path: Path):
    early = vad_turn().row(tmp_path / "a")
    script = vad_turn()
    script.events[-1] = type(script.events[-1])(t_ns=script.at(29_000), turn=0, outcome="timeout")
    assert script.row(tmp_path / "b") == early
