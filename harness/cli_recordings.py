"""Commands for recordings: `import` those of others, `export` ours, `definitions` of others over one recording."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

ROWS, SUMMARY = "duplex.jsonl", "duplex.json"
"""What the duplex scorer found, in the run directory."""

source = click.argument("source", type=click.Path(path_type=Path), metavar="PATH")
out_option = click.option(
    "--out", type=click.Path(path_type=Path), help="Run directory. [default: bench_results/import-<format>_<name>]"
)
language_option = click.option(
    "--language", default="", help="Language that is spoken, such as en or zh; for a transcript."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")


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
    """Write a run's recordings in the layouts of others."""


@export_group.command("fdb")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@json_option
def export_fdb_command(run: Path, folder: Path, as_json: bool) -> None:
    """Full-Duplex-Bench's layout: DIR/<task>/<session>/ with input.wav, output.wav and the annotation."""
    from harness.report.terminal import print_json, say
    from scenarios.exporters.fdb import export_fdb

    exported = export_fdb(run, folder)
    for skipped in exported.skipped:
        say(f"left out: {skipped}")
    if as_json:
        print_json({"folder": str(exported.folder), "samples": exported.samples, "skipped": exported.skipped})
        return
    for sample in exported.samples:
        click.echo(exported.folder / sample)


@click.command("definitions")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--session", "name", metavar="ID", help="Only this recording. [default: all of the run pooled]")
@click.option("--asr", is_flag=True, help="Transcribe the agent, for definitions that need words; takes seconds.")
@json_option
def definitions_command(run: Path, name: str | None, asr: bool, as_json: bool) -> None:
    """One recording, or a run pooled, under the definitions of other harnesses side by side.

    A sentence for each says what it measures and why it differs.
    """
    import msgspec

    from harness.report.definitions import print_definitions
    from harness.report.terminal import console, print_json, say
    from scoring.duplex.presets.definitions import definitions
    from scoring.duplex.presets.words import NO_WORDS

    table = definitions(*_materials(run, name, asr=asr))
    if as_json:
        print_json(table)
    else:
        print_definitions(console(), msgspec.to_builtins(table))
    if any(NO_WORDS.reason in cell.reasons for row in table.rows for cell in row.cells):
        say("some definitions need words: --asr transcribes the agent")


def _materials(run: Path, name: str | None, *, asr: bool) -> list[Any]:
    """What presets look at, of one session or of all but the warm-ups."""
    from harness.core.errors import ConfigError, PrerequisiteError, nearest
    from harness.core.run_directory import RunDirectory
    from harness.core.scorer import Unscored
    from scoring.duplex.presets.definitions import material_of
    from scoring.duplex.presets.words import NO_WORDS, recognizer_at_hand, words_of
    from scoring.timing.recording import Recording

    directory = RunDirectory(run)
    directory.info()
    known = directory.finished()
    if name is not None and name not in known:
        raise ConfigError(f"--session {name}: no such session in {run}: {nearest(name, known)}")
    recognizer = recognizer_at_hand() if asr else NO_WORDS
    if asr and isinstance(recognizer, Unscored):
        raise PrerequisiteError(f"--asr: {recognizer.reason}")
    materials: list[Any] = []
    for session in directory.load():
        if session.header.session != name if name is not None else session.header.warmup:
            continue
        words = NO_WORDS if isinstance(recognizer, Unscored) else words_of(Recording(session), recognizer)
        materials.append(material_of(session, words=words))
    if not materials:
        raise ConfigError(f"{run}: no finished sessions in it")
    return materials


def _run(out: Path | None, form: str, path: Path) -> Path:
    """Where an import goes."""
    from harness.core.run_directory import slug

    return out or Path("bench_results") / f"import-{form}_{slug(path.resolve().stem)}"


def _conclude(imported: Any, *, as_json: bool, tau: Path | None = None) -> None:
    """Score an imported run, keep its figures and print them; tau: where its trajectories lie."""
    from harness.core.run_directory import RunDirectory
    from harness.report.duplex_panel import print_panel
    from harness.report.terminal import console, print_json, say
    from harness.run.replay import score, write_scores
    from scoring.duplex.scorer import DuplexScorer

    for skipped in imported.skipped:
        say(f"left out: {skipped}")
    directory = RunDirectory(imported.run)
    write_scores(directory, score(directory))
    scored = DuplexScorer().score(directory)
    directory.write_lines(ROWS, scored.rows)
    directory.write_json(SUMMARY, scored.summary)
    panels = _tau_panels(tau, len(imported.sessions)) if tau is not None else {}
    if as_json:
        found = {"run": str(imported.run), "sessions": imported.sessions, "skipped": imported.skipped}
        print_json({**found, "duplex": scored.summary, **panels})
    else:
        print_panel(console(), scored.summary["panel"])
        if panels:
            _print_tau(panels)
    count = len(imported.sessions)
    say(f"{count} session{'s' * (count != 1)} in {imported.run}")


def _tau_panels(path: Path, sessions: int) -> dict[str, Any]:
    """tau-voice's panel of all trajectories together, and of each; where its own rules cannot read them, why."""
    from harness.core.errors import HarnessError
    from harness.report.terminal import say
    from scoring.duplex.presets.tau_panel import panel_of
    from scoring.duplex.presets.tau_ticks import read_trajectories

    try:
        trajectories = read_trajectories(path)
    except HarnessError as exc:
        say(f"left out: tau-voice's own panel: {exc}")
        return {}
    if len(trajectories) != sessions:
        say(f"tau-voice's own panel is of {len(trajectories)} trajectories, of the {sessions} imported")
    each = [{"name": trajectory.name, "panel": panel_of([trajectory])} for trajectory in trajectories]
    return {"tau": panel_of(trajectories), "trajectories": each}


def _print_tau(panels: dict[str, Any]) -> None:
    from harness.report.tau_panel import POOLED, print_tau_panel
    from harness.report.terminal import console
    from scoring.duplex.presets.tau_panel import SYMBOLS

    def figures(panel: Any) -> dict[str, Any]:
        n = panel.n()
        return {symbol: {"value": getattr(panel, field), "n": n[symbol]} for symbol, (field, _) in SYMBOLS.items()}

    rows = [(POOLED, figures(panels["tau"]))]
    rows += [(each["name"], figures(each["panel"])) for each in panels["trajectories"]]
    print_tau_panel(console(), rows)


COMMANDS = (import_group, export_group, definitions_command)
