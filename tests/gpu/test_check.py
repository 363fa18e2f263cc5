"""The device check runs through on a CPU with tiny models, and tells a limit that is missed from one that is met."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from harness.core.errors import PrerequisiteError
from tests.gpu import check

pytestmark = [
    pytest.mark.loopback,
    pytest.mark.skipif(not (find_spec("torch") and find_spec("transformers")), reason="could not import 'torch'"),
]
SCRIPT = Path(check.__file__).with_name("check.sh")
STAGES = ("qwen2.5-omni incremental", "overhead", "burst", "packets of 80 ms", "whisper")


def test_it_runs_through_on_a_cpu(tmp_path):
    out = tmp_path / "check.json"
    chosen = [word for stage in STAGES for word in ("--only", stage)]
    done = subprocess.run(
        [SCRIPT, "--tiny", "--device", "cpu", "--out", out, *chosen],
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    found = json.loads(out.read_text())
    assert [figures.get("error") for figures in found["stages"].values()] == [None] * len(STAGES), done.stderr
    assert done.returncode == 0
    assert (found["weights"], found["tiny"], found["verdicts"]) == ("random", True, [])
    assert found["machine"]["gpu"] == "none"
    qwen, harness, burst, packets, whisper = (found["stages"][name] for name in STAGES)
    assert 0 < qwen["ttft_ms"] <= qwen["whole_ms"]
    assert qwen["facts"]["weights"] == "random"
    assert harness["events"] == 4 * 10 * 2
    assert burst["megabytes"] == 30.0
    assert min(packets["us_a_packet"], burst["us_a_packet"]) > 0
    assert whisper["facts"]["weights"] == "random"
    for stage in STAGES[:2]:
        assert f"{stage} (weights: random)\n" in done.stdout


def figures(step_p99_ms=79.9, ratio=1.01, late_ms=1.0):
    return {
        "moshi": {"step_p99_ms": step_p99_ms, "budget_ms": 80},
        "overhead": {"ratio_p50": ratio, "stamp_to_arrival_p99_ms": late_ms},
    }


@pytest.mark.parametrize(
    ("found", "missed"),
    [
        (figures(), 0),
        (figures(step_p99_ms=80.1), 1),
        (figures(ratio=1.011), 1),
        (figures(late_ms=1.1), 1),
        ({"moshi": {"error": "x"}, "overhead": {"error": "y"}}, 0),
    ],
)
def test_limits(found, missed):
    assert sum("MISSED" in line for line in check.verdicts(found)) == missed


def test_a_stage_that_fails_or_hangs_leaves_its_reason():
    async def fails():
        raise PrerequisiteError("moshi is not installed")

    found = check.run_stage(fails, 10.0)
    assert found["error"] == "PrerequisiteError: moshi is not installed"

    async def hangs():
        await asyncio.sleep(60)

    assert check.run_stage(hangs, 0.05)["error"] == "not done within 0.05 s"


def test_a_stage_that_does_not_exist_is_refused(capsys):
    with pytest.raises(SystemExit):
        check.main(["--only", "moshy"])
    assert "the stages are moshi" in capsys.readouterr().err
