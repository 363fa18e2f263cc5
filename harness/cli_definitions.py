"""The command `definitions`: recordings under the definitions of other harnesses side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli_options import json_option
from harness.cli_results import write_page
from harness.report.terminal import console, print_json, say

DEFINITIONS = "definitions.json"
"""The table of the whole run, in the run directory; its page shows it."""


@click.command("definitions")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--session", "name", metavar="ID", help="Only this recording. [default: all of the run pooled]")
@click.option("--asr", is_flag=True, help="Transcribe the agent, for definitions that need words; takes seconds.")
@click.option("--write", is_flag=True, help="Keep the table in RUN/definitions.json, and show it in report.html.")
@json_option
def definitions_command(run: Path, name: str | None, asr: bool, write: bool, as_json: bool) -> None:
    """One recording, or a run pooled, under the definitions of other harnesses side by side.

    A sentence for each says what it measures and why it differs.
    """
    import msgspec

    from harness.core.run_directory import RunDirectory
    from harness.report.definitions import print_definitions
    from scoring.duplex.presets.definitions import definitions
    from scoring.duplex.presets.words import NO_WORDS

    if write and name is not None:
        raise click.UsageError("--write keeps the table of the whole run: leave --session out")
    table = definitions(*_materials(run, name, asr=asr))
    if write:
        directory = RunDirectory(run)
        directory.write_json(DEFINITIONS, table)
        say(f"report: {write_page(directory)}")
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


COMMANDS = (definitions_command,)
