"""The score panel, from what `firstpacket score` keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.core.run_directory import RunDirectory
from harness.report.html import write_report
from harness.report.page_scores import scores_of
from tests.report.test_html import Reader

pytestmark = pytest.mark.unit

LATENCY = {"ttft_ms": {"n": 12, "p50": 812.34}, "first_packet_ms": {"n": 12, "p50": 900.0}}
LATENCY |= {"first_audible_ms": {"n": 0, "unscored": "upload"}, "rtf": {"n": 12, "of_sums": 0.41236}}


def summary(**more: Any) -> dict[str, Any]:
    return {
        "benchmark": "vocalbench-zh",
        "subsets": {
            "single_round": {
                "score": {"value": 3.1, "unit": "1-5", "n": 20, "ci95": [2.55, 3.6]},
                "utmos": {"unscored": "the answer has no <sound>", "n": 0},
            }
        },
        "categories": {
            "reasoning": {"graphological": {"value": 75.0, "unit": "%", "n": 4, "missing": 1, "why": "late"}}
        },
        "overall": {"unscored": "parts are missing", "missing": ["far_field"]},
        "latency": {"all": LATENCY},
        "answers": 20,
        "failed": 2,
        "not_run": 0,
        "engines": {"asr": "faster-whisper"},
        "no_engine": {"mos": "--mos none"},
        **more,
    }


def test_figures_stand_as_the_terminal_prints_them() -> None:
    found = scores_of(summary())
    assert found is not None
    assert (found.answers, found.failed, found.overall) == (20, 2, "Overall unscored: missing far field")
    score, utmos = found.subsets[0].rows
    assert (found.subsets[0].name, score.few, score.unscored) == ("single round", False, False)
    assert score.cells == ("score", "20", "3.100", "2.550 to 3.600", "1-5", "")
    assert utmos.cells == ("utmos", "0", "unscored", "", "", "the answer has no <sound>")
    assert utmos.unscored
    assert found.categories[0].rows[0].cells == ("graphological", "4", "75.000", "–", "%", "1 without: late")
    assert found.categories[0].rows[0].few
    assert found.latency == (("all", "12", "812.3", "900.0", "–", "0.4124"),)
    assert found.about == ("asr: faster-whisper", "mos: unscored, --mos none")


def test_a_run_without_scores_has_no_panel(tmp_path: Path) -> None:
    assert scores_of(None) is None
    write_report(RunDirectory(tmp_path))
    assert "Scores" not in Reader((tmp_path / "report.html").read_text(encoding="utf-8")).text


def test_the_page_shows_the_panel_escaped(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.write_json("scores.json", summary(overall={"value": 61.25}, judge_usage={"calls": 3, "cached": 1, "failed": 0}))
    write_report(run)
    page = Reader(run.report.read_text(encoding="utf-8"))
    assert "Scores: vocalbench-zh" in page.text
    assert "Overall 61.250" in page.text
    assert ["utmos", "0", "unscored", "", "", "the answer has no <sound>"] in page.rows
    assert "judge: 3 calls, 1 from the cache" in page.text
    assert not [tag for tag, _ in page.tags if tag == "sound"]
