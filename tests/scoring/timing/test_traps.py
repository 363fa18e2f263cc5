"""Traps seen in other harnesses (timing definitions, section 5), those that a recording decides; by their numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.events import AudioDone, ConnectionClosed, GoAway, LoopLag
from harness.core.profile import Profile
from tests.scoring.timing.recordings import MS, Script, silence, tone, vad_turn

pytestmark = pytest.mark.unit


def asked(**send: float) -> Script:
    """Speech 300-1000 ms, streamed to 1400, the end heard at 1400, response created at 1401."""
    script = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1400, **send)
    return script.heard_stop(1400).begin(1401)


def test_1_a_silent_packet_is_not_the_first_sound(tmp_path: Path):
    row = asked().audio(1500, silence(500)).audio(1510, tone(200)).done(1520).row(tmp_path)
    assert row["first_packet_ms"] == 499.85
    assert row["first_audible_ms"] == 500 + 500 - 9
    assert row["leading_silence_ms"] == 491.0


def test_1_silent_output_has_no_latency(tmp_path: Path):
    row = asked().text(1450).audio(1500, silence(2000)).done(1520).ended(1530).row(tmp_path)
    assert (row["status"], row["failed"]) == ("silent", True)
    assert row["first_audible_ms"] is None
    assert row["leading_silence_ms"] is None
    assert row["reasons"]["first_audible_ms"] == "silent: the answer never becomes audible"


def test_1_a_click_is_not_a_sound(tmp_path: Path):
    row = asked().audio(1500, tone(20)).audio(1510, silence(500)).done(1520).row(tmp_path)
    assert (row["status"], row["first_audible_ms"]) == ("silent", None)


def test_2_a_drifting_sender_is_seen_and_does_not_move_speech_end(tmp_path: Path):
    script = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200))
    for index in range(70):
        script.send(index * 20, index * 20 + 20, late_ms=index * 0.5)
    row = script.heard_stop(1425).begin(1426).audio(1600, tone(200)).done(1610).row(tmp_path)
    assert row["first_audible_ms"] == 600.0
    assert row["first_packet_ms"] == pytest.approx(600 - 49 * 0.5 - 0.05)
    assert (row["own_error_ms"], row["tainted"]) == (24.5, True)
    assert row["send_late_p99_ms"] == pytest.approx(34.5, abs=0.5)


def test_3_a_sender_that_runs_early_is_counted_and_taints(tmp_path: Path):
    row = asked(late_ms=-20.0).audio(1600, tone(200)).done(1610).row(tmp_path)
    assert row["early_sends"] == 70
    assert (row["own_error_ms"], row["tainted"]) == (20.0, True)


@pytest.mark.parametrize("ms", [1600.001, 1600.123, 1613.457, 1699.999])
def test_4_nothing_is_quantised(tmp_path: Path, ms: float):
    row = asked().text(ms - 0.001).audio(ms, tone(200)).done(1700).row(tmp_path)
    assert row["first_packet_ms"] == pytest.approx(ms - 1000.15, abs=1e-9)
    assert row["first_audible_ms"] == pytest.approx(ms - 1000, abs=1e-9)
    assert row["ttft_ms"] == pytest.approx(ms - 1000.151, abs=1e-9)


def test_5_gaps_between_packets_are_heard(tmp_path: Path):
    # 100 ms of silence at 1500, then nothing until the tone at 2000: concatenated it would sound at 1600.
    row = asked().audio(1500, silence(100)).audio(2000, tone(100)).audio(2300, tone(100)).done(2310).row(tmp_path)
    # The first loud window begins 9 ms before the gap: its head is the old silence, the sound is the new packet.
    assert row["anchors"]["first_audible"] == 2000 * MS
    assert (row["stalls"], row["stall_ms"]) == (2, 400.0 + 200.0)


def test_5_sound_that_begins_in_a_later_packet_waits_for_it(tmp_path: Path):
    row = asked().audio(1500, silence(100)).audio(2000, silence(50)).audio(2010, tone(100)).done(2310).row(tmp_path)
    assert row["anchors"]["first_audible"] == (2050 - 9) * MS


def test_5_a_short_gap_inside_the_window_changes_nothing(tmp_path: Path):
    row = asked().audio(1500, silence(100)).audio(1605, tone(100)).done(2310).row(tmp_path)
    assert row["anchors"]["first_audible"] == 1591 * MS


def test_6_the_clock_does_not_start_with_the_session_or_the_stream(tmp_path: Path):
    short = asked().audio(1600, tone(200)).done(1610).row(tmp_path / "a")
    script = Script().connected(-60_000).stream(-30_000).turn(0, 300, 1000, clip_ms=(0, 1200)).send(-30_000, 1400)
    long = script.heard_stop(1400).begin(1401).audio(1600, tone(200)).done(1610).row(tmp_path / "b")
    names = ("first_packet_ms", "first_audible_ms", "endpoint_ms", "think_ms")
    assert [short[name] for name in names] == [long[name] for name in names]


def test_8_the_user_stopping_is_not_the_agent_yielding(tmp_path: Path):
    # The first answer is over (2100) before the second turn begins (2500): there is nothing to interrupt.
    script = asked().audio(1600, tone(500)).done(1610).ended(1611)
    script.turn(1, 2500, 2900, clip_ms=(2400, 3000)).send(1400, 3200).heard_stop(3200).begin(3201, "r1")
    second = script.audio(3300, tone(100), "r1").done(3310, "r1").rows(tmp_path, queries=("q0", "q1"))[1]
    assert (second["barge_in_stop_ms"], second["wire_stop_ms"]) == (None, None)
    assert second["reasons"]["barge_in_stop_ms"] == "no answer was being heard when this turn began"


@pytest.mark.parametrize("rate_hz", [8000, 16_000, 22_050, 24_000, 44_100, 48_000])
def test_9_the_length_of_an_answer_follows_its_rate(tmp_path: Path, rate_hz: int):
    script = asked()
    script.audio(1600, silence(100, rate_hz), rate_hz=rate_hz)
    row = script.audio(1610, tone(900, rate_hz), rate_hz=rate_hz).done(1700).row(tmp_path)
    assert row["response_s"] == pytest.approx(1.0, abs=1e-4)
    assert row["rtf"] == pytest.approx(0.21, abs=1e-4)
    assert row["leading_silence_ms"] == pytest.approx(91, abs=1.1)


def test_9_odd_user_rates(tmp_path: Path):
    script = Script(rate_hz=44_100).stream().turn(0, 300, 1001, clip_ms=(0, 1200)).send(0, 1400).heard_stop(1400)
    row = script.begin(1401).audio(1600, tone(200)).done(1610).row(tmp_path)
    # Sample round(1001 ms * 44.1) = 44144 lies at 1000.997733 ms, rounded up to the ns.
    assert row["anchors"]["speech_end"] == -(-44_144 * 10**9 // 44_100)
    assert row["first_audible_ms"] == 599.002


def test_11_a_session_that_dies_is_the_peers_error_and_says_why(tmp_path: Path):
    script = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1400).heard_stop(1400)
    script.add(GoAway(t_ns=script.at(1500), time_left_ms=50))
    script.add(ConnectionClosed(t_ns=script.at(1550), by="peer", code=1001, reason="session limit"))
    row = script.ended(1550, "closed").row(tmp_path)
    assert (row["status"], row["error"]) == ("peer_error", "closed by the peer (1001): session limit")
    assert row["first_packet_ms"] is None


def test_12_a_delta_after_done_is_late_and_in_no_metric(tmp_path: Path):
    row = vad_turn().audio(2500, tone(300)).row(tmp_path)
    plain = vad_turn().row(tmp_path)
    assert row["late_packets"] == 1
    assert {k: v for k, v in row.items() if k != "late_packets"} == {
        k: v for k, v in plain.items() if k != "late_packets"
    }


def test_12_a_cancelled_answers_audio_is_late(tmp_path: Path):
    script = asked().audio(1500, tone(200)).cancel(1520).audio(1530, tone(200)).audio(1540, tone(200))
    row = script.done(1550, status="cancelled").audio(1560, tone(200)).row(tmp_path)
    assert (row["status"], row["late_packets"], row["audio_s"]) == ("cancelled", 3, 0.2)
    assert row["first_packet_ms"] == 499.85
    assert (row["rtf"], row["reasons"]["rtf"]) == (None, "the answer was not completed")


def test_13_a_turn_without_an_answer_stays_in(tmp_path: Path):
    script = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1400)
    row = script.ended(31_000, "timeout").row(tmp_path)
    assert (row["status"], row["failed"], row["first_packet_ms"]) == ("timeout", True, None)


def test_14_the_last_packet_counts_even_after_audio_done(tmp_path: Path):
    script = asked().audio(1500, tone(200)).add(AudioDone(t_ns=0, response="r0"))
    row = script.audio(1510, tone(300)).done(1520).row(tmp_path)
    assert row["response_s"] == 0.5


def test_14_samples_that_the_recording_lacks_are_not_taken_for_silence(tmp_path: Path):
    script = asked().audio(1500, tone(200)).done(1520)
    script.events = [
        type(e)(t_ns=e.t_ns, samples=9600, rate_hz=24_000, response="r0", pcm=e.pcm) if hasattr(e, "pcm") and
        hasattr(e, "response") else e
        for e in script.events
    ]  # fmt: skip
    row = script.row(tmp_path, dropped=1)
    assert (row["status"], row["first_audible_ms"], row["tainted"]) == ("ok", None, True)
    assert row["reasons"]["first_audible_ms"] == "the recording lacks samples of this answer"


def test_15_a_stall_of_our_loop_taints_the_row(tmp_path: Path):
    script = vad_turn()
    script.add(LoopLag(t_ns=script.at(1605), window_ns=50 * MS, max_lag_ns=38 * MS))
    row = script.row(tmp_path)
    assert (row["own_error_ms"], row["tainted"]) == (38.0, True)


def test_16_a_peer_clocked_by_our_input_has_no_rtf(tmp_path: Path):
    row = vad_turn().row(tmp_path, profile=Profile(pacing="input_clocked"))
    assert (row["rtf"], row["generation_s"]) == (None, None)


def test_17_an_answer_that_goes_on_into_the_next_turn_stays_with_its_own(tmp_path: Path):
    script = asked().audio(1600, tone(200)).ended(2000, "timeout")
    script.turn(1, 2500, 3000, clip_ms=(2400, 3000)).send(1400, 3400)
    script.audio(3100, tone(400)).done(3110)
    script.heard_stop(3400).begin(3401, "r1").audio(3700, tone(100), "r1").done(3710, "r1").ended(3711, turn=1)
    first, second = script.rows(tmp_path, queries=("q0", "q1"))
    assert (first["response_s"], first["first_packet_ms"]) == (0.6, 599.85)
    assert (second["status"], second["early"], second["first_packet_ms"]) == ("ok", 0, 699.85)


def test_17_the_timed_out_answer_to_the_last_turn_is_early_in_this_one(tmp_path: Path):
    script = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 2400).ended(2400, "timeout")
    script.turn(1, 2500, 3000, clip_ms=(2400, 3000)).send(2400, 3400)
    script.begin(2800, "slow").audio(2900, tone(100), "slow").done(2910, "slow")
    script.heard_stop(3400).begin(3401, "r1").audio(3700, tone(100), "r1").done(3710, "r1").ended(3711, turn=1)
    first, second = script.rows(tmp_path, queries=("q0", "q1"))
    assert (first["status"], second["status"]) == ("timeout", "ok")
    assert (second["early"], second["first_packet_ms"]) == (1, 699.85)


def test_17_audio_after_the_time_limit_is_no_answer(tmp_path: Path):
    row = asked().ended(2000, "timeout").audio(2500, tone(200)).done(2510).row(tmp_path)
    assert (row["status"], row["failed"]) == ("timeout", True)


def paused(answer: bool) -> Script:
    """A pause inside the query: the peer hears an end at 700, answers at 720, is interrupted at 800 by the rest."""
    script = Script().stream().turn(0, 300, 1500, clip_ms=(0, 1700)).send(0, 2000).heard_stop(700)
    script.begin(701, "early").text(710, "I", "early").audio(720, tone(2000), "early").heard_start(800)
    script.done(810, "early", status="cancelled").audio(820, tone(100), "early")
    if answer:
        script.heard_stop(1900).begin(1901, "r1").text(2000, "You", "r1").audio(2100, tone(200), "r1").done(2110, "r1")
    return script


def test_18_an_answer_to_a_pause_is_early_and_no_source_of_latency(tmp_path: Path):
    row = paused(answer=False).ended(31_000, "timeout").row(tmp_path)
    assert (row["status"], row["early"], row["late_packets"]) == ("early", 1, 1)
    for name in ("ttft_ms", "first_packet_ms", "first_audible_ms", "endpoint_ms", "think_ms", "rtf", "audio_s"):
        assert row[name] is None, name
    assert row["reasons"]["endpoint"] == "the peer heard an end of speech only inside the query"


def test_18_the_real_answer_counts_from_the_real_end(tmp_path: Path):
    row = paused(answer=True).row(tmp_path)
    assert (row["status"], row["early"]) == ("ok", 1)
    assert (row["ttft_ms"], row["first_packet_ms"], row["first_audible_ms"]) == (499.85, 599.85, 600.0)
    assert (row["endpoint_ms"], row["think_ms"]) == (400.0, 200.0)
    assert row["generation_s"] == 0.2
