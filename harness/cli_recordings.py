"""Commands for recordings: `import` those of others, `export` ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli_exports import EXPORTS
from harness.cli_options import json_option
from harness.cli_results import print_duplex, score_and_keep, write_page
from harness.cli_suite import export_vocalbench_command, import_vocalbench_command
from harness.report.terminal import console, print_json, say

source = click.argument("source", type=click.Path(path_type=Path), metavar="PATH")
out_option = click.option(
    "--out", type=click.Path(path_type=Path), help="Run directory. [default: bench_results/import-<format>_<name>]"
)
language_option = click.option(
    "--language", default="", help="Language that is spoken, such as en or zh; for a transcript."
)


@click.group("import")
def import_group() -> None:
    """Make a run directory of others' recordings, and score it."""


@import_group.command("fdb")
@source
@out_option
@language_option
@json_option
def import_fdb_command(source: Path, out: Path | None, language: str, as_json: bool) -> None:
    """Full-Duplex-Bench: folders with input.wav, output.wav and the task's annotation, at or below PATH."""
    from scenarios.importers.fdb import import_fdb

    _conclude(import_fdb(source, _run(out, "fdb", source), language=language), as_json=as_json)


@import_group.command("tau2")
@source
@out_option
@json_option
def import_tau2_command(source: Path, out: Path | None, as_json: bool) -> None:
    """tau-voice: tick trajectories, of one simulation file, a results.json or a folder.

    Prints tau-voice's own panel as well: all trajectories pooled, and each of them.
    """
    from scenarios.importers.tau2 import import_tau2

    imported = import_tau2(source, _run(out, "tau2", source))
    _conclude(imported, as_json=as_json, tau=source)


@import_group.command("stereo")
@source
@out_option
@language_option
@json_option
def import_stereo_command(source: Path, out: Path | None, language: str, as_json: bool) -> None:
    """One conversation in a stereo file: the user left, the agent right."""
    from scenarios.importers.stereo import import_stereo

    _conclude(import_stereo(source, _run(out, "stereo", source), language=language), as_json=as_json)


@import_group.command("intervals")
@source
@out_option
@json_option
def import_intervals_command(source: Path, out: Path | None, as_json: bool) -> None:
    """Who speaks when, without sound: JSON or CSV, times in seconds."""
    from scenarios.importers.intervals import import_intervals

    _conclude(import_intervals(source, _run(out, "intervals", source)), as_json=as_json)


@click.group("export")
def export_group() -> None:
    """Write a run's recordings and figures in the layouts and formats of others."""


@export_group.command("fdb")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@json_option
def export_fdb_command(run: Path, folder: Path, as_json: bool) -> None:
    """Full-Duplex-Bench's layout: DIR/<task>/<session>/ with input.wav, output.wav and the annotation."""
    from scenarios.exporters.fdb import export_fdb

    exported = export_fdb(run, folder)
    for skipped in exported.skipped:
        say(f"left out: {skipped}")
    if as_json:
        print_json({"folder": str(exported.folder), "samples": exported.samples, "skipped": exported.skipped})
        return
    for sample in exported.samples:
        click.echo(exported.folder / sample)


def _run(out: Path | None, form: str, path: Path) -> Path:
    """Where an import goes."""
    from harness.core.run_directory import slug

    return out or Path("bench_results") / f"import-{form}_{slug(path.resolve().stem)}"


def _conclude(imported: Any, *, as_json: bool, tau: Path | None = None) -> None:
    """Score an imported run, keep its figures and page, and print them; tau: where its trajectories lie."""
    from harness.core.run_directory import RunDirectory
    from harness.run.replay import DUPLEX

    for skipped in imported.skipped:
        say(f"left out: {skipped}")
    directory = RunDirectory(imported.run)
    scored = score_and_keep(directory, as_json=as_json)[DUPLEX]
    write_page(directory)
    panels = _tau_panels(tau) if tau is not None else {}
    if as_json:
        found = {"run": str(imported.run), "sessions": imported.sessions, "skipped": imported.skipped}
        print_json({**found, "duplex": scored.summary, **panels})
    else:
        print_duplex(scored)
        if panels:
            _print_tau(panels)
    count = len(imported.sessions)
    say(f"{count} session{'s' * (count != 1)} in {imported.run}")


def _tau_panels(path: Path) -> dict[str, Any]:
    """tau-voice's panel of all trajectories together, and of each."""
    from harness.core.tick_files import read_trajectories
    from scoring.duplex.presets.tau_panel import panel_of

    trajectories = [read.trajectory for read in read_trajectories(path)]
    each = [{"name": trajectory.name, "panel": panel_of([trajectory])} for trajectory in trajectories]
    return {"tau": panel_of(trajectories), "trajectories": each}


def _print_tau(panels: dict[str, Any]) -> None:
    from harness.report.tau_panel import POOLED, print_tau_panel
    from scoring.duplex.presets.tau_panel import SYMBOLS

    def figures(panel: Any) -> dict[str, Any]:
        n = panel.n()
        return {symbol: {"value": getattr(panel, field), "n": n[symbol]} for symbol, (field, _) in SYMBOLS.items()}

    rows = [(POOLED, figures(panels["tau"]))]
    rows += [(each["name"], figures(each["panel"])) for each in panels["trajectories"]]
    print_tau_panel(console(), rows)


import_group.add_command(import_vocalbench_command)
for _command in (export_vocalbench_command, *EXPORTS):
    export_group.add_command(_command)
COMMANDS = (import_group, export_group)
