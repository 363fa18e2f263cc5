"""The calibration figures as a terminal table."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

COLOURS = {"met": "green", "missed": "red", "host noise": "yellow"}


def print_calibration(console: Console, figures: dict[str, Any]) -> None:
    """Print one row a scenario, goals beside the figures, and what the host did meanwhile."""
    table = Table(title="The stopwatch's own error, ms (goal in brackets)", title_justify="left", box=None)
    for heading in ("scenario", "n", "error p50", "error p99", "late p99", "early sends", "host p99", "verdict"):
        table.add_column(heading, justify="left" if heading == "scenario" else "right")
    for row in figures["rows"]:
        goal, verdict = row["goal"], row["verdict"]
        table.add_row(
            row["name"],
            str(row["n"]),
            _against(row["error_p50"], goal["error_p50"]),
            _against(row["error_p99"], goal["error_p99"]),
            _against(row["late_p99"], goal["late_p99"]),
            f"{row['early_sends']} of {row['sends']}",
            _ms(row["host"]["p99_ms"]),
            f"[{COLOURS[verdict]}]{verdict}[/]",
        )
    console.print(table)
    console.print(
        f"Drift over {figures['drift_chunks']} chunks on the virtual clock: {figures['drift_ns']} ns. "
        "host p99: how late a sentinel process woke meanwhile; above 0.4 ms the host is noisy and the figures are its."
    )


def _against(value: float | None, goal: float) -> str:
    return "–" if value is None else f"{value:.3f} ({goal:g})"


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
