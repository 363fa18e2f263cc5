"""Limits: met, missed, or without a value, and what continuous integration gets to see of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from harness.cli import cli
from harness.core.errors import ConfigError
from harness.core.run_directory import RunDirectory
from tests.report.duplex_run import write_conversations
from tests.report.sample_run import HOSTILE
from tests.scoring.compare.runs import turn, turns, write_run

pytestmark = pytest.mark.unit

METRICS: dict[str, Any] = {
    "first_packet_ms": {
        "n": 12,
        "p50": 700.0,
        "p90": 790.0,
        "p95": None,
        "mean": 710.0,
        "percentiles_all": {"n": 13, "p50": 705.0, "p90": "> timeout", "p95": None},
    },
    "unit_lag_ms": {"n": 0, "p50": None},
}


def firstpacket(*arguments: object) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(cli, [str(each) for each in arguments])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    rows = [turn(f"q{k}", 700.0, reasons={"unit_lag_ms": "the peer works in no units"}) for k in range(12)]
    return write_run(tmp_path / "run", [*rows, turn("q12", None)], metrics=METRICS)


@pytest.mark.parametrize(
    ("limit", "met", "said"),
    [
        (("--max", "first_packet_ms.p50=700"), True, "n 12"),
        (("--max", "first_packet_ms.p50=699.9"), False, "n 12"),
        (("--min", "first_packet_ms.n=12"), True, ""),
        (("--min", "first_packet_ms.n=13"), False, ""),
        (("--max", "failed=0"), False, ""),
        (("--max", "failed.count=1"), True, ""),
        (("--max", "tainted=0"), True, ""),
        (("--max", "first_packet_ms.p95=800"), False, "n 12 is too small: p95 needs 20"),
        (("--max", "first_packet_ms.p90_all=800"), False, "falls on a failed turn (> timeout)"),
        (("--max", "unit_lag_ms.p50=5"), False, "no turn has it: the peer works in no units"),
        (("--max", "rtf.p50=1"), False, "nothing in this run shows it"),
        (("--max", "duplex.stop_ms.median=1"), False, "nothing in this run shows it"),
    ],
)
def test_a_limit_of_the_run_itself(run: Path, limit: tuple[str, str], met: bool, said: str) -> None:
    done = firstpacket("gate", run, *limit, "--json")
    (check,) = json.loads(done.stdout)
    assert (done.exit_code, check["met"], check["said"]) == (0 if met else 1, met, said)


def test_conversations_have_limits_too(tmp_path: Path) -> None:
    path = write_conversations(tmp_path / "run").path
    limits = ("--max", "duplex.stop_ms.median=700", "--min", "duplex.user_interruption.yielded.rate=0.9")
    assert firstpacket("gate", path, *limits).exit_code == 0
    assert firstpacket("gate", path, "--min", "duplex.yielded.rate=1.1").exit_code == 1


def test_scores_are_limited_and_those_of_random_weights_count_for_nothing(run: Path) -> None:
    scores: dict[str, Any] = {
        "overall": {"unscored": "parts are missing", "missing": ["safety"]},
        "abilities": {"fluency_utmos": {"value": 4.1, "n": 20, "unit": ""}},
        "subsets": {"knowledge": {"s2t": {"value": 60.0, "n": 5, "unit": "%"}}},
        "engines": {"mos": "utmos"},
    }
    RunDirectory(run).write_json("scores.json", scores)
    limits = ("--min", "scores.fluency_utmos.value=4", "--min", "scores.knowledge.s2t.value=50")
    assert firstpacket("gate", run, *limits).exit_code == 0
    done = firstpacket("gate", run, "--min", "scores.overall.value=1", "--json")
    assert (done.exit_code, json.loads(done.stdout)[0]["said"]) == (1, "parts are missing")
    RunDirectory(run).write_json("scores.json", scores | {"engines": {"mos": "utmos, weights: random"}})
    done = firstpacket("gate", run, "--min", "scores.fluency_utmos.value=4", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)[0]["said"] == "rests on random weights (utmos, weights: random)"


def test_a_regression_is_paired_with_the_baseline(tmp_path: Path) -> None:
    base = write_run(tmp_path / "base", turns(seed=1))
    slow = write_run(tmp_path / "slow", turns(50, seed=2))

    def rc(run: Path, baseline: Path, limit: str) -> int:
        return firstpacket("gate", run, "--baseline", baseline, "--max-regression", limit).exit_code

    assert rc(slow, base, "first_packet_ms.mean=55") == 0
    assert rc(slow, base, "first_packet_ms.mean=45") == 1
    assert rc(base, slow, "first_packet_ms.mean=0") == 0


def test_of_what_is_better_when_greater_less_is_a_regression(tmp_path: Path) -> None:
    base = write_run(tmp_path / "base", [turn(f"q{k}", 1.0, buffer_lead_ms=500.0) for k in range(6)])
    worse = write_run(tmp_path / "worse", [turn(f"q{k}", 1.0, buffer_lead_ms=400.0) for k in range(6)])
    limit = ("--baseline", base, "--max-regression", "buffer_lead_ms.p50=50", "--json")
    done = firstpacket("gate", worse, *limit)
    (check,) = json.loads(done.stdout)
    assert (done.exit_code, check["value"]) == (1, 100.0)


def test_too_few_queries_are_no_proof_of_no_regression(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / name, [turn(f"q{k}", 1.0) for k in range(5)]) for name in "ab"]
    limits = [f"--max-regression={name}=50" for name in ("first_packet_ms.p50", "rtf.p50")]
    done = firstpacket("gate", paths[0], "--baseline", paths[1], *limits, "--json")
    assert done.exit_code == 1
    assert [check["said"] for check in json.loads(done.stdout)] == [
        "5 pairs from 5 queries; 6 are needed",
        "not in both runs",
    ]


def test_junit(run: Path, tmp_path: Path) -> None:
    info = RunDirectory(run).info()
    RunDirectory(run).write_json("run.json", {**json.loads((run / "run.json").read_text()), "peer": HOSTILE})
    assert info.peer == "run"
    file = tmp_path / "new" / "gate.xml"
    limits = ("--max", "first_packet_ms.p50=650", "--max", "first_packet_ms.p95=800", "--max", "tainted=0")
    assert firstpacket("gate", run, *limits, "--junit", file).exit_code == 1
    suite = ElementTree.parse(file).getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("3", "2")
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    kinds = {name: [each.get("type") for each in case.iter("failure")] for name, case in cases.items()}
    assert kinds == {
        "first_packet_ms.p50 <= 650": ["limit"],
        "first_packet_ms.p95 <= 800": ["unscored"],
        "tainted <= 0": [],
    }
    assert all("script" in str(case.get("classname")) for case in cases.values())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no limit given"),
        (("--max", "first_packet_m.p50=1"), r"first_packet_m\.p50: no figure .* did you mean first_packet_ms\?"),
        (("--max", "first_packet_ms.maxi=1"), r"first_packet_ms has no maxi; did you mean max\?"),
        (("--max", "first_packet_ms=1"), r"add a statistic, such as first_packet_ms\.p50"),
        (("--max", "first_packet_ms.p50"), r"write METRIC\.STATISTIC=NUMBER"),
        (("--max", "first_packet_ms.p50=nan"), r"write METRIC\.STATISTIC=NUMBER"),
        (("--max-regression", "first_packet_ms.p50=1"), "need each other"),
        (("--baseline", "run", "--max", "failed=1"), "need each other"),
        (("--baseline", "run", "--max-regression", "first_packet.p50=1"), r"did you mean first_packet_ms\?"),
        (("--baseline", "run", "--max-regression", "first_packet_ms.p90=1"), r"did you mean p95\?"),
        (("--baseline", "run", "--max-regression", "since_ready_ms.p50=1"), "cannot become worse"),
        (("--max", "failed=9", "--junit", "run"), "--junit run: cannot be written"),
    ],
)
def test_limits_that_make_no_sense_are_one_line(
    run: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(run.parent)
    rows = [row | {"since_ready_ms": 1.0} for row in RunDirectory(run).read_lines("metrics.jsonl")]
    RunDirectory(run).write_lines("metrics.jsonl", rows)
    done = firstpacket("gate", "run", *arguments)
    assert done.exception is not None
    with pytest.raises(ConfigError, match=said) as raised:
        raise done.exception
    assert "\n" not in str(raised.value)
