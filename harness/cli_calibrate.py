"""The command `calibrate`: the stopwatch measures itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli_options import priority_option
from harness.report.terminal import console, print_json, say


@click.command("calibrate")
@click.option(
    "--sessions",
    "sessions",
    type=click.IntRange(1, 2000),
    multiple=True,
    help="Sessions at once; repeatable. [default: 1 and 50]",
)
@click.option("--samples", type=click.IntRange(min=20), default=200, show_default=True, help="Answers to time a row.")
@click.option("--tls/--no-tls", default=True, show_default=True, help="Add a row over TLS.")
@click.option(
    "--minutes",
    type=click.FloatRange(min=0.0),
    default=0.0,
    show_default=True,
    help="Add a stream of this length in real time, to look for drift.",
)
@priority_option
@click.option("--out", type=click.Path(path_type=Path), help="Keep the sessions and figures here.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def calibrate_command(**options: Any) -> None:
    """Measure the stopwatch itself against a peer whose true instants are known."""
    from harness.run.calibrate import CalibrateRequest, run_calibrate

    as_json = options.pop("as_json")
    options["sessions"] = options["sessions"] or (1, 50)
    figures = run_calibrate(CalibrateRequest(**options), say)
    if as_json:
        print_json(figures)
    else:
        from harness.report.calibration import print_calibration

        print_calibration(console(), figures)


COMMANDS = (calibrate_command,)
