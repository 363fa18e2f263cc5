"""Runs of scenarios that are interrupted, killed and resumed; packs of both languages; peers that cannot take part."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import soundfile
from click.testing import CliRunner

from harness.cli import cli
from harness.cli_options import INTERRUPTED, PEER_FAILED
from harness.core.profile import Profile
from harness.core.run_directory import RunDirectory
from harness.run.scenario_session import unable
from scenarios.pack import BUNDLED_ROOT

pytestmark = pytest.mark.loopback
SESSIONS = 6


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """Six scenarios of a second and a half that say one word each and hang on no agent."""
    folder = tmp_path / "pack"
    (folder / "scenarios").mkdir(parents=True)
    bundled = BUNDLED_ROOT / "duplex-en"
    row = next(line for line in (bundled / "manifest.jsonl").read_text().splitlines() if '"en-bc-01"' in line)
    (folder / "manifest.jsonl").write_text(row + "\n")
    shutil.copy(bundled / json.loads(row)["audio"], folder)
    texts = [f"id: s{number}\nlinger_ms: 300\nevents:\n  - say: en-bc-01\n" for number in range(SESSIONS)]
    (folder / "scenarios" / "all.yaml").write_text("---\n".join(texts))
    return folder


def command(pack: Path, out: Path, *more: str) -> list[str]:
    peer = ["--priority", "normal", "--concurrency", "2", "--json"]
    return [sys.executable, "-m", "harness.cli", "duplex", "--pack", str(pack), "--out", str(out), *peer, *more]


def content(out: Path) -> dict[str, bytes]:
    """Every byte of every finished session."""
    sessions = out / "sessions"
    names = RunDirectory(out).finished()
    return {
        str(path.relative_to(sessions)): path.read_bytes() for name in names for path in (sessions / name).iterdir()
    }


def end_after(args: list[str], out: Path, finished: int, how: signal.Signals) -> int:
    """Run until so many sessions are finished, then send the signal; the exit code."""
    process = subprocess.Popen(args, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while len(RunDirectory(out).finished()) < finished:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.killpg(process.pid, how)
        return process.wait(60)
    finally:
        process.kill()
        process.wait()


def test_finished_sessions_survive_ctrl_c_and_kill_to_the_byte_and_the_rest_is_held(pack: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert end_after(command(pack, out), out, 1, signal.SIGINT) == INTERRUPTED
    after_interrupt = content(out)
    held = len(RunDirectory(out).finished())
    assert 1 <= held < SESSIONS
    assert end_after(command(pack, out, "--resume"), out, held + 1, signal.SIGKILL) == -signal.SIGKILL
    after_kill = content(out)
    assert after_interrupt.items() <= after_kill.items()
    assert len(RunDirectory(out).finished()) < SESSIONS
    done = subprocess.run(command(pack, out, "--resume"), capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert after_kill.items() <= content(out).items()
    summary = json.loads(done.stdout)
    assert (summary["sessions"], summary["events"], summary["unplaced"]) == (SESSIONS, SESSIONS, 0)
    events = [json.loads(line) for line in (out / "duplex.jsonl").read_text().splitlines()]
    assert sorted(row["session"] for row in events) == [f"0000{number}-s{number}" for number in range(SESSIONS)]
    assert len(list((out / "stereo").glob("*.wav"))) == SESSIONS
    # Nothing is left to do: nothing is touched.
    before = content(out)
    again = subprocess.run(command(pack, out, "--resume"), capture_output=True, text=True, timeout=100, check=False)
    assert again.returncode == 0
    assert json.loads(again.stdout)["panel"] == summary["panel"]
    assert content(out) == before


def test_a_resumed_run_keeps_the_rule_by_which_the_agent_has_ended(pack: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = ["duplex", "--pack", str(pack), "--scenario", "s0", "--out", str(out), "--set", "protocol=chat"]
    assert CliRunner().invoke(cli, [*arguments, "--agent-over", "900"]).exit_code == PEER_FAILED
    changed = CliRunner().invoke(cli, [*arguments, "--resume"])
    assert "agent_over_ms was 900 and is now 600" in str(changed.exception)


def test_a_peer_that_takes_queries_whole_is_not_run_with_the_reason(pack: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = ["duplex", "--pack", str(pack), "--set", "protocol=chat", "--out", str(out), "--json"]
    run = CliRunner().invoke(cli, arguments)
    assert run.exit_code == PEER_FAILED
    summary = json.loads(run.stdout)
    reason = unable(Profile(upload=True, turns=()))
    assert summary["cues"]["not_run"] == {reason: SESSIONS}
    assert "one upload" in reason
    assert (summary["sessions"], summary["events"], summary["panel"]) == (0, 0, [])
    assert f"not run: {SESSIONS} scenarios: {reason}" in run.stderr
    assert not (out / "stereo").exists()


def test_a_peer_that_is_push_to_talk_only_cannot_take_part_and_others_can() -> None:
    assert "push-to-talk" in unable(Profile(turns=("manual",)))
    assert unable(Profile(turns=("vad", "manual"))) == ""
    assert unable(Profile(turns=("vad",), continuous=True)) == ""


def test_both_packs_in_one_run(tmp_path: Path) -> None:
    names = ["--scenario", "en-interrupt-01", "--scenario", "zh-turn-01", "--priority", "normal"]
    out = tmp_path / "run"
    run = CliRunner().invoke(cli, ["duplex", "--pack", "all", *names, "--out", str(out), "--json"])
    assert run.exit_code == 0, run.output
    summary = json.loads(run.stdout)
    assert (summary["sessions"], summary["unplaced"]) == (2, 0)
    rows = [json.loads(line) for line in (out / "duplex.jsonl").read_text().splitlines()]
    assert {row["language"] for row in rows} == {"en", "zh"}
    assert summary["cues"]["agent_cues"] == 1
    assert summary["cues"]["rules"] == {"speech": 1}
    cut = next(row for row in rows if row["anchor"] == "agent_start")
    assert cut["agent_speaking"]
    assert cut["yielded"]
    cells = {(cell["category"], cell["metric"]): cell for cell in summary["panel"]}
    assert cells["all", "yielded"]["few"]
    files = sorted((out / "stereo").glob("*.wav"))
    assert len(files) == 2
    samples, rate_hz = soundfile.read(files[0])
    assert (rate_hz, samples.shape[1]) == (24_000, 2)
    assert (abs(samples).max(axis=0) > 0.05).all()
    (english,) = (s for s in RunDirectory(out).load() if s.header.config["scenario"] == "en-interrupt-01")
    assert english.header.config["cues"]["over_ms"] == 600
