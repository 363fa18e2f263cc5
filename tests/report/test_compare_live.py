"""A shift of the real agent, measured and compared: 50 ms more of thinking are found, and nothing where nothing is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner

from harness.cli import cli
from harness.core.connector import PeerOptions
from harness.run.bench import BenchRequest, run_bench
from harness.run.replay import score, write_scores
from harness.run.session_plan import SessionOptions
from harness.run.suite import SuiteOptions
from scenarios.pack import load_pack

QUERIES = 6


@pytest.mark.exact
@pytest.mark.loopback
def test_50_ms_more_of_thinking_are_found_within_2_ms(tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    pack.mkdir()
    rows = []
    for k in range(QUERIES):
        tone = np.sin(np.arange(3600) * 2 * np.pi * (200 + 20 * k) / 24_000) * 8000
        soundfile.write(pack / f"q{k}.wav", tone.astype(np.int16), 24_000, subtype="PCM_16")
        rows.append({"id": f"q{k}", "audio": f"q{k}.wav", "lang": "en", "speech_start": 0, "speech_end": 3600})
    (pack / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    request = BenchRequest(
        peers=("agent?think_ms=120", "agent?think_ms=170", "agent?think_ms=120"),
        options=PeerOptions(settings={"answer_s": "0.2"}),
        suite=SuiteOptions(session=SessionOptions(turn="manual", linger_ms=20), concurrency=3),
        out=tmp_path / "out",
        show_progress=False,
    )
    outcome = run_bench(request, "tones", load_pack(str(pack)).clips, {"pack": "tones"})
    for run in outcome.directories:
        write_scores(run, score(run))
    base, slow, equal = (str(run.path) for run in outcome.directories)

    found = json.loads(CliRunner().invoke(cli, ["compare", base, slow, equal, "--json"]).stdout)
    packets = [next(each for each in one["figures"] if each["name"] == "first_packet_ms") for one in found]
    shift, none = (each["difference"] for each in packets)
    assert (shift["paired"], shift["n"], shift["verdict"]) == (True, QUERIES, "worse")
    assert shift["value"] == pytest.approx(50, abs=2)
    assert "first packet" in found[0]["sentences"][0]
    assert any(f"{shift['value']:.1f} ms slower than" in line for line in found[0]["sentences"])
    assert none["verdict"] == "none"
    assert any(line.startswith("First packet: no difference to be seen") for line in found[1]["sentences"])

    gate = ["gate", slow, "--baseline", base, "--max-regression"]
    assert CliRunner().invoke(cli, [*gate, "first_packet_ms.p50=60"]).exit_code == 0
    assert CliRunner().invoke(cli, [*gate, "first_packet_ms.p50=40"]).exit_code == 1
