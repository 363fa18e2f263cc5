"""Interruptions: as heard, on the wire, and when there is none. The second turn's speech begins at 2500 ms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.core.profile import Profile
from tests.scoring.timing.recordings import Script, tone

pytestmark = pytest.mark.unit
ONSET_MS = 2500


def first_turn() -> Script:
    return Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1400).heard_stop(1400).begin(1401)


def interrupt(script: Script) -> Script:
    return script.turn(1, ONSET_MS, 3000, clip_ms=(2400, 3100)).send(1400, 3400)


def second(tmp_path: Path, script: Script, **changes: Any) -> dict[str, Any]:
    return script.rows(tmp_path, queries=("q0", "q1"), **changes)[1]


def test_a_flush_stops_what_is_heard(tmp_path: Path):
    script = interrupt(first_turn().audio(1600, tone(5000))).heard_start(2700).done(2710, status="cancelled")
    row = second(tmp_path, script)
    assert (row["barge_in_stop_ms"], row["wire_stop_ms"]) == (200.0, None)
    assert row["reasons"]["wire_stop_ms"] == "no audio packet arrived after the interruption"


def test_without_a_flush_the_answer_is_heard_to_its_end(tmp_path: Path):
    row = second(tmp_path, interrupt(first_turn().audio(1600, tone(5000)).done(1610)))
    assert row["barge_in_stop_ms"] == 1600 + 5000 - ONSET_MS


def test_the_natural_end_may_come_before_the_flush(tmp_path: Path):
    script = interrupt(first_turn().audio(1600, tone(1000)).done(1610)).heard_start(2700)
    assert second(tmp_path, script)["barge_in_stop_ms"] == 100.0


def test_wire_stop_is_the_last_packet_that_was_not_late(tmp_path: Path):
    script = first_turn()
    for ms in range(1600, 2900, 100):
        script.audio(ms, tone(100))
    script = interrupt(script).heard_start(2700).done(2850, status="cancelled").audio(2900, tone(100))
    row = second(tmp_path, script)
    assert (row["barge_in_stop_ms"], row["wire_stop_ms"]) == (200.0, 300.0)


def test_during_a_stall_is_a_barge_in(tmp_path: Path):
    # Heard 1600-2000, dry until 2600, heard 2600-2700.
    script = interrupt(first_turn().audio(1600, tone(400)).audio(2600, tone(100))).done(2610)
    row = second(tmp_path, script)
    assert (row["barge_in_stop_ms"], row["wire_stop_ms"]) == (200.0, 100.0)


@pytest.mark.parametrize(("start_ms", "event"), [(2500, True), (2500.001, False)])
def test_at_the_first_packet(tmp_path: Path, start_ms: float, event: bool):
    row = second(tmp_path, interrupt(first_turn().audio(start_ms, tone(100))).done(2610))
    assert row["barge_in_stop_ms"] == (100.0 if event else None)


@pytest.mark.parametrize(("length_ms", "event"), [(900, False), (901, True)])
def test_at_the_last_sample(tmp_path: Path, length_ms: float, event: bool):
    row = second(tmp_path, interrupt(first_turn().audio(1600, tone(length_ms))).done(2610))
    assert row["barge_in_stop_ms"] == (1.0 if event else None)


def test_a_response_that_was_not_heard_yet_is_no_event_after_one_that_is_over(tmp_path: Path):
    script = first_turn().audio(1600, tone(200)).done(1610).begin(2400, "r1")
    row = second(tmp_path, interrupt(script).audio(2600, tone(300), "r1"))
    assert row["barge_in_stop_ms"] is None


def test_a_flush_before_the_onset_had_ended_it(tmp_path: Path):
    script = interrupt(first_turn().audio(1600, tone(5000)).heard_start(2400))
    assert second(tmp_path, script)["barge_in_stop_ms"] is None


def test_the_profile_says_what_flushes(tmp_path: Path):
    script = interrupt(first_turn().audio(1600, tone(2000))).heard_start(2700).done(2710, status="cancelled")
    row = second(tmp_path, script, profile=Profile(flush_on=("response_done",)))
    assert row["barge_in_stop_ms"] == 210.0
    row = second(tmp_path, script, profile=Profile(flush_on=()), session="other")
    assert row["barge_in_stop_ms"] == 1100.0


def test_the_first_turn_interrupts_nothing(tmp_path: Path):
    row = first_turn().audio(1600, tone(200)).done(1610).row(tmp_path)
    assert row["barge_in_stop_ms"] is None


def test_a_continuous_peer_stops_at_the_end_of_its_utterance(tmp_path: Path):
    script = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).turn(1, ONSET_MS, 3000, clip_ms=(2400, 3100))
    script.send(0, 6000)
    for ms in range(0, 6000, 100):
        script.audio(ms, tone(100, level=0.3 if 1600 <= ms < 2900 else 0.0), response="")
    profile = Profile(continuous=True, pacing="paced", flush_on=())
    row = second(tmp_path, script, profile=profile, mode="none")
    # The last loud window ends 9 ms after the tone.
    assert (row["barge_in_stop_ms"], row["wire_stop_ms"]) == (409.0, None)
