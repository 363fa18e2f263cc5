"""Stages that a local model marks, from sessions written by hand."""

from __future__ import annotations

from pathlib import Path

from harness.core.events import RawReceived
from tests.scoring.timing.recordings import MS, Script, header, tone
from tests.scoring.timing.test_summary import run_at, summary_of

MARKS = {"asr": 1700, "first_token": 1750, "first_clause": 1900, "first_audio": 2000}


def script(shift: int = 0) -> Script:
    """Speech until 1000 ms, heard to end at 1400; each mark arrives 3 ms after it was made."""
    made = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 2500)
    made.heard_stop(1400).begin(1400)
    for name, at in [("asr", 900 - shift), *MARKS.items()]:
        produced_ns = made.at(at + shift)
        made.add(RawReceived(t_ns=produced_ns + 3 * MS, name=f"stage.{name}", produced_ns=produced_ns))
    return made.audio(2003 + shift, tone(400)).done(2100 + shift)


def test_stages_are_counted_from_the_end_of_speech_and_from_each_other(tmp_path: Path) -> None:
    row = script().row(tmp_path)
    assert row["stages"] == {
        "asr": {"at_ms": 700.0, "step_ms": 300.0},
        "first_token": {"at_ms": 750.0, "step_ms": 50.0},
        "first_clause": {"at_ms": 900.0, "step_ms": 150.0},
        "first_audio": {"at_ms": 1000.0, "step_ms": 100.0},
    }


def test_the_summary_has_each_stage_in_order(tmp_path: Path) -> None:
    run = run_at(tmp_path)
    for name, shift in (("a", 0), ("b", 10), ("c", 20)):
        script(shift).write(run.sessions, header(session=name))
    stages = summary_of(run)["stages"]
    assert list(stages) == list(MARKS)
    assert [stages[name]["at_ms"]["p50"] for name in MARKS] == [710.0, 760.0, 910.0, 1010.0]
    assert stages["asr"]["step_ms"]["max"] == 320.0
    assert stages["first_audio"]["step_ms"] == {**stages["first_audio"]["step_ms"], "n": 3, "p50": 100.0, "min": 100.0}


def test_a_peer_without_marks_has_no_stages(tmp_path: Path) -> None:
    run = run_at(tmp_path)
    plain = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 2500).audio(1500, tone(200)).done(1600)
    plain.write(run.sessions, header())
    assert "stages" not in summary_of(run)
    assert "stages" not in plain.row(tmp_path / "alone")
