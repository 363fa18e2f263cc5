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


def shown(summary: dict[str, Any], rows: list[dict[str, Any]], *, width: int = 80, **more: Any) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
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


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (40, ["metric", "n", "p50", "p95"]),
        (60, ["metric", "n", "p50", "interval", "p95"]),
        (80, ["metric", "n", "p50", "interval", "p90", "p95", "mean"]),
        (100, ["metric", "n", "p50", "interval", "p90", "p95", "mean"]),
    ],
)
def test_a_narrow_terminal_loses_columns_and_no_digit(width: int, columns: list[str]) -> None:
    rows = [row_of(Plan(session=f"s{i}", think_ms=700 + 9 * i)) for i in range(25)]
    summary = summary_of(rows)
    text = shown(summary, rows, width=width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert "…" not in text
    lines = text.splitlines()
    heading = next(line for line in lines if line.startswith("metric"))
    assert heading.replace("95 % of p50", "interval").split() == columns
    for name, unit in (("first_audible_ms", 1), ("leading_silence_ms", 1), ("rtf", 3)):
        figure = summary["metrics"][name]
        low, high = figure["ci95"]["p50"]
        cells = {
            "metric": name,
            "n": str(figure["n"]),
            "interval": f"{low:,.{unit}f}–{high:,.{unit}f}",
            **{key: f"{figure[key]:,.{unit}f}" for key in ("p50", "p90", "p95", "mean")},
        }
        line = next(line for line in lines if line.startswith(name))
        assert line.split() == [cells[column] for column in columns]
    assert ("No room for" in text) == (width < 80)


def test_failed_turns_as_late_fit_40_columns() -> None:
    rows = [row_of(Plan(session=f"s{i}")) for i in range(30)]
    rows += [row_of(Plan(session=f"t{i}", status="timeout")) for i in range(3)]
    text = shown(summary_of(rows), rows, width=40)
    assert max(map(cell_len, text.splitlines())) <= 40
    assert "…" not in text
    assert "> timeout" in text


def test_a_third_partys_long_metric_goes_on_below_itself() -> None:
    name = "share_of_answers_in_which_the_caller_was_interrupted_ms"
    rows = [row_of(Plan(session=f"s{i}")) for i in range(3)]
    summary = summary_of(rows)
    summary["metrics"][name] = {"n": 3, "p50": 1234.5}
    text = shown(summary, rows, width=40)
    assert max(map(cell_len, text.splitlines())) <= 40
    assert name in "".join(line.split()[0] for line in text.splitlines() if line.split())
    assert "1,234.5" in text


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


def test_causes_come_first_when_every_turn_failed() -> None:
    rows = [row_of(Plan(session=f"s{i}", status="peer_error", error="connection refused")) for i in range(3)]
    lines = shown(summary_of(rows), rows).splitlines()
    assert lines[0].endswith("3 turns: 3 peer_error")
    assert [line.strip() for line in lines[1:4]] == [
        "Turns without a proper answer",
        "3 × peer_error  s0, s1, s2",
        "connection refused",
    ]
    text = "\n".join(lines)
    assert not any(line.startswith("No ") for line in lines)
    assert "–" not in text
    assert "infinitely late" not in text
    assert text.count("connection refused") == 1


def test_units_are_shown_when_no_turn_was_answered() -> None:
    rows = [row_of(Plan(session="s0", status="timeout", error="no answer"))]
    summary = summary_of(rows)
    summary["metrics"]["unit_lag_ms"] = {"n": 1, "p50": 26.1}
    summary["metrics"]["wire_kb"] = {"n": 1, "p50": 7.0}
    text = shown(summary, rows)
    assert text.index("Turns without") < text.index("unit_lag_ms")
    assert "26.1" in text
    assert "wire_kb" not in text


def test_causes_then_figures_when_most_turns_failed() -> None:
    rows = [row_of(Plan(session=f"s{i}", status="timeout", error="no answer")) for i in range(3)]
    rows.append(row_of(Plan(session="s9", pace=1.0)))
    text = shown(summary_of(rows), rows)
    assert text.index("Turns without") < text.index("Harness:") < text.index("first_audible_ms")
    assert "rtf" not in text
    assert "> timeout" in text


def test_figures_come_first_when_half_of_the_turns_failed() -> None:
    rows = [row_of(Plan(session=f"s{i}", status="timeout", error="no answer")) for i in range(3)]
    rows += [row_of(Plan(session=f"t{i}")) for i in range(3)]
    text = shown(summary_of(rows), rows)
    assert text.index("first_audible_ms") < text.index("Turns without")


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


def test_stages_of_a_local_model_have_a_table_of_their_own() -> None:
    rows = [row_of(Plan(session="s0"))]
    assert "Stages of the model" not in shown(summary_of(rows), rows)
    spread = {"n": 3, "p50": 710.0, "p90": 1240.5}
    stages = {"asr": {"at_ms": spread, "step_ms": {**spread, "p50": 310.0}}}
    text = shown(summary_of(rows) | {"stages": stages}, rows)
    line = next(line for line in text.splitlines() if line.split()[:1] == ["asr"])
    assert line.split() == ["asr", "3", "710.0", "1,240.5", "310.0"]


def test_counts_that_should_be_zero_are_sentences() -> None:
    rows = [row_of(Plan(session="s"))]
    many = summary_of(rows, early_turns=3, late_packets=2, missing_sessions=["a", "b"], warmups=2)
    text = " ".join(shown(many, rows).split())
    assert (
        "Note: 3 turns were answered before the query was over (an early answer counts for nothing; "
        "latencies come from the answer to the whole query)."
    ) in text
    assert "2 audio packets came after the end of their answer." in text
    assert "2 warm-up sessions are left out of every figure." in text
    one = " ".join(shown(summary_of(rows, early_turns=1, missing_sessions=1, warmups=1), rows).split())
    assert "Note: 1 turn was answered before the query was over" in one
    assert "Note: 1 planned session is missing." in one
    assert "Note: 1 warm-up session is left out of every figure." in one


def test_a_long_note_keeps_its_number_of_sessions() -> None:
    rows = [row_of(Plan(session="s"))]
    notes = [{"code": "unreadable", "message": "x" * 2000, "sessions": 7}, {"code": "late_audio", "sessions": 1}]
    text = shown(summary_of(rows, notes=notes), rows)
    assert "(7 sessions)" in text
    assert "Note: late_audio (1 session)" in text


def test_empty_run() -> None:
    assert "0 turns" in shown(summary_of([]), [])
    assert "No turn gave a latency." in shown({}, [])
