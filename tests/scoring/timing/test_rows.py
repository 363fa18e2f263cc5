"""Rows of hand-written sessions, every figure worked out on paper."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.core.events import AudioSent, ConnectionClosed, ConnectionPhase, LoopLag, PeerError, RoundTrip
from harness.core.profile import Profile
from tests.scoring.timing.recordings import BASE_NS, MS, Script, silence, tone, vad_turn

pytestmark = pytest.mark.unit


def test_vad_turn(tmp_path: Path):
    row = vad_turn().row(tmp_path)
    assert row["status"] == "ok"
    # speech_sent: the chunk of 980-1000 ms was planned at 1000, started 0.1 later, was written 0.05 after that.
    assert row["ttft_ms"] == 499.85
    assert row["first_packet_ms"] == 599.85
    # The tone lies 100 ms into the playout that began at 1600; its first loud window begins 9 ms earlier.
    assert row["first_audible_ms"] == 691.0
    assert row["endpoint_ms"] == 400.0
    assert row["think_ms"] == 200.0
    assert row["leading_silence_ms"] == 91.0
    assert (row["generation_s"], row["response_s"], row["rtf"]) == (0.22, 0.4, 0.55)
    assert row["rtf_anchor"] == "endpoint"
    assert row["stream_rtf"] == pytest.approx(20 / 300, abs=1e-6)
    assert (row["stalls"], row["stall_ms"]) == (0, 0.0)
    # Packets 2 and 3 start at 1700 and 1900 and arrived at 1610 and 1620: leads of 90 and 280 ms.
    assert row["buffer_lead_ms"] == 185.0
    assert row["connect_phases_ms"] == {"dns": 2.0, "tcp": 3.0, "tls": 10.0, "upgrade": 5.0}
    assert (row["connect_ms"], row["ready_ms"], row["since_ready_ms"]) == (20.0, 50.0, 400.0)
    assert (row["send_late_p99_ms"], row["own_error_ms"], row["tainted"]) == (0.1, 0.1, False)
    assert (row["usage"], row["error"]) == (None, None)


def test_identity_columns(tmp_path: Path):
    row = vad_turn().row(tmp_path, session="abc", repeat=3)
    expected = {"session": "abc", "query": "q0", "turn": 0, "turn_index": 0, "mode": "vad", "repeat": 3}
    assert {key: row[key] for key in expected} == expected
    assert (row["peer"], row["language"], row["annotator"], row["warmup"]) == ("test-peer", "en", "manifest", False)
    assert row["text_order"] == "before_audio"


def test_anchors_name_their_events(tmp_path: Path):
    session = vad_turn().write(tmp_path)
    row = vad_turn().row(tmp_path)
    for name, seq in row["anchor_events"].items():
        event = session.events[seq]
        if name not in ("speech_start", "speech_end", "first_audible"):
            assert event.t_ns - BASE_NS == row["anchors"][name], name
    assert row["anchors"]["committed"] is None
    assert row["reasons"]["committed"] == "only manual turns are committed"


def manual_turn() -> Script:
    """Speech 300-1000 ms; the stream stops at 1000, commit at 1000.2; text 1100, audio 1200 and 1210, done 1220."""
    script = Script().connected().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1000)
    script.commit(1000.2).stop(1000.3, 1000).begin(1001).text(1100)
    return script.audio(1200, tone(300)).audio(1210, tone(300)).done(1220, usage={"tokens": 5}).ended(1221)


def test_manual_turn_starts_at_the_commit(tmp_path: Path):
    row = manual_turn().row(tmp_path, mode="manual")
    assert (row["ttft_ms"], row["first_packet_ms"], row["think_ms"]) == (99.8, 199.8, 199.8)
    assert row["first_audible_ms"] == 200.0
    assert row["endpoint_ms"] is None
    assert "endpoint_ms" in row["undefined"]
    assert (row["rtf_anchor"], row["generation_s"], row["rtf"]) == ("committed", 0.2098, round(0.2098 / 0.6, 6))
    assert row["usage"] == {"tokens": 5}


def test_manual_turns_stop_and_restart_the_stream(tmp_path: Path):
    # The second segment begins with sample 1000 ms, 5 s later: the first query's end lies in the first segment.
    script = manual_turn().stream(6000, sample_ms=1000).turn(1, 1200, 1800, t_ms=5999, clip_ms=(1000, 1800))
    script.send(1000, 1800, shift_ms=5000).commit(6800.2, turn=1).stop(6800.3, 1800)
    script.begin(6801, "r1").audio(6900, tone(200), "r1").done(6910, "r1").ended(6911, turn=1)
    first, second = script.rows(tmp_path, mode="manual", queries=("q0", "q1"))
    assert first["first_audible_ms"] == 200.0
    assert first["anchors"]["speech_end"] == 1000 * MS
    assert second["anchors"]["speech_start"] == 6200 * MS
    assert second["anchors"]["speech_end"] == 6800 * MS
    assert second["anchors"]["stream_start"] == 6000 * MS
    assert (second["first_packet_ms"], second["first_audible_ms"]) == (99.8, 100.0)
    assert (first["turn_index"], second["turn_index"]) == (0, 1)
    assert (first["since_ready_ms"], second["since_ready_ms"]) == (400.0, 6300.0)


def test_a_restart_may_skip_samples(tmp_path: Path):
    script = Script().stream(0, sample_ms=0).stop(200, 200).stream(1000, sample_ms=200)
    script.turn(0, 300, 700, clip_ms=(200, 700)).send(200, 900, shift_ms=800)
    row = script.heard_stop(2000).begin(2001).audio(2100, tone(200)).done(2200).row(tmp_path)
    assert row["anchors"]["speech_end"] == 1500 * MS
    assert row["first_audible_ms"] == 600.0


def test_upload(tmp_path: Path):
    script = Script().connected().turn(0, 300, 1000, clip_ms=(0, 1200))
    pcm = Script().sample(1200)
    script.add(AudioSent(t_ns=script.at(60), planned_ns=script.at(50), started_ns=script.at(50), sample=0, samples=pcm))
    script.begin(300).text(350).audio(400, silence(40)).audio(500, tone(100)).done(510)
    row = script.row(tmp_path, mode="upload")
    assert row["status"] == "ok"
    assert (row["ttft_ms"], row["first_packet_ms"]) == (290.0, 340.0)
    assert row["first_audible_ms"] is None
    assert row["reasons"]["first_audible_ms"] == "upload: the query has no place on a media timeline"
    assert row["leading_silence_ms"] == 100.0
    assert (row["rtf_anchor"], row["generation_s"], row["response_s"]) == ("upload", 0.44, 0.14)
    assert (row["send_late_p99_ms"], row["own_error_ms"]) == (None, 10.0)
    assert (row["think_ms"], row["endpoint_ms"]) == (None, None)


def test_upload_in_pieces_is_sent_with_its_last_byte(tmp_path: Path):
    script = Script().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1200, shift_ms=-2000)
    row = script.begin(0).audio(100, tone(100)).done(110).row(tmp_path, mode="upload")
    # The last chunk, of 1180-1200 ms, left at 1200 - 2000 + 0.1 and was written 0.05 later.
    assert row["first_packet_ms"] == 899.85


def test_an_answer_during_an_upload_is_early(tmp_path: Path):
    script = Script().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1200)
    row = script.begin(1100).audio(1300, tone(100)).done(1310).row(tmp_path, mode="upload")
    assert (row["status"], row["early"], row["first_packet_ms"]) == ("early", 1, None)


CONTINUOUS = Profile(continuous=True, pacing="input_clocked", turns=("vad",), flush_on=())


def frames(script: Script, from_ms: float, sound_at: list[tuple[float, float]], to_ms: float) -> Script:
    """A continuous peer's 80 ms frames: tone inside the given spans (multiples of 80 from the start), else silence."""
    position = from_ms
    while position < to_ms:
        loud = any(a <= position < b for a, b in sound_at)
        script.audio(position, tone(80) if loud else silence(80), response="")
        position += 80
    return script


def test_continuous_peer(tmp_path: Path):
    # Speech ends at 1000; frames arrive from 0 on in real time; sound from 1600 to 2400, from 2640 to 3200 (a gap of
    # 240 ms joins) and again at 4800.
    script = Script().connected().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 6000)
    frames(script, 0, [(1600, 2400), (2640, 3200), (4800, 5600)], 6000)
    script.text(1500, " ", "").text(1610, "hi", "")
    row = script.row(tmp_path, mode="none", profile=CONTINUOUS)
    assert (row["status"], row["early"]) == ("ok", 0)
    assert row["first_audible_ms"] == 591.0
    assert row["first_packet_ms"] is None
    assert row["reasons"]["first_packet_ms"] == "continuous peer: its audio never stops"
    assert row["ttft_ms"] == pytest.approx(610 - 0.15)
    assert [row[name] for name in ("rtf", "generation_s", "response_s", "think_ms", "stream_rtf")] == [None] * 5
    assert (row["stalls"], row["stall_ms"]) == (0, 0.0)


def test_continuous_peer_that_speaks_over_the_query_is_early(tmp_path: Path):
    script = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 4000)
    row = frames(script, 0, [(800, 1600)], 4000).row(tmp_path, mode="none", profile=CONTINUOUS)
    assert (row["status"], row["early"], row["first_audible_ms"]) == ("early", 1, None)
    assert row["reasons"]["first_audible_ms"] == "early: the peer answered only before the query was over"


def test_continuous_peer_that_only_sends_silence(tmp_path: Path):
    script = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 4000)
    row = frames(script, 0, [], 4000).ended(4000, "timeout").row(tmp_path, mode="none", profile=CONTINUOUS)
    assert (row["status"], row["first_audible_ms"]) == ("silent", None)


@pytest.mark.parametrize(("closed_ms", "status"), [(2_100, "peer_error"), (2_900, "ok")])
def test_a_continuous_peer_that_dies_while_it_speaks_has_failed(tmp_path: Path, closed_ms: int, status: str):
    script = Script().connected().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, closed_ms)
    frames(script, 0, [(1600, 2080)], closed_ms)
    script.add(ConnectionClosed(t_ns=script.at(closed_ms), by="peer", code=1011))
    row = script.ended(closed_ms + 1, "closed").row(tmp_path, mode="none", profile=CONTINUOUS)
    assert row["status"] == status


def test_a_continuous_peer_that_reports_an_error_instead_of_speaking(tmp_path: Path):
    script = Script().connected().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 2_900)
    script.add(PeerError(t_ns=script.at(1_500), code="rate_limit", message="slow down"))
    row = frames(script, 0, [], 2_900).ended(2_900, "timeout").row(tmp_path, mode="none", profile=CONTINUOUS)
    assert (row["status"], row["error"]) == ("peer_error", "rate_limit: slow down")


def test_a_continuous_utterance_is_cut_where_playout_ran_dry(tmp_path: Path):
    # Tone without a gap in its samples, but the frames stop coming between 1760 and 2960: two utterances.
    script = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).turn(1, 2500, 2700, clip_ms=(2400, 2800))
    script.send(0, 4000)
    for ms in (1600, 1680, 2960, 3040, 3120, 3200):
        script.audio(ms, tone(80), response="")
    first, second = script.rows(tmp_path, mode="none", profile=CONTINUOUS, queries=("q0", "q1"))
    assert (first["first_audible_ms"], second["first_audible_ms"]) == (600.0, 260.0)


def test_paced_peer_has_no_rtf(tmp_path: Path):
    row = vad_turn().row(tmp_path, profile=Profile(pacing="paced"))
    assert [row[name] for name in ("generation_s", "response_s", "rtf", "rtf_anchor")] == [None] * 4
    assert row["reasons"]["rtf"].startswith("the peer delivers at the pace of speech")
    assert row["audio_s"] == 0.4
    assert row["stream_rtf"] is not None


def test_text_beside_the_audio_is_labelled(tmp_path: Path):
    row = vad_turn().row(tmp_path, profile=Profile(text="text_after_audio"))
    assert row["text_order"] == "text_after_audio"
    assert row["ttft_ms"] == 499.85


def test_a_peer_without_text(tmp_path: Path):
    row = vad_turn().row(tmp_path, profile=Profile(text="none"))
    assert (row["ttft_ms"], row["reasons"]["ttft_ms"]) == (None, "the peer sends no text")


def test_blank_text_is_not_the_first(tmp_path: Path):
    script = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1400).heard_stop(1400).begin(1401)
    row = script.text(1402, "").text(1410, " \n").text(1450, " a").audio(1500, tone(100)).done(1510).row(tmp_path)
    assert row["anchors"]["first_text"] == 1450 * MS


def test_stalls_and_the_jitter_buffer(tmp_path: Path):
    # Packets of 100 ms at 1600, 1800, 1850 and 2050: playout 1600-1700, 1800-1900, 1900-2000, 2050-2150.
    script = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1400).heard_stop(1400).begin(1401)
    for ms in (1600, 1800, 1850, 2050):
        script.audio(ms, tone(100))
    row = script.done(2060).row(tmp_path)
    assert (row["stalls"], row["stall_ms"]) == (2, 150.0)
    # With 100 ms: 1700-1800, then 1800-1900, 1900-2000, and after the underrun 2150-2250.
    assert (row["stalls_buffered"], row["stall_buffered_ms"]) == (1, 150.0)
    assert row["buffer_lead_ms"] == 0.0
    assert row["stream_rtf"] == 1.5


def test_round_trips_are_reported_as_a_median(tmp_path: Path):
    script = vad_turn()
    for rtt in (1, 9, 4):
        script.add(RoundTrip(t_ns=script.at(5), rtt_ns=rtt * MS))
    row = script.row(tmp_path)
    assert row["rtt_ms"] == 4.0
    assert row["first_packet_ms"] == 599.85


@pytest.mark.parametrize(
    ("end_ms", "window_ms", "counts"),
    [(1600, 50, True), (1549.9, 50, False), (1550, 50, True), (1649, 50, True), (1651, 50, False)],
)
def test_loop_lag_counts_when_its_window_touches_the_50_ms_before(
    tmp_path: Path, end_ms: float, window_ms: int, counts: bool
):
    script = vad_turn()
    script.add(LoopLag(t_ns=script.at(end_ms), window_ns=window_ms * MS, max_lag_ns=3 * MS))
    row = script.row(tmp_path)
    assert (row["own_error_ms"], row["tainted"]) == ((3.0, True) if counts else (0.1, False))


def test_dropped_records_taint_every_row(tmp_path: Path):
    assert vad_turn().row(tmp_path, dropped=1)["tainted"] is True


def test_the_bound_itself_does_not_taint(tmp_path: Path):
    script = vad_turn()
    script.add(LoopLag(t_ns=script.at(1600), window_ns=50 * MS, max_lag_ns=2 * MS))
    row = script.row(tmp_path)
    assert (row["own_error_ms"], row["tainted"]) == (2.0, False)


def test_usage_is_summed_over_responses(tmp_path: Path):
    script = vad_turn().begin(1650, "r1").audio(1660, tone(100), "r1")
    script.done(1670, "r1", usage={"tokens": 3, "detail": {"audio": 2}, "model": "b"})
    first = next(e for e in script.events if getattr(e, "status", None) == "completed" and e.response == "r0")
    usage = {"tokens": 4, "detail": {"audio": 1, "text": 1}, "model": "a"}
    script.events[script.events.index(first)] = msgspec.structs.replace(first, usage=usage)
    assert script.row(tmp_path)["usage"] == {"tokens": 7, "detail": {"audio": 3, "text": 1}, "model": "b"}


def test_used_responses_are_summed(tmp_path: Path):
    script = vad_turn().begin(1650, "r1").audio(1700, tone(100), "r1").audio(1720, tone(100), "r1").done(1730, "r1")
    row = script.row(tmp_path)
    assert row["first_packet_ms"] == 599.85
    assert (row["generation_s"], row["response_s"]) == (0.32, 0.6)
    assert row["stream_rtf"] == pytest.approx((20 + 20) / (300 + 100))
    assert row["anchors"]["done"] == 1730 * MS


def test_look_ahead_of_an_encoder_moves_the_anchor_packet(tmp_path: Path):
    row = vad_turn().row(tmp_path, profile=Profile(encoder_lookahead_samples=156))  # 6.5 ms
    # Sample 23999 + 156 lies in the next chunk, written 20 ms later.
    assert row["first_packet_ms"] == 579.85
    assert row["first_audible_ms"] == 691.0


@pytest.mark.parametrize(
    ("phases", "connect_ms"),
    [
        ([], None),
        ([("dns", 0.064)], None),
        ([("dns", 1), ("tcp", 2), ("tls", 3)], None),
        ([("dns", 1), ("tcp", 2), ("upgrade", 4)], 4.0),
        ([("tcp", 2), ("ready", 9)], 2.0),
        ([("ready", 9)], None),
    ],
)
def test_only_a_connection_that_was_made_has_a_time(
    tmp_path: Path, phases: list[tuple[str, float]], connect_ms: float | None
):
    script = Script().add(ConnectionPhase(t_ns=BASE_NS, phase="started"))
    for phase, ms in phases:
        script.add(ConnectionPhase(t_ns=script.at(ms), phase=phase))
    script.add(ConnectionClosed(t_ns=script.at(10), by="network", reason="refused"))
    row = script.row(tmp_path)
    assert row["connect_ms"] == connect_ms
    if connect_ms is None:
        said = "the connection was not made" if phases != [("ready", 9)] else "the phases of the connection were not"
        assert row["connect_phases_ms"] is None
        assert row["reasons"]["connect_ms"].startswith(said)
        assert row["reasons"]["connect_phases_ms"].startswith(said)


def lost(script: Script, sample: int) -> Script:
    """The packet that holds `sample` never left the write buffer; that was noticed 300 ms later."""
    index = next(
        k for k, e in enumerate(script.events) if isinstance(e, AudioSent) and 0 <= sample - e.sample < e.samples
    )
    event = script.events[index]
    script.events[index] = msgspec.structs.replace(event, lost=True, t_ns=event.t_ns + 300 * MS)
    return script


def test_a_lost_packet_was_never_sent(tmp_path: Path):
    script = vad_turn()
    row = lost(script, script.sample(1000) - 1).row(tmp_path)
    said = "the connection went before the last of the query had left"
    assert (row["anchors"]["speech_sent"], row["ttft_ms"], row["first_packet_ms"]) == (None, None, None)
    assert row["reasons"]["speech_sent"] == row["reasons"]["first_packet_ms"] == said
    # The media timeline knows nothing of the network, and a write that never ended has no length.
    assert (row["first_audible_ms"], row["endpoint_ms"]) == (691.0, 400.0)
    assert (row["own_error_ms"], row["tainted"]) == (0.1, False)


def test_another_lost_packet_changes_nothing(tmp_path: Path):
    script = vad_turn()
    assert lost(script, script.sample(1990)).row(tmp_path)["first_packet_ms"] == 599.85


def test_an_upload_that_was_lost_has_only_early_answers(tmp_path: Path):
    script = Script().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1200)
    lost(script, script.sample(1200) - 1).begin(1300).audio(1400, tone(100)).done(1410)
    row = script.row(tmp_path, mode="upload")
    assert (row["status"], row["early"], row["first_packet_ms"]) == ("early", 1, None)


@pytest.mark.parametrize(("word_ms", "packet_ms"), [(1015, 1016), (1400, 1500)])
def test_endpoint_lies_within_first_audible_but_may_exceed_first_packet(
    tmp_path: Path, word_ms: float, packet_ms: float
):
    # Speech ends at 1000.5, early in the chunk of 1000-1020, which leaves at 1020.1.
    script = Script().connected().stream().turn(0, 300, 1000.5, clip_ms=(0, 1200)).send(0, 1400)
    script.heard_stop(word_ms).begin(word_ms).audio(packet_ms, tone(200)).done(packet_ms + 1)
    row = script.row(tmp_path)
    assert row["endpoint_ms"] <= row["first_audible_ms"]
    assert -20.2 <= row["first_packet_ms"] - row["endpoint_ms"] - (packet_ms - word_ms) <= 0
