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
from harness.run.replay import differences, is_stored, score, score_all, scorers_of, write_scores
from harness.run.replay_difference import Difference
from scenarios.importers.intervals import import_intervals
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


@pytest.fixture
def talks(tmp_path: Path) -> RunDirectory:
    """Two conversations that others recorded, with everything kept."""
    content = {"user": [{"start": 0.5, "end": 2.0, "expect": "respond"}], "agent": [[2.4, 4.0]], "end_s": 12.0}
    (tmp_path / "talk.json").write_text(json.dumps(content))
    run = RunDirectory(import_intervals(tmp_path / "talk.json", tmp_path / "talks").run)
    for name, figures in score_all(run).items():
        write_scores(run, figures, name)
    return run


def test_conversations_are_computed_again_too(talks: RunDirectory, monkeypatch, capsys):
    assert scorers_of(talks) == ("timing", "duplex")
    assert replay(monkeypatch, capsys, talks.path) == (0, "equal, bit for bit, to what is stored\n")
    file = talks.path / "duplex.jsonl"
    data = file.read_bytes()
    file.write_bytes(data.replace(b'"fto_ms":400.0', b'"fto_ms":400.001'))
    assert file.read_bytes() != data
    code, said = replay(monkeypatch, capsys, talks.path)
    assert code == 1
    assert "differs: duplex.jsonl[0].fto_ms: stored 400.001, computed 400.0" in said
    assert replay(monkeypatch, capsys, talks.path, "--write")[0] == 0
    assert file.read_bytes() == data


@pytest.mark.parametrize("name", ["duplex.jsonl", "duplex.json"])
def test_one_file_of_the_conversations_without_the_other(talks: RunDirectory, name: str, monkeypatch, capsys):
    (talks.path / name).unlink()
    code, said = replay(monkeypatch, capsys, talks.path)
    assert code == 1
    assert f"differs: {name}: is missing" in said


def test_a_panel_of_another_order_of_keys_is_a_difference(talks: RunDirectory, monkeypatch, capsys):
    file = talks.path / "duplex.json"
    content = json.loads(file.read_bytes())
    talks.write_json("duplex.json", dict(reversed(content.items())))
    code, said = replay(monkeypatch, capsys, talks.path)
    assert code == 1
    assert "duplex.json: the same values in other bytes" in said


def test_conversations_that_were_never_kept_are_said_so(talks: RunDirectory, monkeypatch, capsys):
    for name in ("duplex.jsonl", "duplex.json"):
        (talks.path / name).unlink()
    code, said = replay(monkeypatch, capsys, talks.path)
    assert (code, said.splitlines()[0]) == (0, "duplex: not stored yet; --write stores")
    assert replay(monkeypatch, capsys, talks.path, "--write")[0] == 0
    assert is_stored(talks, "duplex")


def test_turns_have_no_conversations(run: RunDirectory):
    assert scorers_of(run) == ("timing",)


def test_recordings_are_checked_once_and_progress_is_told(talks: RunDirectory):
    told: list[tuple[int, int]] = []
    score_all(talks, verified=True, watch=lambda done, total: told.append((done, total)))
    assert told == [(1, 1)]


def test_a_directory_that_is_no_run(tmp_path: Path):
    result = CliRunner().invoke(cli.cli, ["replay", str(tmp_path)])
    assert isinstance(result.exception, SessionFormatError)
