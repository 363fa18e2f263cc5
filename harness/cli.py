"""The command `firstpacket`: the only place that sees all rooms. Parses, calls, prints; holds no logic.

Rooms are imported inside the commands, so that `--help` is instant. Exit codes: 0 fine, 2 usage or configuration,
3 something to install or set, 4 the peer failed in every session, 130 interrupted.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from harness import __version__, cli_duplex, cli_recordings
from harness.cli_options import (
    INTERRUPTED,
    OK,
    PEER_FAILED,
    PREREQUISITE,
    USAGE,
    peer_options_of,
    priority_option,
    takes_peer_options,
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="firstpacket")
def cli() -> None:
    """A stopwatch for speech-to-speech AI: plays spoken queries in real time to a voice API or model, stamps every
    packet that comes back, and reports time to first token, first-packet latency, first audible sound and RTF."""


@cli.command()
@click.option(
    "--peer",
    "peers",
    multiple=True,
    metavar="NAME|URL",
    help="Who is measured: a name from `firstpacket "
    "peers`, NAME?key=value, or ws://… Repeat to interleave several. Default: the embedded agent.",
)
@click.option(
    "--queries",
    default="queries",
    show_default=True,
    metavar="PATH|PACK",
    help="A bundled pack, a folder of audio files (with or without manifest.jsonl), or one file.",
)
@click.option("--language", "languages", multiple=True, help="Only queries in this language. Repeatable.")
@click.option("--limit", type=click.IntRange(min=1), help="Only the first N queries.")
@click.option(
    "--turn",
    type=click.Choice(["vad", "manual"]),
    default="vad",
    show_default=True,
    help="Who ends the user's turn: the peer's VAD, or a commit of ours.",
)
@click.option(
    "--commit-after",
    type=click.Choice(["speech", "clip"]),
    default="speech",
    show_default=True,
    help="Manual turns: commit after the packet with the last of the speech, or after the whole clip.",
)
@click.option(
    "--chunk-ms", type=click.IntRange(10, 200), help="Size of the user's audio chunks. [default: 20, or the peer's]"
)
@click.option(
    "--repeat", type=click.IntRange(1, 100_000), default=1, show_default=True, help="Say every query N times."
)
@click.option("--concurrency", type=click.IntRange(min=1), default=1, show_default=True, help="Sessions at once.")
@click.option(
    "--turns-per-session",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Queries said in one session, one after the other.",
)
@click.option(
    "--warmup",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Sessions held first and left out of every figure.",
)
@takes_peer_options
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of every random choice.")
@click.option("--wire", is_flag=True, help="Keep the raw messages too (wire.jsonl of each session).")
@click.option(
    "--audio",
    "audio_format",
    type=click.Choice(["flac", "wav"]),
    default="flac",
    show_default=True,
    help="How recordings are kept.",
)
@priority_option
@click.option("--out", type=click.Path(path_type=Path), help="Run directory. [default: bench_results/<date>_…]")
@click.option("--resume", is_flag=True, help="Go on with the run in --out; finished sessions are kept.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON instead of a table.")
def bench(**options: Any) -> None:
    """Play the queries to a peer and report how fast it answers."""
    from harness.run.bench import BenchRequest, run_bench
    from harness.run.peers import DEFAULT_PEER
    from harness.run.plan import PlanOptions
    from harness.run.runner import SessionOptions
    from harness.run.suite import SuiteOptions
    from scenarios.pack import load_pack

    peer = peer_options_of(options)
    pack = load_pack(options["queries"], limit=options["limit"], languages=options["languages"] or None)
    if pack.skipped:
        _say(f"left out, not readable: {', '.join(pack.skipped)}; convert to WAV or FLAC")
    request = BenchRequest(
        peers=options["peers"] or (DEFAULT_PEER,),
        options=peer,
        suite=SuiteOptions(
            session=SessionOptions(
                **{
                    key: options[key]
                    for key in (
                        "turn",
                        "chunk_ms",
                        "commit_after",
                        "timeout_s",
                        "instructions",
                        "voice",
                        "model",
                        "audio_format",
                    )
                }
            ),
            plan=PlanOptions(**{key: options[key] for key in ("repeat", "turns_per_session", "warmup", "seed")}),
            concurrency=options["concurrency"],
        ),
        out=options["out"],
        resume=options["resume"],
        priority=options["priority"],
        show_progress=not options["as_json"],
    )
    identity = {"pack": pack.name, "sha256": pack.sha256, "clips": len(pack.clips), "annotator": pack.annotator}
    outcome = run_bench(request, pack.name, pack.clips, identity)
    if outcome.result is None:
        kept = sum(len(directory.finished()) for directory in outcome.directories)
        _say(
            f"interrupted: {kept} finished sessions are kept; the same command with "
            f"--out {_out(outcome.directories)} --resume goes on"
        )
    summaries = [_conclude(directory, as_json=options["as_json"]) for directory in outcome.directories]
    if options["as_json"]:
        _print_json(summaries[0] if len(summaries) == 1 else {"peers": summaries})
    elif len(summaries) > 1:
        _compare(summaries)
    if outcome.result is None:
        sys.exit(INTERRUPTED)
    for label, why in outcome.result.hopeless.items():
        _say(f"{label} was given up: {why}")
    failed = [summary for summary in summaries if summary is None or not summary["status"].get("ok")]
    if failed:
        _say("no turn was properly answered by a peer; the table above says why")
        sys.exit(PEER_FAILED)


@cli.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--write", is_flag=True, help="Replace metrics.jsonl, summary.json and report.html by what was computed.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON instead of a table.")
def replay(run: Path, write: bool, as_json: bool) -> None:
    """Compute every figure of a run again from its recordings and compare."""
    from harness.core.run_directory import RunDirectory
    from harness.run.replay import differences, is_stored, score_verified, write_scores

    directory = RunDirectory(run)
    directory.info()
    scored = score_verified(directory)
    stored, found = is_stored(directory), differences(directory, scored)
    if write:
        write_scores(directory, scored)
        _report(directory)
    _show(scored.rows, scored.summary, as_json=as_json)
    for difference in found[:10]:
        _say(f"differs: {difference.line()}")
    if found:
        many = "1 difference" if len(found) == 1 else f"{len(found)} differences"
        _say(f"{many} from what is stored" + (" (now replaced)" if write else "; --write replaces"))
        sys.exit(OK if write else 1)
    if stored:
        _say("equal, bit for bit, to what is stored")
    else:
        _say("nothing was stored yet" + (" (now written)" if write else "; --write stores"))


@cli.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--public", is_flag=True, help="Allow a --host that other machines can reach.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0: any free port.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A knob of the agent. Repeatable.")
@click.option("--truth", type=click.Path(dir_okay=False, path_type=Path), help="Write the true instants here.")
@click.option("--tls", is_flag=True, help="Serve wss:// with a certificate made on the spot.")
@click.option("--knobs", is_flag=True, help="List the knobs and exit.")
def serve(**options: Any) -> None:
    """Run the embedded voice agent: a real server with knobs for every trap.

    On one port it speaks OpenAI Realtime (WebSocket and WebRTC), OpenAI Live, Gemini Live, Moshi's socket, chat
    completions over SSE, and SmallWebRTC.
    """
    from connectors.agent.__main__ import main as agent

    if options["knobs"]:
        from connectors.agent.knobs import FIELDS
        from harness.report.lists import print_knobs

        print_knobs(_console(), FIELDS.values())
        return
    arguments = ["--host", options["host"], "--port", str(options["port"])]
    arguments += [item for pair in options["settings"] for item in ("--set", pair)]
    arguments += ["--truth", str(options["truth"])] if options["truth"] else []
    arguments += ["--tls"] * options["tls"] + ["--public"] * options["public"]
    sys.exit(agent(arguments))


@cli.command()
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
def calibrate(**options: Any) -> None:
    """Measure the stopwatch itself against a peer whose true instants are known."""
    from harness.run.calibrate import CalibrateRequest, run_calibrate

    as_json = options.pop("as_json")
    options["sessions"] = options["sessions"] or (1, 50)
    figures = run_calibrate(CalibrateRequest(**options), _say)
    if as_json:
        _print_json(figures)
    else:
        from harness.report.calibration import print_calibration

        print_calibration(_console(), figures)


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def peers(as_json: bool) -> None:
    """List the connectors and what each can do."""
    from harness.report.lists import print_peers
    from harness.run.peers import describe_peers

    described = describe_peers()
    if as_json:
        _print_json(described)
    else:
        print_peers(_console(), described)


@cli.command()
@click.option("--peer", metavar="NAME|URL", help="Look at a peer instead: say one query to it, with your own key.")
@click.option("--turn", type=click.Choice(["vad", "manual"]), help="Who ends the turn. [default: the peer's own way]")
@click.option("--query", help="Id of a bundled query. [default: the first]")
@takes_peer_options
@click.option("--wire", is_flag=True, help="Keep the raw messages too (needs --out).")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Keep the recording here.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def doctor(as_json: bool, peer: str | None, **options: Any) -> None:
    """Say what is installed, what is missing and how to get it, and how quiet this machine is.

    With --peer: play one query to a peer, and name the first departure from the expected order of events.
    """
    if peer is not None:
        _doctor_peer(peer, options, as_json=as_json)
        return
    context = click.get_current_context()
    for name in options:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError("without --peer the doctor looks at this machine and takes --json only")
    from harness.report.lists import print_findings
    from harness.run.doctor import examine

    findings = examine()
    if as_json:
        _print_json(findings)
    else:
        print_findings(_console(), findings)
    sys.exit(PREREQUISITE if any(f.state == "missing" and f.area == "packages" for f in findings) else OK)


def _doctor_peer(peer: str, options: dict[str, Any], *, as_json: bool) -> None:
    from harness.report.peer_check import print_peer_check
    from harness.run.peer_doctor import PeerRequest, examine_peer
    from harness.run.runner import SessionOptions
    from scenarios.pack import load_pack

    if options["wire"] and options["out"] is None:
        raise click.UsageError("--wire needs --out: the directory to keep the messages in")
    clips = [clip for clip in load_pack("queries").clips if options["query"] in (None, clip.id)]
    if not clips:
        raise click.BadParameter(f"the bundled pack has no {options['query']}", param_hint="--query")
    said = {key: options[key] for key in ("timeout_s", "instructions", "voice", "model")}
    request = PeerRequest(
        peer=peer,
        options=peer_options_of(options),
        session=SessionOptions(**said),
        turn=options["turn"],
        out=options["out"],
    )
    check = examine_peer(request, clips[0])
    if as_json:
        _print_json(check)
    else:
        print_peer_check(_console(), check)
    sys.exit(OK if check.ok else PEER_FAILED)


def _conclude(directory: Any, *, as_json: bool) -> dict[str, Any] | None:
    """Score a run from disk, write its figures and its report, and show them; None when it holds no session."""
    from harness.run.replay import score, write_scores

    if not directory.finished():
        return None
    scored = score(directory)
    write_scores(directory, scored)
    if not as_json:
        _show(scored.rows, scored.summary, as_json=False)
    _say(f"report: {_report(directory)}")
    summary: dict[str, Any] = scored.summary
    return summary


def _compare(summaries: list[dict[str, Any] | None]) -> None:
    from harness.report.comparison import print_comparison

    print_comparison(_console(), [(summary["peer"], summary) for summary in summaries if summary])


def _report(directory: Any) -> Path:
    from harness.report.html import write_report

    return write_report(directory)


def _show(rows: list[dict[str, Any]], summary: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        _print_json(summary)
        return
    from harness.report.table import print_summary

    print_summary(_console(), summary, rows)


def _console() -> Any:
    from rich.console import Console

    return Console()


def _print_json(value: Any) -> None:
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=1).decode())


def _out(directories: tuple[Any, ...]) -> Path:
    first: Path = directories[0].path
    return first if len(directories) == 1 else first.parent


def _say(line: str) -> None:
    """A line for a person; standard output stays for results. A peer's words in it cannot steer the terminal."""
    click.echo("".join(char if char.isprintable() else " " for char in line), err=True)


for _command in (cli_duplex.duplex_command, *cli_recordings.COMMANDS):
    cli.add_command(_command)


def main() -> None:
    """Run the command; a failure that firstpacket knows is one line and an exit code, never a traceback."""
    from harness.core.errors import ConfigError, ConnectorError, HarnessError, PrerequisiteError, SessionFormatError

    try:
        cli(standalone_mode=False)
    except click.exceptions.Abort:
        _say("interrupted")
        sys.exit(INTERRUPTED)
    except click.ClickException as exc:
        exc.show()
        sys.exit(USAGE)
    except HarnessError as exc:
        _say(f"firstpacket: {exc}")
        codes: dict[type[HarnessError], int] = {
            ConfigError: USAGE,
            SessionFormatError: USAGE,
            PrerequisiteError: PREREQUISITE,
            ConnectorError: PEER_FAILED,
        }
        sys.exit(next((code for kind, code in codes.items() if isinstance(exc, kind)), 1))
    except KeyboardInterrupt:
        _say("interrupted")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
