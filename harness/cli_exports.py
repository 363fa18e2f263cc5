"""Commands below `export` for a run's figures: `csv`, `parquet`, `markdown`, `otel`; and `stereo` for its sound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.core.errors import ConfigError
from harness.report.terminal import say

run_argument = click.argument("run", type=click.Path(path_type=Path))
out_argument = click.argument("out", type=click.Path(path_type=Path), required=False)
rows_option = click.option(
    "--rows",
    "kind",
    type=click.Choice(["timing", "duplex", "scores"]),
    help="Turns, events of conversations, or items of a benchmark. [default: the first that there is]",
)


@click.command("csv")
@run_argument
@out_argument
@rows_option
def export_csv_command(run: Path, out: Path | None, kind: str | None) -> None:
    """A line a turn, into the file OUT or to standard output."""
    from harness.core.run_directory import RunDirectory
    from harness.report.exports.csv_table import csv_text
    from harness.report.exports.rows import flat_rows

    _put(csv_text(flat_rows(RunDirectory(run), kind or "")), out)


@click.command("parquet")
@run_argument
@out_argument
@rows_option
def export_parquet_command(run: Path, out: Path | None, kind: str | None) -> None:
    """A row a turn, into the file OUT. [default: RUN/rows.parquet]"""
    from harness.core.run_directory import RunDirectory
    from harness.report.exports.parquet import write_parquet
    from harness.report.exports.rows import flat_rows

    directory = RunDirectory(run)
    file = out or run / "rows.parquet"
    flat = flat_rows(directory, kind or "")
    write_parquet(flat, file, directory.info())
    say(f"{len(flat.rows)} rows in {file}")


@click.command("markdown")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN…")
@click.option("--out", type=click.Path(path_type=Path), help="File to write. [default: standard output]")
def export_markdown_command(runs: tuple[Path, ...], out: Path | None) -> None:
    """Tables for a paper or a README: a column a peer."""
    from harness.report.exports.markdown import markdown
    from scoring.compare.run import load_runs

    found = [(run.label, {name: kept.summary for name, kept in run.stored.items()}) for run in load_runs(runs)]
    _put(markdown(found), out)


@click.command("otel")
@run_argument
@out_argument
def export_otel_command(run: Path, out: Path | None) -> None:
    """A trace in OTLP JSON, into the file OUT or to standard output: a span a turn, its anchors as events."""
    from harness.core.run_directory import RunDirectory, json_bytes
    from harness.report.exports.otel import otel_trace

    _put(json_bytes(otel_trace(RunDirectory(run))).decode(), out)


@click.command("stereo")
@run_argument
@click.argument("folder", type=click.Path(path_type=Path), metavar="[DIR]", required=False)
def export_stereo_command(run: Path, folder: Path | None) -> None:
    """A WAV file a session: the user left, the agent as heard right. [default DIR: RUN/stereo]"""
    from harness.core.run_directory import RunDirectory
    from scenarios.exporters.stereo import export_stereo

    directory = RunDirectory(run)
    directory.info()
    folder = folder or run / "stereo"
    written = 0
    for session in directory.load():
        try:
            click.echo(export_stereo(session, folder / f"{session.header.session}.wav"))
            written += 1
        except ConfigError as exc:
            say(f"left out: {exc}")
    if not written:
        raise ConfigError(f"{run}: no session with sound on a timeline")


def _put(text: str, out: Path | None) -> None:
    """Raises ConfigError where the file cannot be written."""
    if out is None:
        click.echo(text, nl=False)
        return
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8", newline="")
    except OSError as exc:
        raise ConfigError(f"{out}: cannot be written ({exc.strerror or exc})") from exc
    say(f"written: {out}")


EXPORTS: tuple[Any, ...] = (
    export_csv_command,
    export_parquet_command,
    export_markdown_command,
    export_otel_command,
    export_stereo_command,
)
"""For the group `export`."""
