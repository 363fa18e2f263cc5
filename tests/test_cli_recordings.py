"""`import`, `export` and `definitions` as a user meets them: what is written, what is printed, a line for bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import soundfile

from harness.core.audio import Float32
from harness.core.events import TurnStarted
from harness.core.run_directory import RunDirectory
from harness.core.scorer import Unscored
from harness.engines.asr import Transcript, Word
from scoring.duplex.presets import words
from tests.command import Command, command
from tests.scenarios.recorded import clip, laid, only

pytestmark = pytest.mark.unit

RATE = 24_000


@pytest.fixture
def firstpacket(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """The command, run in an empty folder and in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    return command(monkeypatch, capsys)


def intervals(path: Path) -> Path:
    """Two turns: answered after 400 ms; answered 250 ms early."""
    user = [
        {"start": 0.5, "end": 2.0, "expect": "respond", "category": "smooth_turn_taking"},
        {"start": 5.0, "end": 7.0, "expect": "respond", "category": "smooth_turn_taking"},
    ]
    path.write_text(json.dumps({"user": user, "agent": [[2.4, 4.0], [6.75, 9.0]], "end_s": 12.0}))
    return path


def stereo(path: Path) -> Path:
    """Two questions on the left, an answer to the first on the right."""
    user = laid(9 * RATE, (RATE // 2, clip("en-01").samples), (6 * RATE, clip("en-04").samples[: 2 * RATE]))
    agent = laid(9 * RATE, (4 * RATE, clip("en-12").samples[:RATE]))
    soundfile.write(path, np.stack([user, agent], axis=1), RATE, subtype="PCM_16")
    return path


def trajectory(path: Path, answer: int) -> None:
    """20 ticks of 200 ms: the user in the first five, the agent from tick `answer` on, for three."""
    ticks = [
        {
            "user_chunk": {"contains_speech": index < 5, "turn_taking_action": {"action": "generate_message"}},
            "agent_chunk": {"contains_speech": answer <= index < answer + 3},
        }
        for index in range(20)
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"id": path.stem, "task_id": "1", "ticks": ticks}))


def cells(panel: list[dict[str, Any]], category: str = "all") -> dict[str, Any]:
    return {cell["metric"]: (cell["n"], cell["value"]) for cell in panel if cell["category"] == category}


def test_intervals_are_imported_scored_and_printed(firstpacket: Command, tmp_path: Path) -> None:
    answer = firstpacket("import", "intervals", intervals(tmp_path / "talk.json"))
    run = tmp_path / "bench_results" / "import-intervals_talk"
    assert answer.code == 0, answer.err
    assert "smooth turn taking" in answer.out
    assert "75.0 ms" in answer.out  # the median of 400 and -250
    assert "n below 10" in answer.out
    assert answer.err.splitlines()[-1] == "1 session in bench_results/import-intervals_talk"
    summary = RunDirectory(run).read_json("duplex.json")
    assert summary is not None
    assert cells(summary["panel"])["fto_ms"] == (2, 75.0)
    assert [row["fto_ms"] for row in RunDirectory(run).read_lines("duplex.jsonl")] == [400.0, -250.0]


def test_an_imported_run_replays_bit_for_bit(firstpacket: Command, tmp_path: Path) -> None:
    firstpacket("import", "stereo", stereo(tmp_path / "call.wav"), "--out", "run", "--language", "en")
    answer = firstpacket("replay", "run")
    assert answer.code == 0, answer.err
    assert "equal, bit for bit" in answer.err
    metrics = tmp_path / "run" / "metrics.jsonl"
    metrics.write_bytes(metrics.read_bytes().replace(b'"call"', b'"cull"'))
    assert firstpacket("replay", "run").code == 1


def test_tau_panels_pooled_and_one_each(firstpacket: Command, tmp_path: Path) -> None:
    trajectory(tmp_path / "in" / "a.json", answer=8)
    trajectory(tmp_path / "in" / "b.json", answer=12)
    found = firstpacket("import", "tau2", "in", "--out", "run", "--json").json
    assert found["sessions"] == ["a", "b"]
    assert found["tau"]["response_latency_mean"] == pytest.approx(1.0)  # 0.6 s and 1.4 s
    assert found["tau"]["counts"]["response_total"] == 2
    each = [(one["name"], one["panel"]["response_latency_mean"]) for one in found["trajectories"]]
    assert each == [("a", pytest.approx(0.6)), ("b", pytest.approx(1.4))]
    assert cells(found["duplex"]["panel"])["fto_ms"] == (2, 1000.0)


def test_tau_panels_printed(firstpacket: Command, tmp_path: Path) -> None:
    trajectory(tmp_path / "in" / "a.json", answer=8)
    trajectory(tmp_path / "in" / "b.json", answer=12)
    answer = firstpacket("import", "tau2", "in", "--out", "run")
    rows = {line.split()[0]: line.split()[1] for line in answer.out.splitlines() if len(line.split()) > 8}
    assert {name: rows[name] for name in ("pooled", "a", "b")} == {"pooled": "1.000", "a": "0.600", "b": "1.400"}
    assert "leaderboard hides" in answer.out


def test_there_and_back_through_full_duplex_bench(firstpacket: Command, tmp_path: Path) -> None:
    firstpacket("import", "stereo", stereo(tmp_path / "call.wav"), "--out", "run")
    exported = firstpacket("export", "fdb", "run", "fdb")
    assert (exported.code, exported.out.split()) == (0, ["fdb/smooth_turn_taking/call"])
    (tmp_path / "fdb" / "more").mkdir()
    (tmp_path / "fdb" / "more" / "input.wav").write_bytes((tmp_path / "call.wav").read_bytes())
    back = firstpacket("import", "fdb", "fdb", "--out", "back", "--json")
    assert back.json["sessions"] == ["smooth_turn_taking-call"]
    assert "left out: more: no output.wav" in back.err
    before, after = (RunDirectory(tmp_path / name).read_json("duplex.json") for name in ("run", "back"))
    assert before is not None
    assert after is not None
    assert cells(after["panel"]) == cells(before["panel"])


def test_definitions_side_by_side(firstpacket: Command, tmp_path: Path) -> None:
    firstpacket("import", "intervals", intervals(tmp_path / "talk.json"), "--out", "run")
    table = firstpacket("definitions", "run", "--json").json
    assert table["sessions"] == ["talk"]
    assert [row["name"] for row in table["rows"]][:7] == ["fdb", "tau", "coval", "pipecat", "livekit", "aiewf", "eva"]
    found = {cell["figure"]: (cell["value"], cell["n"]) for row in table["rows"] for cell in row["cells"]}
    assert found["voice_to_voice_ms"] == (400.0, 1)  # the early answer begins before the user's end
    assert found["ttft_ms"][0] == {"reason": "imported: nobody stamped its packets"}
    printed = firstpacket("definitions", "run", "--session", "talk")
    assert printed.code == 0
    for row in table["rows"]:
        assert row["says"][:60] in printed.out


def test_warm_ups_are_no_part_of_the_pool(firstpacket: Command, tmp_path: Path) -> None:
    trajectory(tmp_path / "in" / "a.json", answer=8)
    trajectory(tmp_path / "in" / "b.json", answer=12)
    firstpacket("import", "tau2", "in", "--out", "run")
    assert firstpacket("definitions", "run", "--json").json["sessions"] == ["a", "b"]
    header = tmp_path / "run" / "sessions" / "b" / "session.json"
    header.write_text(json.dumps({**json.loads(header.read_text()), "warmup": True}))
    assert firstpacket("definitions", "run", "--json").json["sessions"] == ["a"]
    assert firstpacket("definitions", "run", "--session", "b", "--json").json["sessions"] == ["b"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("import", "fdb", "nowhere"), "nowhere: no such folder"),
        (("import", "tau2", "nowhere"), "nowhere: no such file or folder"),
        (("import", "stereo", "nowhere.wav"), "nowhere.wav: no such file"),
        (("import", "intervals", "nowhere.json"), "nowhere.json: cannot be read"),
        (("import", "intervals", "talk.json", "--out", "run"), "--out run: is not empty"),
        (("export", "fdb", "nowhere", "fdb"), "nowhere: no sessions in it"),
        (("export", "fdb", "run", "fdb"), "run: nothing to export"),
        (("definitions", "nowhere"), "nowhere: no run.json"),
        (("definitions", "run", "--session", "tolk"), "--session tolk: no such session in run"),
    ],
)
def test_bad_input_is_one_line(firstpacket: Command, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    firstpacket("import", "intervals", intervals(tmp_path / "talk.json"), "--out", "run")
    answer = firstpacket(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert len(answer.err.splitlines()) == 1


class Recognizer:
    """Hears four words from 4.5 s on, 300 ms apart."""

    languages: ClassVar[list[str]] = []

    def transcribe(self, pcm: Float32, rate_hz: int, language: str) -> Transcript:
        self.languages.append(language)
        starts = [4.5, 4.8, 5.1, 5.4]
        words = (Word(text="la", start_sample=int(s * rate_hz), end_sample=int((s + 0.2) * rate_hz)) for s in starts)
        return Transcript(text="la la la la", words=tuple(words), model="four words")


def test_words_are_an_option(firstpacket: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "recognizer_at_hand", Recognizer)
    firstpacket("import", "stereo", stereo(tmp_path / "call.wav"), "--out", "run", "--language", "zh")
    without = firstpacket("definitions", "run", "--json")
    assert "--asr transcribes" in without.err
    assert Recognizer.languages == []
    table = firstpacket("definitions", "run", "--asr", "--json")
    assert (table.code, table.err, Recognizer.languages) == (0, "", ["zh"])
    turn = next(only(tmp_path / "run").of(TurnStarted))
    found = {cell["figure"]: cell["value"] for row in table.json["rows"] for cell in row["cells"]}
    assert found["v1_turn_latency_s"] == pytest.approx(4.5 - turn.speech_end / RATE)
    assert any("four words" in note for row in table.json["rows"] for note in row["notes"])


def test_a_recogniser_that_is_missing_is_named(
    firstpacket: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    firstpacket("import", "intervals", intervals(tmp_path / "talk.json"), "--out", "run")
    monkeypatch.setattr(words, "recognizer_at_hand", lambda: Unscored(reason="no words: install firstpacket[asr]"))
    answer = firstpacket("definitions", "run", "--asr")
    assert (answer.code, answer.out) == (3, "")
    assert answer.err == "firstpacket: --asr: no words: install firstpacket[asr]\n"
