"""The terminal summary."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from harness.core.run_directory import RunDirectory
from harness.report.table import print_summary
from tests.report.sample_run import HOSTILE, Plan, row_of, summary_of

pytestmark = pytest.mark.unit


def shown(summary: dict[str, Any], rows: list[dict[str, Any]], **more: Any) -> str:
    console = Console(file=io.StringIO(), width=80, color_system=None)
    print_summary(console, summary, rows, **more)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_figures_stand_in_80_columns(mixed_run: RunDirectory) -> None:
    summary = mixed_run.read_json("summary.json") or {}
    text = shown(summary, mixed_run.read_lines("metrics.jsonl"))
    assert max(cell_len(line) for line in text.splitlines()) <= 80
    line = next(line for line in text.splitlines() if line.startswith("first_audible_ms"))
    figure = summary["metrics"]["first_audible_ms"]
    assert line.split() == [
        "first_audible_ms",
        str(figure["n"]),
        f"{figure['p50']:,.1f}",
        f"{figure['ci95']['p50'][0]:,.1f}–{figure['ci95']['p50'][1]:,.1f}",
        f"{figure['p90']:,.1f}",
        "–" if figure["p95"] is None else f"{figure['p95']:,.1f}",
        f"{figure['mean']:,.1f}",
    ]


def test_slow_peers_still_fit() -> None:
    rows = [row_of(Plan(session=f"s{i}", think_ms=123_456.7 + i)) for i in range(25)]
    text = shown(summary_of(rows), rows)
    assert max(map(cell_len, text.splitlines())) <= 80
    assert "123,989" in text


def test_missing_p95_is_explained() -> None:
    rows = [row_of(Plan(session=f"s{i}")) for i in range(5)]
    text = shown(summary_of(rows), rows)
    assert "– in p95: it needs n >= 20 (p99: n >= 100)." in text


def test_absent_metric_gives_the_scorers_reason() -> None:
    rows = [row_of(Plan(session=f"s{i}", pace=1.0)) for i in range(3)]
    assert "No rtf: paced peer: the ratio is about 1 by construction." in shown(summary_of(rows), rows)


def test_failures_are_grouped_by_what_the_peer_said(mixed_run: RunDirectory) -> None:
    rows = [
        row_of(Plan(session=f"s{i}", status="peer_error", error=f"Rate limit reached, retry in {i} ms"))
        for i in range(3)
    ]
    rows.append(row_of(Plan(session="s9", status="timeout", error="no answer within 30 s")))
    text = shown(summary_of(rows, timeout_s=30.0), rows)
    assert "3 × peer_error  s0, s1, s2" in text
    assert text.count("Rate limit") == 1
    assert "No turn gave a latency." in text


def test_percentile_on_a_failed_turn() -> None:
    rows = [row_of(Plan(session=f"s{i}")) for i in range(6)]
    rows += [row_of(Plan(session=f"t{i}", status="timeout")) for i in range(4)]
    text = shown(summary_of(rows, timeout_s=30.0), rows)
    assert "Failed turns counted as infinitely late (timeout 30 s)" in text
    assert "> timeout" in text


def test_terminal_escapes_and_markup_of_a_peer_are_inert() -> None:
    rows = [row_of(Plan(session="s0", status="peer_error", error=HOSTILE + " [bold]not markup[/bold] [link=x]"))]
    text = shown(summary_of(rows), rows)
    assert "\x1b" not in text
    assert "[bold]not markup[/bold]" in text.replace("\n", " ").replace("       ", " ")


def test_parts_notes_and_rtf(tmp_path: Path) -> None:
    rows = [row_of(Plan(session=f"s{i}")) for i in range(6)]
    summary = summary_of(rows)
    summary |= {
        "first_turns": {"turns": 6, "metrics": summary["metrics"]},
        "notes": [{"code": "rate", "message": "declared 16 kHz, sent 24 kHz", "sessions": 6}],
        "rtf_by_anchor": {"endpoint": {"n": 6, "rtf": 0.4, "mean_of_ratios": 0.41}},
        "missing_sessions": 2,
    }
    text = shown(summary, rows, report=tmp_path / "report.html")
    assert "First turns of their sessions (6 turns)" in text
    assert "Note: declared 16 kHz, sent 24 kHz (6 sessions)" in text
    assert "Note: 2 planned sessions are missing." in text
    assert "Run RTF from endpoint: 0.400 (sum over sum, n 6); mean of ratios 0.410." in text
    assert text.rstrip().endswith(str(tmp_path / "report.html"))


def test_empty_run() -> None:
    assert "0 turns" in shown(summary_of([]), [])
    assert "No turn gave a latency." in shown({}, [])
