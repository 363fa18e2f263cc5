"""The calibration table."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from harness.report.calibration import print_calibration

pytestmark = pytest.mark.unit

GOAL = {"error_p50": 0.3, "error_p99": 1.0, "late_p99": 0.75}


def row(name: str, verdict: str = "met", **more: Any) -> dict[str, Any]:
    host = {"n": 4000, "p50_ms": 0.061, "p99_ms": 0.223, "max_ms": 9.054, "run_delay_ms": 12.5, "quiet": True}
    return {
        "name": name,
        "sessions": 1,
        "n": 300,
        "error_p50": 0.174,
        "error_p99": 0.566,
        "error_max": 0.634,
        "sends": 46500,
        "early_sends": 0,
        "late_p50": 0.085,
        "late_p99": 0.372,
        "loop_lag_p99": 26.331,
        "host": host,
        "goal": GOAL,
        "verdict": verdict,
        **more,
    }


ROWS = [
    row("1 session"),
    row("50 sessions", "missed", error_max=12.345, early_sends=3),
    row("1 session, TLS", "too few", n=60, error_p99=None),
    row("stream of 10 min", "host noise", n=0, error_p50=None, error_p99=None, error_max=None),
]


def shown(rows: list[dict[str, Any]], width: int = 80, **more: Any) -> str:
    file = io.StringIO()
    console = Console(file=file, width=width, color_system=None, **more)
    print_calibration(console, {"rows": rows, "drift_ns": 0, "drift_chunks": 30000})
    text = file.getvalue()
    assert max(map(cell_len, text.splitlines())) <= width
    assert "…" not in text
    return text


def line_of(text: str, name: str) -> list[str]:
    return next(line for line in text.splitlines() if line.startswith(name)).removeprefix(name).split()


def test_80_columns_hold_a_line_a_scenario_with_its_goals_below() -> None:
    text = shown(ROWS)
    assert line_of(text, "1 session ") == ["300", "0.174", "0.566", "0.634", "0.372", "0", "0.223", "met"]
    assert line_of(text, "50 sessions") == ["300", "0.174", "0.566", "12.345", "0.372", "3", "0.223", "missed"]
    assert line_of(text, "1 session, TLS") == ["60", "0.174", "–", "0.634", "0.372", "0", "0.223", "too", "few"]
    assert line_of(text, "stream of 10 min") == ["0", "–", "–", "–", "0.372", "0", "0.223", "host", "noise"]
    assert line_of(text, "  at most") == ["0.3", "1", "0.75", "0"]
    assert "Drift over 30000 chunks on the virtual clock: 0 ns." in text


def test_wide_terminals_have_every_column() -> None:
    line = line_of(shown(ROWS, 100), "1 session ")
    assert line == ["300", "0.174", "0.566", "0.634", "0.085", "0.372", "0", "46500", "26.331", "0.223", "met"]
    assert "No room" not in shown(ROWS, 100)


@pytest.mark.parametrize("width", [40, 60])
def test_narrow_terminals_keep_the_errors_and_the_verdict(width: int) -> None:
    text = shown(ROWS, width)
    line = line_of(text, "1 session ")
    assert line[-1] == "met"
    assert {"0.174", "0.566"} <= set(line)
    assert "No room for" in text


def test_verdicts_that_need_a_word_get_one() -> None:
    text = " ".join(shown(ROWS).split())
    assert "too few: a p99 needs n >= 100" in text
    assert "host noise: the sentinel beside it was late as well" in text
    quiet = shown(ROWS[:2])
    assert "too few" not in quiet
    assert "host noise" not in quiet


def test_missing_figures_of_host_and_goal_are_no_error() -> None:
    host = {"n": 20, "p50_ms": None, "p99_ms": None, "max_ms": None, "quiet": None}
    text = shown([row("1 session", "unheard of", host=host, goal={}, late_p99=None, loop_lag_p99=None)], 100)
    assert line_of(text, "1 session ")[-4:] == ["–", "–", "unheard", "of"]


def test_names_are_no_markup() -> None:
    assert "[red]x[/red]" in shown([row("[red]x[/red]")], 100)
