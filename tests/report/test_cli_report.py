"""The command that draws the page again."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import cli
from harness.core.errors import PrerequisiteError, SessionFormatError
from tests.report.sample_run import Plan, write_run

pytestmark = pytest.mark.unit


def test_as_many_sessions_as_asked_for_and_the_scores_kept_since(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [Plan(session=f"s{i}", answer_ms=300) for i in range(3)])
    run.write_json("scores.json", {"benchmark": "vocalbench-zh", "overall": {"value": 12.5}})
    for sessions, sounds in (("2", 2), ("all", 3)):
        done = CliRunner().invoke(cli, ["report", str(run.path), "--sessions", sessions], catch_exceptions=False)
        assert (done.exit_code, done.stdout) == (0, "")
        assert f"report: {run.report}" in done.stderr
        assert len(list((run.path / "report_audio").iterdir())) == sounds
    assert "Overall 12.500" in run.report.read_text(encoding="utf-8")


def test_wrong_use_is_one_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["report", str(tmp_path), "--sessions", "many"])
    assert done.exit_code == 2
    assert "--sessions many: give a number, or all" in done.stderr
    with pytest.raises(SessionFormatError, match="not a run directory"):
        CliRunner().invoke(cli, ["report", str(tmp_path)], catch_exceptions=False)


def test_a_page_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [Plan(session="s", answer_ms=300)])
    (run.path / "report_audio").write_text("in the way")
    with pytest.raises(PrerequisiteError, match="the page cannot be written"):
        CliRunner().invoke(cli, ["report", str(run.path)], catch_exceptions=False)
