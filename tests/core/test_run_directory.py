"""The run directory's small files and the order of its sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import SessionFormatError
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
    [("ws://host:1/a b", "ws-host-1-a-b"), ("???", "peer"), ("x" * 99, "x" * 60), ("..a..", "a")],
)
def test_slug(text: str, name: str):
    assert slug(text) == name
