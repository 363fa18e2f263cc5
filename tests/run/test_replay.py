"""`replay`: equal means the same bytes, and recordings that were changed or are gone are never called equal."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from harness import cli
from harness.core.errors import SessionFormatError
from harness.core.run_directory import RunDirectory, RunInfo
from harness.core.scorer import Scored
from harness.run.replay import differences, is_stored, score, write_scores
from harness.run.replay_difference import Difference
from tests.scoring.timing.recordings import header, vad_turn

pytestmark = pytest.mark.unit


def run_of(path: Path, *names: str) -> RunDirectory:
    run = RunDirectory(path)
    for name in names:
        vad_turn().write(run.sessions, header(session=name))
    run.write_info(RunInfo(peer="p", suite="s", created="2026-01-01T00:00:00Z", firstpacket="0", config={}))
    return run


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    made = run_of(tmp_path / "run", "a", "b")
    write_scores(made, score(made))
    return made


def replay(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    """Exit code and what was said, through the whole command."""
    monkeypatch.setattr("sys.argv", ["firstpacket", "replay", *map(str, arguments), "--json"])
    code = 0
    try:
        cli.main()
    except SystemExit as exc:
        code = int(exc.code or 0)
    return code, capsys.readouterr().err


def test_equal(run: RunDirectory, monkeypatch, capsys):
    code, said = replay(monkeypatch, capsys, run.path)
    assert (code, said) == (0, "equal, bit for bit, to what is stored\n")


def test_nothing_was_stored_yet(tmp_path: Path, monkeypatch, capsys):
    run = run_of(tmp_path / "run", "a")
    assert not is_stored(run)
    code, said = replay(monkeypatch, capsys, run.path)
    assert code == 0
    assert said.startswith("nothing was stored yet")


@pytest.mark.parametrize("name", ["summary.json", "metrics.jsonl"])
def test_one_file_without_the_other_is_a_difference(run: RunDirectory, name: str, monkeypatch, capsys):
    (run.path / name).unlink()
    code, said = replay(monkeypatch, capsys, run.path)
    assert code == 1
    assert f"differs: {name}: is missing" in said


@pytest.mark.parametrize("side", ["user", "agent"])
@pytest.mark.parametrize("how", ["gone", "changed", "longer", "elsewhere"])
def test_sound_that_is_not_what_was_recorded_is_refused(
    run: RunDirectory, tmp_path: Path, side: str, how: str, monkeypatch, capsys
):
    file = run.sessions / "b" / f"{side}.wav"
    data = file.read_bytes()
    file.unlink()
    if how == "changed":
        file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif how == "longer":
        other = vad_turn(1300).send(2000, 2040).audio(1700, vad_tone()).write(tmp_path / "other")
        file.write_bytes((other.path / f"{side}.wav").read_bytes())
    elif how == "elsewhere":
        (tmp_path / "outside.wav").write_bytes(data)
        file.symlink_to(tmp_path / "outside.wav")
    code, said = replay(monkeypatch, capsys, run.path)
    assert code == 2
    assert said.count("\n") == 1
    assert f"sessions/b/{side}.wav" in said
    with pytest.raises(SessionFormatError, match=rf"b/{side}\.wav"):
        score(run, verified=True)


def vad_tone():
    from tests.scoring.timing.recordings import tone

    return tone(100)


def test_changed_events_are_refused_and_name_the_session(run: RunDirectory, monkeypatch, capsys):
    file = run.sessions / "a" / "events.jsonl"
    data = file.read_bytes()
    file.write_bytes(data.replace(b'"text":"hello"', b'"text":"jello"'))
    assert file.read_bytes() != data
    code, said = replay(monkeypatch, capsys, run.path)
    assert code == 2
    assert said.count("\n") == 1
    assert "sessions/a/events.jsonl: sha256 differs" in said


def test_a_session_that_is_gone_is_named(run: RunDirectory):
    import shutil

    shutil.rmtree(run.sessions / "b")
    found = [each.line() for each in differences(run, score(run))]
    assert "metrics.jsonl: 2 rows stored, 1 computed" in found
    assert "metrics.jsonl: not computed any more: b" in found


def test_a_new_session_is_named(run: RunDirectory):
    for name in ("c", "d", "e", "f"):
        vad_turn().write(run.sessions, header(session=name))
    found = [each.line() for each in differences(run, score(run))]
    assert "metrics.jsonl: not stored: c, d, e and 1 more" in found


def test_write_replaces(run: RunDirectory, monkeypatch, capsys):
    (run.path / "metrics.jsonl").write_bytes(b"")
    code, said = replay(monkeypatch, capsys, run.path, "--write")
    assert (code, "now replaced" in said) == (0, True)
    assert differences(run, score(run)) == []


def scored(value: object) -> Scored:
    return Scored(rows=[{"session": "a", "x": value}], summary={"y": value})


@pytest.mark.parametrize(
    ("stored", "now"),
    [("true", 1), ("1", 1.0), ("1", True), ("0.0", -0.0), ("-0.0", 0.0), ("null", 0), ('"1"', 1), ("[1]", [1, 2])],
)
def test_values_that_python_calls_equal_are_not(tmp_path: Path, stored: str, now: object):
    run = RunDirectory(tmp_path)
    (tmp_path / "metrics.jsonl").write_text(f'{{"session":"a","x":{stored}}}\n')
    (tmp_path / "summary.json").write_text(f'{{\n "y": {stored}\n}}\n')
    assert [each.where for each in differences(run, scored(now))] == ["metrics.jsonl[0].x", "summary.json.y"]


def test_a_missing_key_is_not_null(tmp_path: Path):
    run = RunDirectory(tmp_path)
    (tmp_path / "metrics.jsonl").write_text('{"session":"a"}\n')
    (tmp_path / "summary.json").write_text('{"y":null,"z":null}\n')
    found = [each.line() for each in differences(run, scored(None))]
    assert found == [
        "metrics.jsonl[0].x: not stored, computed None",
        "summary.json.z: stored None, not computed",
    ]


def test_the_same_values_in_other_bytes_are_a_difference(run: RunDirectory):
    file = run.path / "summary.json"
    file.write_bytes(msgspec.json.encode(json.loads(file.read_bytes())))
    (difference,) = differences(run, score(run))
    assert difference.line().startswith("summary.json: the same values in other bytes, from line 1")


def test_an_empty_file_of_rows_is_a_difference(run: RunDirectory):
    (run.path / "metrics.jsonl").write_bytes(b"")
    lines = [each.line() for each in differences(run, score(run))]
    assert lines == ["metrics.jsonl: 0 rows stored, 2 computed", "metrics.jsonl: not stored: a, b"]


@pytest.mark.parametrize("name", ["summary.json", "metrics.jsonl"])
@pytest.mark.parametrize("data", [b"{", b"\xff", b"[" * 100_000, b'{"a":' * 100_000])
def test_a_damaged_file_is_a_difference(run: RunDirectory, name: str, data: bytes):
    (run.path / name).write_bytes(data)
    assert [each.line() for each in differences(run, score(run))] == [f"{name}: cannot be read"]


def test_no_line_is_long():
    worst = Difference(where="metrics.jsonl[0]." + "k" * 999, said="x" * 999)
    assert len(worst.line()) <= 160


def test_long_values_are_cut(tmp_path: Path):
    run = RunDirectory(tmp_path)
    big = {"session": "a", "x": {"k" * 500: ["\n" * 500] * 50}, "z": "v" * 10_000}
    run.write_lines("metrics.jsonl", [big])
    run.write_json("summary.json", {"y": 1})
    lines = [each.line() for each in differences(run, Scored(rows=[big | {"z": 1, "x": []}], summary={"y": 1}))]
    assert len(lines) == 2
    assert all(len(line) <= 160 and line.isprintable() for line in lines)


def test_a_directory_that_is_no_run(tmp_path: Path):
    result = CliRunner().invoke(cli.cli, ["replay", str(tmp_path)])
    assert isinstance(result.exception, SessionFormatError)
