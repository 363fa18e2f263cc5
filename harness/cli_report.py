"""The command `report`: the page of a run, drawn again from what stands in it."""

from __future__ import annotations

from pathlib import Path

import click

from harness.core.errors import PrerequisiteError
from harness.report.terminal import say


@click.command("report")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--sessions", default="20", show_default=True, metavar="N|all", help="Sessions drawn, with their sound.")
def report_command(run: Path, sessions: str) -> None:
    """Write report.html again: with the scores and definitions kept since, or with more sessions drawn."""
    from harness.core.run_directory import RunDirectory
    from harness.report.html import write_report
    from harness.run.replay_progress import ReplayProgress

    most = _most(sessions)
    directory = RunDirectory(run)
    directory.info()
    try:
        with ReplayProgress(what="sessions drawn") as progress:
            page = write_report(directory, sessions=most, watch=progress)
    except OSError as exc:
        raise PrerequisiteError(f"{run}: the page cannot be written ({exc.strerror or exc})") from exc
    say(f"report: {page}")


def _most(sessions: str) -> int | None:
    if sessions == "all":
        return None
    if not sessions.isdecimal():
        raise click.UsageError(f"--sessions {sessions}: give a number, or all")
    return int(sessions)


COMMANDS = (report_command,)
