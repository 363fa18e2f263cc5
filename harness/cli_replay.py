"""The command `replay`: every figure of a run is computed again from its recordings and compared with what stands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli_options import OK, summary_option
from harness.cli_results import print_duplex, print_timing, write_page
from harness.report.terminal import print_json, say

if TYPE_CHECKING:
    from harness.core.scorer import Scored

SHOWN = 10
"""Differences that are named."""


@click.command("replay")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--write", is_flag=True, help="Replace the stored figures and report.html by what was computed.")
@summary_option
def replay_command(run: Path, write: bool, as_json: bool) -> None:
    """Compute every figure of a run again from its recordings and compare.

    Turns: metrics.jsonl and summary.json. Conversations (duplex, imports) as well: duplex.jsonl and duplex.json.
    """
    from harness.core.run_directory import RunDirectory
    from harness.run.replay import differences, is_stored, score_all, write_scores
    from harness.run.replay_progress import ReplayProgress

    directory = RunDirectory(run)
    directory.info()
    with ReplayProgress(shown=not as_json) as progress:
        scored = score_all(directory, verified=True, watch=progress)
    stored = {name: is_stored(directory, name) for name in scored}
    found = [each for name, figures in scored.items() for each in differences(directory, figures, name)]
    if write:
        for name, figures in scored.items():
            write_scores(directory, figures, name)
        write_page(directory)
    _show(scored, as_json=as_json)
    for difference in found[:SHOWN]:
        say(f"differs: {difference.line()}")
    missing = [name for name, known in stored.items() if not known]
    if any(stored.values()) and missing:
        say(f"{', '.join(missing)}: not stored yet" + (" (now written)" if write else "; --write stores"))
    if found:
        many = "1 difference" if len(found) == 1 else f"{len(found)} differences"
        say(f"{many} from what is stored" + (" (now replaced)" if write else "; --write replaces"))
        sys.exit(OK if write else 1)
    if any(stored.values()):
        say("equal, bit for bit, to what is stored")
    else:
        say("nothing was stored yet" + (" (now written)" if write else "; --write stores"))


def _show(scored: dict[str, Scored], *, as_json: bool) -> None:
    """The turns' table where there are turns, the conversations' panel where there are conversations."""
    from harness.run.replay import DUPLEX, TIMING

    timing, duplex = scored[TIMING], scored.get(DUPLEX)
    if as_json:
        print_json(timing.summary if duplex is None else {**timing.summary, "duplex": duplex.summary})
        return
    if timing.rows or duplex is None:
        print_timing(timing)
    if duplex is not None:
        print_duplex(duplex)


COMMANDS = (replay_command,)
