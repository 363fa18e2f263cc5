"""`bench --suite`, `import vocalbench` and `export vocalbench` as a user meets them."""

from __future__ import annotations

from pathlib import Path

import pytest
import soundfile

from harness.core.run_directory import RunDirectory
from scenarios.benchmarks import spoken
from tests.command import Command, command
from tests.run.live import clip
from tests.scenarios.benchmarks.made import CLEAN, KNOWLEDGE, ROBUST, ROUND, write_rows, write_sound, write_sounds
from tests.scenarios.benchmarks.test_spoken import Voice

SUITE = ("bench", "--suite", "vocalbench-zh", "--data")


@pytest.fixture
def firstpacket(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """The command, run in an empty folder and in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("FIRSTPACKET_CACHE", str(tmp_path / "cache"))

    return command(monkeypatch, capsys)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three on knowledge, one of several rounds; the first two have sound."""
    query = clip("zh-13")
    root = write_rows(tmp_path / "set", chinese_knowledge=KNOWLEDGE, multi_round=ROUND)
    for each in (KNOWLEDGE[0], ROUND[0]):
        write_sound(root / each["Audio"], query.samples, query.rate_hz)
    return root


@pytest.mark.loopback
def test_ask_the_agent_export_and_import(firstpacket: Command, data: Path) -> None:
    run = (*SUITE, data, "--limit", 2, "--set", "answer_s=0.4", "--out", "run", "--priority", "normal", "--json")
    held = firstpacket(*run)
    assert held.code == 0
    assert {word: n for word, n in held.json["status"].items() if n} == {"ok": 2, "not_run": 1}
    assert "chinese_knowledge: 3 items, 1000 are published" in held.err
    assert "no sound for 1 of 2 queries, they will be not_run: knowledge/chinese/0001.wav" in held.err
    directory = RunDirectory(Path("run"))
    sessions = {session.header.items[0].qid: session for session in directory.load()}
    assert list(sessions) == ["chinese_knowledge-0000", "chinese_knowledge-0001", "multi_round-000"]
    asked = sessions["multi_round-000"]
    assert (asked.header.items[0].history, asked.header.items[0].fields) == ("injected", ROUND[0])
    assert {path.name for path in asked.path.iterdir()} == {"session.json", "events.jsonl", "user.flac", "agent.flac"}
    assert directory.info().suite == "vocalbench-zh"
    assert directory.info().config["queries"]["subsets"] == {"chinese_knowledge": 2, "multi_round": 1}

    query = clip("zh-13")
    write_sound(data / KNOWLEDGE[1]["Audio"], query.samples, query.rate_hz)
    resumed = firstpacket(*run, "--resume")
    assert (resumed.code, resumed.json["turns"]) == (0, 3)
    assert resumed.json["status"]["ok"] == 3
    changed = firstpacket(*SUITE, data, "--limit", 1, "--set", "answer_s=0.4", "--out", "run", "--resume")
    assert changed.code == 2
    assert "--resume:" in changed.err

    exported = firstpacket("export", "vocalbench", "run", "out", "--json")
    assert exported.json["answers"] == {"chinese_knowledge": 2, "multi_round": 1}
    assert soundfile.info("out/wav/multi_round/multi_round-000.wav").frames == asked.header.agent.samples
    imported = firstpacket("import", "vocalbench", "out", "--data", data, "--out", "again", "--json")
    assert (imported.code, imported.json["sessions"]) == (0, 3)
    assert "3 answers in again" in imported.err


@pytest.mark.unit
def test_dry_run(firstpacket: Command, tmp_path: Path, data: Path) -> None:
    write_sounds(write_rows(data, robust_clean=CLEAN, robust=ROBUST), *CLEAN)
    told = firstpacket(*SUITE, data, "--dry-run", "--generate-robust", "--json").json
    assert (told["queries"], told["sessions"], told["missing"]) == (10, 10, 2)
    assert told["without_sound"] == ["knowledge/chinese/0001.wav", "knowledge/chinese/0002.wav"]
    assert told["judge_calls"] == 10
    assert told["assumptions"]["delivery"] == 0.5  # the agent sends faster than real time
    printed = firstpacket(*SUITE, data, "--dry-run", "--synthesize", "--repeat", 2, "--answer-seconds", 9)
    assert "20 sessions: about" in printed.out
    assert "assumed: answers of 9 s" in printed.out
    assert "before that 2 texts are spoken" in printed.out
    assert not (tmp_path / "bench_results").exists()
    slow = firstpacket(*SUITE, data, "--dry-run", "--json", "--peer", "moshi:ws://127.0.0.1:1/api/chat").json
    assert slow["assumptions"]["delivery"] == 1.0


@pytest.mark.loopback
def test_missing_sound_is_spoken(firstpacket: Command, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    voice = Voice()
    monkeypatch.setattr("harness.engines.tts.KokoroSynthesizer", lambda: voice)
    write_rows(data, chinese_knowledge=KNOWLEDGE[1:2])
    options = ("--subset", "chinese_knowledge", "--synthesize", "--set", "answer_s=0.4", "--turn", "manual")
    held = firstpacket(*SUITE, data, *options, "--out", "run", "--priority", "normal", "--json")
    assert held.code == 0
    assert "1 texts are spoken by a local voice" in held.err
    (session,) = RunDirectory(Path("run")).load()
    assert session.header.items[0].sound == "synthesized"
    assert [each[1:] for each in voice.said] == [("zf_xiaoxiao", "zh"), ("af_heart", "en"), ("af_heart", "en")]
    assert spoken.spoken(KNOWLEDGE[1]["Question"], "zh").path.is_file()


@pytest.mark.unit
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--suite", "vocalbench-zh"), "--suite vocalbench-zh needs --data"),
        (("--data", "set"), "--data needs --suite"),
        (("--dry-run",), "--dry-run needs --suite"),
        (("--suite", "vocalbench-zh", "--data", "set", "--queries", "queries"), "--queries does not go with --suite"),
        (("--suite", "vocalbench-zh", "--data", "set", "--turns-per-session", 2), "--turns-per-session does not go"),
        (("--suite", "vocalbench-zh", "--data", "set", "--subset", "multi_roun"), "did you mean multi_round?"),
        (("--suite", "vocalbench-zh", "--data", "nowhere"), "nowhere: no such folder"),
        (("--suite", "vocalbench-zh", "--data", "set", "--dry-run", "--judge-price", "nan,1"), "write the price"),
        (("--suite", "vocalbench-en", "--data", "set/json/none"), "no such folder"),
    ],
)
def test_what_does_not_go(firstpacket: Command, data: Path, arguments: tuple[object, ...], said: str) -> None:
    answer = firstpacket("bench", *arguments)
    assert answer.code == 2
    assert said in answer.err


@pytest.mark.unit
def test_a_subset_without_any_sound_is_an_error(firstpacket: Command, data: Path) -> None:
    write_rows(data, robust_clean=CLEAN, robust=ROBUST)
    answer = firstpacket(*SUITE, data, "--subset", "robust")
    assert answer.code == 2
    assert "no sound for any of its 6 queries: robust/background_noise/snr_-5/000.wav" in answer.err
    assert "and 1 more" in answer.err
    assert "--generate-robust" in answer.err
