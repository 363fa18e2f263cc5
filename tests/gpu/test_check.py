"""The device check runs through on a CPU with tiny models, and tells a limit that is missed from one that is met."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.core.errors import PrerequisiteError
from tests.gpu import check, overhead
from tests.gpu.talk import Talk

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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--device", "cpu"], "no GPU: models of real size want 17 GB and more"),
        (["--device", "cuda:99", "--tiny"], "device=cuda"),
        (["--device", "gpu"], "needs cpu, cuda, cuda:N, mps or auto"),
    ],
)
def test_a_machine_that_cannot_hold_the_models_is_told_at_once(arguments, said, capsys):
    with pytest.raises(SystemExit):
        check.main(arguments)
    assert said in capsys.readouterr().err


def test_the_limit_of_a_stage_holds_while_the_bare_loop_is_waited_for():
    """It loads for ever: the pipe is read where it does not stop the clock."""

    bare = subprocess.Popen(["sleep", "60"], stdout=subprocess.PIPE, text=True)

    async def waits():
        try:
            return await overhead._line(bare)
        finally:
            bare.kill()

    with bare:
        assert check.run_stage(waits, 0.1)["error"] == "not done within 0.1 s"


def test_an_answer_that_never_ends_is_given_up_in_time_however_much_comes():
    """An event comes in each turn of the loop: a time limit that comes with one is not lost."""
    talk = Talk(SimpleNamespace(profile=SimpleNamespace(input_rate_hz=24_000)))
    talk._do = lambda command: None

    async def asked():
        loop = asyncio.get_running_loop()

        def more():
            talk._changed.set()
            loop.call_soon(more)

        more()
        await talk.ask(limit_s=0.1, stream_ms=20)

    with pytest.raises(TimeoutError):
        asyncio.run(asked())
