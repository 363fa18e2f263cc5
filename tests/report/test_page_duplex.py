"""Conversations on the page: the panel's own figures, grey where thin, the histogram, every event, hostile words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.run_directory import RunDirectory
from harness.report.duplex_panel import figure
from harness.report.html import write_report
from harness.report.page_events import event_rows as event_lines
from harness.report.page_histogram import MOST_BARS, histogram_of
from scoring.duplex.presets.definitions import definitions
from scoring.duplex.presets.material import Material
from tests.report.duplex_run import event_rows, summary_of, write_conversations
from tests.report.sample_run import HOSTILE
from tests.report.test_html import Reader, read
from tests.scoring.duplex.conversations import said, talk

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDirectory, Reader, str]:
    run = write_conversations(tmp_path_factory.mktemp("runs") / "talks")
    write_report(run)
    return run, read(run), run.report.read_text(encoding="utf-8")


def test_the_panel_is_the_summarys(page: tuple[RunDirectory, Reader, str]) -> None:
    run, reader, _ = page
    summary = run.read_json("duplex.json")
    assert summary is not None
    shown = [row for row in reader.rows if len(row) == 7][1:]  # below the headings
    assert len(shown) == len(summary["panel"])
    for row, cell in zip(shown, summary["panel"], strict=True):
        low_high = cell["ci95"] and " to ".join(figure(value, cell["unit"]) for value in cell["ci95"])
        assert row[:4] == [cell["header"], figure(cell["value"], cell["unit"]), str(cell["n"]), low_high or "–"]
        assert row[5:] == [str(cell["censored"] or ""), str(cell["inexact"] or "")]
    titles = [row[0] for row in reader.rows if len(row) == 1]
    assert titles == ["all events", "noise", "smooth turn taking", "user interruption"]


def test_thin_cells_are_grey_and_the_legend_says_so(page: tuple[RunDirectory, Reader, str]) -> None:
    run, reader, _ = page
    summary = run.read_json("duplex.json")
    assert summary is not None
    thin = sum(cell["few"] for cell in summary["panel"])
    assert 0 < thin < len(summary["panel"])
    grey = [tag for tag, attributes in reader.tags if tag == "tr" and "few" in str(attributes.get("class") or "")]
    assert len(grey) == thin
    for words in ("Grey: n below 10", "censored: events", "inexact: events"):
        assert words in reader.text


def test_a_run_of_conversations_alone_has_no_empty_sections_of_turns(page: tuple[RunDirectory, Reader, str]) -> None:
    _, reader, _ = page
    ids = {attributes.get("id") for _, attributes in reader.tags}
    assert {"duplex", "fto", "events"} <= ids
    assert not ids & {"figures", "timeline", "distributions", "matrix", "meaning", "definitions"}
    assert "0 turns" not in reader.text


def test_every_event_stands_there_with_what_the_agent_did(page: tuple[RunDirectory, Reader, str]) -> None:
    run, reader, _ = page
    rows = run.read_lines("duplex.jsonl")
    shown = [row for row in reader.rows if len(row) == 11][1:]
    assert [row[0].removesuffix(" recording") for row in shown] == [row["session"] for row in rows]
    assert shown[0][:6] == ["s00 recording", "e1000 smooth turn taking", "respond", "answered", "400.0", "–"]
    assert shown[1][2:6] == ["stop", "yielded, answered", "600.0", "300.0"]
    assert shown[1][8:10] == ["4.00", "speaking"]
    assert "inexact: its cue came late" in shown[-1][10]
    assert "censored: listening ended while the agent was speaking, at least 1,000.0 ms" in shown[-1][10]
    links = [attributes["href"] for tag, attributes in reader.tags if tag == "a"]
    assert links == ["#duplex", "stereo/s00.wav", "stereo/s00.wav"]


@pytest.mark.parametrize(
    ("row", "did"),
    [
        ({"false_stop": True, "resumed": True, "resume_ms": 900.0}, ["stopped falsely!", "resumed after 900.0 ms"]),
        ({"false_stop": True, "resumed": False}, ["stopped falsely!", "did not resume!"]),
        ({"false_stop": False, "kept_talking": True}, ["kept talking"]),
        ({"yielded": False, "missed_response": True}, ["did not yield!", "gave no answer!"]),
        ({"fto_ms": -20.0, "agent_interruptions": 2}, ["answered early", "2 interruptions!"]),
        ({"demand": "stay_silent", "false_start": False}, ["stayed silent"]),
        ({"demand": "stay_silent", "false_start": True}, ["started falsely!"]),
        ({"demand": "respond", "false_start": False, "agent_backchannels": 1}, ["1 backchannel"]),
    ],
)
def test_what_the_agent_did_in_words(tmp_path: Path, row: dict[str, Any], did: list[str]) -> None:
    (line,) = event_lines(RunDirectory(tmp_path), [row])
    assert [each.words + "!" * each.bad for each in line.did] == did


def test_what_was_never_said_says_why(tmp_path: Path) -> None:
    row = {"demand": None, "offset_exact": False, "reasons": {"event": "the session ended before it began"}}
    (line,) = event_lines(RunDirectory(tmp_path), [row])
    assert line.notes == "not placed: the session ended before it began"
    assert (line.at, line.agent) == ("–", "–")


def test_the_histogram_has_a_bar_a_bin() -> None:
    fto = {"n": 4, "p50": 150.0, "negative": 1, "bin_ms": 200, "histogram": [[-400, 1], [0, 2], [600, 1]]}
    chart = histogram_of(fto)
    assert chart is not None
    assert [(bar.count, bar.early) for bar in chart.bars] == [(1, True), (2, False), (1, False)]
    assert [bar.title for bar in chart.bars] == ["-400 to -200 ms: 1", "0 to 200 ms: 2", "600 to 800 ms: 1"]
    first, highest, last = chart.bars
    assert highest.height == 2 * first.height == 2 * last.height
    # 1200 ms over 94 %: a bin is 15.667 % wide; zero lies two bins from the left edge at 3 %.
    assert first.x == 3.0
    assert chart.zero == highest.x == pytest.approx(3 + 2 * 94 / 6, abs=0.001)
    assert last.x == pytest.approx(3 + 5 * 94 / 6, abs=0.001)
    assert [mark.text for mark in chart.marks] == ["-400", "-200", "0 ms", "200", "400", "600", "800"]
    assert "1 early" in chart.about


def test_far_outliers_widen_the_bins_and_lose_no_event() -> None:
    pairs = [[200 * bin_, 1] for bin_ in range(-3, 200, 3)]
    chart = histogram_of({"n": len(pairs), "p50": 1.0, "negative": 1, "bin_ms": 200, "histogram": pairs})
    assert chart is not None
    assert len(chart.bars) <= MOST_BARS + 1
    assert sum(bar.count for bar in chart.bars) == len(pairs)
    assert "Bins of 1,200 ms" in chart.about
    assert histogram_of({"histogram": []}) is None


def test_words_of_others_stay_words(tmp_path: Path) -> None:
    rows = event_rows(3, category=HOSTILE, event=HOSTILE, impairment=HOSTILE)
    rows = [row | {"session": HOSTILE, "reasons": dict.fromkeys(row["reasons"], HOSTILE)} for row in rows]
    run = write_conversations(tmp_path / "run", event_rows(1))  # no file can have such a name
    run.write_json("duplex.json", summary_of(rows))
    run.write_lines("duplex.jsonl", rows)
    table = msgspec.to_builtins(definitions(Material(conversation=talk([said(0, 100)], []), name=HOSTILE)))
    for row in table["rows"]:
        row |= {"name": HOSTILE, "says": HOSTILE, "source": HOSTILE, "notes": [HOSTILE]}
        row["cells"] = [cell | {"figure": HOSTILE} for cell in row["cells"]]
    run.write_json("definitions.json", table)
    write_report(run)
    reader = read(run)
    assert len(reader.scripts) == 3
    assert not [tag for tag, _ in reader.tags if tag in ("img", "iframe", "object")]
    assert not [attributes for _, attributes in reader.tags if any(name.startswith("on") for name in attributes)]
    assert "‮" not in run.report.read_text(encoding="utf-8")


def test_a_long_run_lists_the_first_events_and_says_so(tmp_path: Path) -> None:
    rows = event_rows(260)
    run = write_conversations(tmp_path / "run", rows)
    write_report(run)
    reader = read(run)
    assert len([row for row in reader.rows if len(row) == 11]) == 501
    assert "The first 500 of 524 events; all stand in duplex.jsonl." in reader.text


def test_definitions_are_shown_where_they_were_kept(tmp_path: Path) -> None:
    run = write_conversations(tmp_path / "run")
    table = definitions(Material(conversation=talk([said(1000, 2000)], [(2400, 3000)]), name="s00"))
    run.write_json("definitions.json", table)
    write_report(run)
    reader = read(run)
    assert "Under the definitions of others" in reader.text
    shown = {row[0]: row[1:] for row in reader.rows if len(row) == 4}
    for definition in table.rows:
        assert definition.says[:50] in reader.text
        assert all(cell.figure in shown for cell in definition.cells)
    assert shown["voice_to_voice_ms"][:2] == ["400.0 ms", "1"]
