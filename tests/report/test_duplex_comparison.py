"""The panels of several peers beside each other."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from harness.report.duplex_comparison import print_duplex_comparison
from harness.report.duplex_panel import print_title
from tests.report.duplex_run import event_rows, summary_of
from tests.report.sample_run import HOSTILE

pytestmark = pytest.mark.unit


def shown(summaries: list[tuple[str, dict[str, Any]]], width: int = 120, *, colours: bool = False) -> str:
    file = io.StringIO()
    system = "standard" if colours else None
    print_duplex_comparison(
        Console(file=file, width=width, force_terminal=colours, color_system=system),  # type: ignore[arg-type]
        summaries,
    )
    return file.getvalue()


def test_a_column_a_peer_with_interval_and_n() -> None:
    left, right = summary_of(event_rows(12)), summary_of(event_rows(14))
    lines = shown([("agent", left), ("openai", right)]).splitlines()
    assert lines[1].split() == ["metric", "agent", "openai"]
    cells = [next(c for c in s["panel"] if c["metric"] == "response_latency_ms") for s in (left, right)]
    row = next(line for line in lines if line.startswith("response latency"))
    # The medians of 400, 410, .. 510 and of 400, .. 530.
    assert [cell["value"] for cell in cells] == [455.0, 465.0]
    assert row.split()[2:4] == ["455.0", "ms"]
    assert "465.0 ms" in row
    low, high = cells[0]["ci95"]
    assert f"({low:.1f} to {high:.1f})" in row
    assert [row.split()[index + 1] for index, word in enumerate(row.split()) if word == "n"] == ["12", "14"]
    assert [line.split()[1:] for line in lines if line.startswith("events ")] == [
        ["28", "32"],
        ["not", "placed", "0", "0"],
    ]


def test_thin_cells_are_grey_and_said_so() -> None:
    thin = shown([("a", summary_of(event_rows(3))), ("b", summary_of(event_rows(12)))], colours=True)
    row = next(line for line in thin.splitlines() if line.startswith("response latency"))
    assert row.count("\x1b[2m") == 1
    assert "Grey: n below 10" in thin


def test_other_versions_are_not_compared_in_silence() -> None:
    old = summary_of(event_rows(3))
    new = {**old, "metric_versions": {**old["metric_versions"], "fto_ms": 2}}
    assert "different versions" in shown([("a", old), ("b", new)])
    assert "different versions" not in shown([("a", old), ("b", old)])


@pytest.mark.parametrize("width", [40, 80])
def test_a_narrow_terminal_shows_peers_below_each_other(width: int) -> None:
    summary = summary_of(event_rows(12))
    text = shown([("ws://a.example.com/v1/realtime?model=one", summary), ("b", summary), ("c", summary)], width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert text.count("455.0 ms") == 3


def test_two_peers_fit_the_usual_terminal_beside_each_other() -> None:
    summary = summary_of(event_rows(12))
    lines = shown([("agent", summary), ("agent (think_ms=900)", summary)], 80).splitlines()
    assert max(map(cell_len, lines)) <= 80
    assert sum(line.startswith("metric") for line in lines) == 1


def test_a_metric_that_one_peer_lacks_is_a_dash_and_labels_are_inert() -> None:
    turns = [row for row in event_rows(12) if row["category"] == "smooth_turn_taking"]
    text = shown([(HOSTILE, summary_of(event_rows(12))), ("b", summary_of(turns))])
    assert next(line for line in text.splitlines() if line.startswith("yields")).split()[-1] == "–"
    assert "\x1b" not in text
    assert shown([("a", summary_of([]))]) == ""


def test_the_title_says_whose_panel_follows() -> None:
    file = io.StringIO()
    print_title(Console(file=file, width=80), "openai", summary_of(event_rows(12)))
    assert file.getvalue() == "openai: 16 sessions, 28 events\n"
