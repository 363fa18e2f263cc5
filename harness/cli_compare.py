"""The command `compare`: runs beside each other, how far they are apart, and whether the evidence suffices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli_options import json_option
from harness.report.terminal import console, print_json

force_option = click.option("--force", is_flag=True, help="Compare even what was not measured alike; says what.")


@click.command("compare")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="A B [C…]")
@force_option
@click.option("--all", "every", is_flag=True, help="Every figure, also those that are 0 or have no better direction.")
@json_option
def compare_command(runs: tuple[Path, ...], force: bool, every: bool, as_json: bool) -> None:
    """Compare runs with the first: differences, paired by query where possible, with 95 % intervals.

    A directory with the runs of several peers (one --out) stands for all of them. Runs scored by different versions,
    definitions, turn modes, judges or engines are refused.
    """
    import msgspec

    from harness.core.errors import ConfigError
    from harness.report.compare import print_compared
    from harness.report.compare_sentence import sentences, warnings
    from scoring.compare.comparison import compare
    from scoring.compare.run import load_runs

    base, *others = load_runs(runs)
    if not others:
        raise ConfigError(f"{base.path}: one run alone; name another one to compare it with")
    found = [msgspec.to_builtins(compare(base, other, force=force)) for other in others]
    if as_json:
        print_json([{**each, "sentences": sentences(each), "warnings": warnings(each)} for each in found])
        return
    for index, each in enumerate(found):
        if index:
            click.echo()
        print_compared(console(), each, every=every)


COMMANDS: tuple[Any, ...] = (compare_command,)
