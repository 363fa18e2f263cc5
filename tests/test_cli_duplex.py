"""`duplex` and impairments as a user meets them: several peers, what a session records, a line for bad input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner, Result

from harness.cli import cli
from harness.core.audio import audio_sha256
from harness.core.errors import ConfigError, PrerequisiteError
from harness.core.events import TurnStarted
from harness.core.run_directory import RunDirectory
from harness.run import bench
from harness.run.bench import BenchOutcome, BenchRequest
from harness.run.suite import SuiteResult
from scenarios.importers.stereo import import_stereo
from tests.scenarios.recorded import clip, laid, only

RATE = 24_000


def firstpacket(*arguments: object) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(cli, [str(each) for each in arguments])


def talk(path: Path, answer_s: float) -> RunDirectory:
    """A run with one conversation: a question, an answer that begins `answer_s` after the file."""
    user = laid(9 * RATE, (RATE // 2, clip("en-01").samples))
    agent = laid(9 * RATE, (round(answer_s * RATE), clip("en-12").samples[:RATE]))
    path.parent.mkdir(exist_ok=True)
    file = path.with_suffix(".wav")
    soundfile.write(file, np.stack([user, agent], axis=1), RATE, subtype="PCM_16")
    return RunDirectory(import_stereo(file, path, language="en").run)


@pytest.fixture
def two_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A bench that has two finished runs to show instead of holding any; returns what identified it."""
    runs = (talk(tmp_path / "run" / "quick", 3.5), talk(tmp_path / "run" / "slow", 4.5))
    for run, name in zip(runs, ("quick", "slow"), strict=True):
        run.write_json("run.json", {**json.loads((run.path / "run.json").read_text()), "peer": name})
    asked: list[dict[str, Any]] = []

    def held(request: BenchRequest, name: str, plays: list[Any], identity: dict[str, Any]) -> BenchOutcome:
        asked.append({"name": name, "peers": request.peers, "plays": len(plays), **identity})
        return BenchOutcome(directories=runs, result=SuiteResult(held=2, kept=0))

    monkeypatch.setattr(bench, "run_bench", held)
    return asked


@pytest.mark.unit
def test_each_peer_has_a_heading_and_one_table_compares_them(two_peers: list[dict[str, Any]], tmp_path: Path) -> None:
    done = firstpacket("duplex", "--peer", "agent", "--peer", "agent?think_ms=9", "--scenario", "en-turn-01")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    headings = [lines.index(f"{name}: 1 session, 1 event") for name in ("quick", "slow")]
    table = next(index for index, line in enumerate(lines) if line.startswith("Side by side"))
    assert headings[0] < headings[1] < table
    assert lines[table + 1].split() == ["metric", "quick", "slow"]
    row = next(line for line in lines[table:] if line.startswith("response latency")).split()
    assert float(row[6].replace(",", "")) - float(row[2].replace(",", "")) == pytest.approx(1000, abs=1)
    assert two_peers[0]["plays"] == 1
    for name in ("quick", "slow"):
        assert (tmp_path / "run" / name / "report.html").is_file()
        assert len(list((tmp_path / "run" / name / "stereo").glob("*.wav"))) == 1


@pytest.mark.unit
def test_json_of_several_peers_names_each(two_peers: list[dict[str, Any]], tmp_path: Path) -> None:
    done = firstpacket("duplex", "--peer", "agent", "--peer", "agent?think_ms=9", "--json")
    found = json.loads(done.stdout)["peers"]
    assert [(each["peer"], each["run"]) for each in found] == [
        (name, str(tmp_path / "run" / name)) for name in ("quick", "slow")
    ]
    assert all({"panel", "fto", "parameters"} <= set(each) for each in found)
    assert two_peers[0]["packs"].keys() == {"duplex-en"}


@pytest.mark.loopback
def test_an_impaired_query_is_recorded_with_the_hash_of_what_was_said(tmp_path: Path) -> None:
    queries = tmp_path / "q"
    queries.mkdir()
    said = clip("en-01")
    soundfile.write(queries / "one.wav", said.samples[said.speech_start :][: RATE // 2], RATE, subtype="PCM_16")
    row = {"id": "one", "audio": "one.wav", "lang": "en", "speech_start": 0, "speech_end": RATE // 2}
    (queries / "manifest.jsonl").write_text(json.dumps(row))
    done = firstpacket(
        *("bench", "--queries", queries, "--turn", "manual", "--priority", "normal", "--out", tmp_path / "run"),
        *("--impair", "noise:white:snr=5", "--impair", "loss:rate=0.1", "--json"),
    )
    assert done.exit_code == 0, done.output
    session = only(tmp_path / "run")
    (turn,) = session.of(TurnStarted)
    put = session.user[turn.clip_sample : turn.clip_sample + turn.clip_samples]
    assert turn.impairment == "noise:white:snr=5+loss:rate=0.1"
    assert turn.audio_sha256 == audio_sha256(put)
    config = RunDirectory(tmp_path / "run").info().config
    assert config["queries"]["impairments"] == ["noise:white:snr=5", "loss:rate=0.1"]


@pytest.mark.unit
@pytest.mark.parametrize("command", [("bench", "--limit", "1"), ("duplex", "--scenario", "en-turn-01")], ids=str)
@pytest.mark.parametrize(
    ("spec", "kind", "said"),
    [
        ("nois:white:snr=5", ConfigError, "did you mean noise"),
        ("noise:white:snr=999", ConfigError, "snr is a number from"),
        ("reverb:room:rt60=0.37", PrerequisiteError, r"pip install 'firstpacket\[rooms\]'"),
    ],
)
def test_a_wrong_or_missing_impairment_is_told_before_anything_is_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    spec: str,
    kind: type[Exception],
    said: str,
) -> None:
    monkeypatch.setitem(sys.modules, "pyroomacoustics", None)
    done = firstpacket(*command, "--impair", spec, "--out", tmp_path / "run")
    assert isinstance(done.exception, kind), done.output
    with pytest.raises(kind, match=said):
        raise done.exception
    assert "\n" not in str(done.exception)
    assert not (tmp_path / "run").exists()


@pytest.mark.unit
def test_scenarios_are_no_queries() -> None:
    done = firstpacket("bench", "--queries", "duplex-en")
    assert "firstpacket duplex --pack duplex-en" in str(done.exception)
