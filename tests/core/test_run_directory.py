"""The run directory's small files and the order of its sessions."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import ConfigError, PrerequisiteError, SessionFormatError
from harness.core.run_directory import RunDirectory, RunInfo, slug
from tests.scoring.timing.recordings import Script, header

pytestmark = pytest.mark.unit


def info(**changes: object) -> RunInfo:
    fields = {"peer": "p", "suite": "s", "created": "2026-01-01T00:00:00Z", "firstpacket": "0", "config": {"a": 1}}
    return RunInfo(**{**fields, **changes})


def test_info_comes_back(tmp_path: Path):
    run = RunDirectory(tmp_path / "run")
    assert not run.exists()
    run.write_info(info(planned=("b", "a")))
    assert run.exists()
    assert run.info() == info(planned=("b", "a"))


def test_a_folder_of_several_runs_names_them(tmp_path: Path):
    with pytest.raises(SessionFormatError, match=r"this is not a run directory$"):
        RunDirectory(tmp_path).info()
    for name in ("b", "a"):
        RunDirectory(tmp_path / name).write_info(info())
    with pytest.raises(SessionFormatError, match=r"not a run directory; it holds some: a, b$"):
        RunDirectory(tmp_path).info()


def test_sessions_come_in_planned_order_then_by_name(tmp_path: Path):
    run = RunDirectory(tmp_path)
    for name in ("d", "c", "b", "a"):
        Script().write(run.sessions, header(session=name))
    (run.sessions / "e.partial").mkdir()
    run.write_info(info(planned=("c", "missing", "a", "c")))
    assert run.finished() == ["a", "b", "c", "d"]
    assert [session.header.session for session in run.load()] == ["c", "a", "b", "d"]


def test_without_run_json_sessions_come_by_name(tmp_path: Path):
    run = RunDirectory(tmp_path)
    for name in ("b", "a"):
        Script().write(run.sessions, header(session=name))
    assert [session.header.session for session in run.load()] == ["a", "b"]


def test_no_sessions_yet(tmp_path: Path):
    assert list(RunDirectory(tmp_path / "nothing").load()) == []


def test_no_run_json_is_said(tmp_path: Path):
    with pytest.raises(SessionFormatError, match="not a run directory"):
        RunDirectory(tmp_path).info()


def test_damaged_files_are_said(tmp_path: Path):
    run = RunDirectory(tmp_path)
    for name in ("run.json", "summary.json", "metrics.jsonl"):
        (tmp_path / name).write_bytes(b'{"peer": ')
    with pytest.raises(SessionFormatError, match=r"run\.json"):
        run.info()
    with pytest.raises(SessionFormatError, match=r"summary\.json"):
        run.read_json("summary.json")
    with pytest.raises(SessionFormatError, match=r"metrics\.jsonl"):
        run.read_lines("metrics.jsonl")


def test_lines_and_objects_come_back_and_leave_no_temporary_file(tmp_path: Path):
    run = RunDirectory(tmp_path)
    assert run.read_lines("metrics.jsonl") == []
    assert run.read_json("summary.json") is None
    run.write_lines("metrics.jsonl", [{"a": 1.5}, {"text": "二\u2028"}])
    run.write_json("summary.json", {"b": None})
    assert run.read_lines("metrics.jsonl") == [{"a": 1.5}, {"text": "二\u2028"}]
    assert run.read_json("summary.json") == {"b": None}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metrics.jsonl", "summary.json"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ws://host:1/a b", "ws-host-1-a-b"),
        ("???", "peer"),
        ("x" * 99, "x" * 60),
        ("..a..", "a"),
        ("我的 录音", "我的-录音"),
        ("Füße_1", "Füße_1"),
        ("u\u0308ber", "über"),
        ("हिन्दी", "हिन्दी"),
        ("\u0301a", "a"),
        ("a/../b\\c\0d", "a-..-b-c-d"),
        ("a\u202eb\u2215c\ud800", "a-b-c"),
        ("𠀀" * 99, "𠀀" * 50),
        ("x" * 59 + ".y", "x" * 59),
        ("我" * 99, "我" * 60),
    ],
)
def test_slug(text: str, name: str):
    assert slug(text) == name


@given(st.text())
def test_slug_is_safe_for_any_text(text: str):
    name = slug(text)
    assert 0 < len(name) <= 60
    assert len(name.encode()) <= 200
    assert not name.startswith((".", "-"))
    assert not name.endswith((".", "-"))
    assert not any(char in name for char in "/\\:\0 \n")


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff", b'{"a": NaN}', b'{"peer": "\xff"}'])
def test_hostile_files_are_said(tmp_path: Path, data: bytes):
    run = RunDirectory(tmp_path)
    for name in ("run.json", "summary.json", "metrics.jsonl"):
        (tmp_path / name).write_bytes(data)
    for read in (run.info, lambda: run.read_json("summary.json"), lambda: run.read_lines("metrics.jsonl")):
        with pytest.raises(SessionFormatError) as caught:
            read()
        assert "\n" not in str(caught.value)


def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path):
    (tmp_path / "file").write_text("")
    for path in (Path("/proc/x"), tmp_path / "file" / "run"):
        with pytest.raises(ConfigError, match=r"choose another --out") as caught:
            RunDirectory(path).write_info(info())
        assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path):
    (tmp_path / "run.json").mkdir()
    with pytest.raises(ConfigError, match=r"run\.json.*choose another --out"):
        RunDirectory(tmp_path).write_info(info())
    with pytest.raises(ConfigError, match=r"choose another --out"):
        RunDirectory(tmp_path / "nothing").write_lines("metrics.jsonl", [])
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(self: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(PrerequisiteError, match="free some space"):
        RunDirectory(tmp_path).write_json("summary.json", {})


def test_a_directory_that_may_not_be_looked_into_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def closed(self: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "is_file", closed)
    with pytest.raises(ConfigError, match="Permission denied"):
        RunDirectory(tmp_path).exists()
