"""The peer doctor's verdict on a terminal: a line a step, then the first departure and what to try."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from harness.report.failure import plain

MARKS = {"ok": ("ok", "green"), "warn": ("warn", "yellow"), "failed": ("FAILED", "red"), "skipped": ("–", "dim")}


def print_peer_check(console: Console, check: Any) -> None:
    """check: a `PeerCheck` of `harness.run.peer_check`."""
    console.print(Text(f"{check.peer}, turn {check.mode}, query {check.query}", style="bold"))
    width = max(len(step.name) for step in check.steps)
    for step in check.steps:
        mark, style = MARKS[step.state]
        line = Text.assemble((f"{step.name:<{width}}  ", ""), (f"{mark:<6}  ", style), plain(step.detail))
        console.print(line, soft_wrap=True)
    departure = check.departure
    if departure is None:
        console.print(Text("every step came as expected", style="green"))
    else:
        word = "first departure" if departure.state == "failed" else "works, but"
        console.print()
        console.print(Text.assemble((f"{word}: {departure.step}", "bold")), soft_wrap=True)
        for name, said in (("expected", departure.expected), ("instead", departure.instead), ("try", departure.hint)):
            if said:
                console.print(Text(f"  {name + ':':<10}{plain(said)}"), soft_wrap=True)
    if check.other:
        names = ", ".join(f"{name} ({count})" if count > 1 else name for name, count in check.other.items())
        console.print(Text(f"other messages, which no figure needs: {plain(names)}", style="dim"), soft_wrap=True)
    if check.recording:
        console.print(Text(f"recording: {check.recording}"), soft_wrap=True)
