"""Whole conversations as the page draws them, and which of them it draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.core.run_directory import RunDirectory
from harness.core.session.reader import load_session
from harness.report.conversation import conversation
from harness.report.page_views import views_of
from tests.report.sample_run import Plan, write_session

pytestmark = pytest.mark.unit


def row(session: str = "s", **more: Any) -> dict[str, Any]:
    """The event of a sample session: 1900 ms of speech from 250 ms on."""
    return {"session": session, "event": "e1", "category": "user_turn", "start_ms": 250.0, "end_ms": 2150.0} | more


def test_events_figures_and_the_peers_words_lie_on_the_axis_of_the_rows(tmp_path: Path) -> None:
    write_session(tmp_path, Plan(session="s", endpoint_ms=520, think_ms=430, text_before_ms=120, silence_ms=90))
    view = conversation(load_session(tmp_path / "s"), [row(fto_ms=1040.0, stop_ms=None, yielded=True)], "a reason")
    assert view["spans"] == [
        {"metric": "event", "label": "e1 user turn", "from": 250.0, "to": 2150.0, "value": None},
        {"metric": "fto_ms", "label": "answer after", "from": 2150.0, "to": 3190.0, "value": 1040.0},
    ]
    instants = {name: ms for name, ms, _ in view["anchors"]}
    assert (instants["e1 begins"], instants["e1 ends"]) == (250.0, 2150.0)
    assert instants["response_started"] == 2150 + 520 + 430 - 120 - 8
    assert [ms for _, ms, _ in view["anchors"]] == sorted(instants.values())
    assert (view["from_ms"], view["zero"], view["whole"], view["why"]) == (-200.0, "session_start", True, "a reason")
    for side, at in (("user", 250), ("agent", 3190)):
        loud = [
            view["from_ms"] + index * view["step_ms"] for index, peak in enumerate(view[side][1]) if peak and peak > 1
        ]
        assert loud[0] == pytest.approx(at, abs=40)
    assert view["answer"].startswith("The capital of Australia")
    assert view["sound"] is None


def test_an_early_answer_and_an_event_that_was_never_placed(tmp_path: Path) -> None:
    write_session(tmp_path, Plan(session="s"))
    rows = [row(fto_ms=-300.0, stop_ms=200.0), row(event="e2", start_ms=None, end_ms=None)]
    view = conversation(load_session(tmp_path / "s"), rows, "")
    assert [(span["metric"], span["from"], span["to"]) for span in view["spans"]] == [
        ("event", 250.0, 2150.0),
        ("fto_ms", 2150.0, 1850.0),
        ("stop_ms", 250.0, 450.0),
    ]


def test_one_of_each_category_and_trouble_comes_first(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    for name in ("a", "b", "c", "d"):
        write_session(run.sessions, Plan(session=name, answer_ms=400))
    rows = [
        row("warm", warmup=True),
        row("a"),
        row("b"),
        row("c", yielded=False),
        row("d", category="noise"),
        row("gone"),
    ]
    views = views_of(run, [], {}, rows)
    assert [(view["session"], view["why"]) for view in views.entries] == [
        ("a", "user turn"),
        ("c", "user turn, did not yield"),
        ("d", "noise"),
        ("b", ""),
    ]
    assert views.conversations == {"a": 0, "c": 1, "d": 2, "b": 3}
    assert views.left_out == 0
    assert {path.name for path in (tmp_path / "report_audio").iterdir()} == {"a.ogg", "b.ogg", "c.ogg", "d.ogg"}
    assert views_of(run, [], {}, rows, most=1).left_out == 4
    assert [path.name for path in (tmp_path / "report_audio").iterdir()] == ["a.ogg"]
