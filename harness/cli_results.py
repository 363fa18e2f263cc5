"""What commands do with a run when its sessions are there: score it from disk, keep the figures, show them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.core.run_directory import RunDirectory
    from harness.core.scorer import Scored


def score_and_keep(run: RunDirectory, *, as_json: bool = False) -> dict[str, Scored]:
    """Score a run from disk and write every scorer's figures. Raises HarnessError."""
    from harness.run.replay import score_all, write_scores
    from harness.run.replay_progress import ReplayProgress

    with ReplayProgress(shown=not as_json) as progress:
        scored = score_all(run, watch=progress)
    for name, figures in scored.items():
        write_scores(run, figures, name)
    return scored


def write_page(run: RunDirectory) -> Path:
    """The run's `report.html`, from what stands in it."""
    from harness.report.html import write_report

    return write_report(run)


def print_timing(scored: Scored) -> None:
    """The table of the turns."""
    from harness.report.table import print_summary
    from harness.report.terminal import console

    print_summary(console(), scored.summary, scored.rows)


def print_duplex(scored: Scored) -> None:
    """The panel of the conversation's events."""
    from harness.report.duplex_panel import print_panel
    from harness.report.terminal import console

    print_panel(console(), scored.summary["panel"])


def of_peers(summaries: list[dict[str, Any] | None]) -> Any:
    """What --json prints: the summary of the one peer, or `{"peers": [...]}`; null for one that held no session."""
    return summaries[0] if len(summaries) == 1 else {"peers": summaries}
