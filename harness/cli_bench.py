"""The command `bench`: queries are played to one or several peers, and how fast each answers is reported."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from harness.cli_options import (
    INTERRUPTED,
    PEER_FAILED,
    impair_option,
    out_option,
    peer_options_of,
    priority_option,
    resume_option,
    seed_option,
    summary_option,
    takes_peer_options,
    wire_option,
)
from harness.cli_results import of_peers, print_timing, score_and_keep, write_page
from harness.cli_suite import check_suite_options, print_estimate, suite_queries, takes_suite_options
from harness.report.terminal import console, print_json, say

SESSION = ("turn", "chunk_ms", "commit_after", "timeout_s", "instructions", "voice", "model", "audio_format")
"""Options that say how each session is held."""


@click.command("bench")
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
@takes_suite_options
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help="Only the first N queries; with --suite, of each subset (robust: of each level).",
)
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
@impair_option
@takes_peer_options
@seed_option
@wire_option
@click.option(
    "--audio",
    "audio_format",
    type=click.Choice(["flac", "wav"]),
    default="flac",
    show_default=True,
    help="How recordings are kept.",
)
@priority_option
@out_option
@resume_option
@summary_option
def bench_command(**options: Any) -> None:
    """Play the queries to a peer and report how fast it answers."""
    from harness.run.bench import BenchRequest, run_bench
    from harness.run.peers import DEFAULT_PEER
    from harness.run.plan import PlanOptions
    from harness.run.session_plan import SessionOptions
    from harness.run.suite import SuiteOptions

    check_suite_options(options)
    if options["dry_run"]:
        print_estimate(options)
        return
    peer = peer_options_of(options)
    queries, identity = suite_queries(options) if options["suite"] else _queries(options)
    request = BenchRequest(
        peers=options["peers"] or (DEFAULT_PEER,),
        options=peer,
        suite=SuiteOptions(
            session=SessionOptions(**{key: options[key] for key in SESSION}),
            plan=PlanOptions(**{key: options[key] for key in ("repeat", "turns_per_session", "warmup", "seed")}),
            concurrency=options["concurrency"],
        ),
        out=options["out"],
        resume=options["resume"],
        priority=options["priority"],
        show_progress=not options["as_json"],
    )
    outcome = run_bench(request, identity["pack"], queries, identity)
    if outcome.result is None:
        kept = sum(len(directory.finished()) for directory in outcome.directories)
        say(
            f"interrupted: {kept} finished sessions are kept; the same command with "
            f"--out {_out(outcome.directories)} --resume goes on"
        )
    summaries = [_conclude(directory, as_json=options["as_json"]) for directory in outcome.directories]
    if options["as_json"]:
        print_json(of_peers(summaries))
    elif len(summaries) > 1:
        _compare(summaries)
    if outcome.result is None:
        sys.exit(INTERRUPTED)
    for label, why in outcome.result.hopeless.items():
        say(f"{label} was given up: {why}")
    failed = [summary for summary in summaries if summary is None or not summary["status"].get("ok")]
    if failed:
        say("no turn was properly answered by a peer; the table above says why")
        sys.exit(PEER_FAILED)


def _queries(options: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """What is said, and what identifies it for a resumed run."""
    from scenarios.impairments.impaired_query import impaired_queries
    from scenarios.pack import load_pack, refuse_scenarios

    refuse_scenarios(options["queries"])
    pack = load_pack(options["queries"], limit=options["limit"], languages=options["languages"] or None)
    if pack.skipped:
        say(f"left out, not readable: {', '.join(pack.skipped)}; convert to WAV or FLAC")
    identity = {"pack": pack.name, "sha256": pack.sha256, "clips": len(pack.clips), "annotator": pack.annotator}
    if not options["impairments"]:
        return list(pack.clips), identity
    impaired = impaired_queries(pack.clips, options["impairments"], seed=options["seed"])
    return list(impaired), {**identity, "impairments": list(options["impairments"])}


def _conclude(directory: Any, *, as_json: bool) -> dict[str, Any] | None:
    """Score a run from disk, write its figures and its report, and show them; None when it holds no session."""
    from harness.run.replay import TIMING

    if not directory.finished():
        return None
    scored = score_and_keep(directory, as_json=as_json)[TIMING]
    if not as_json:
        print_timing(scored)
    say(f"report: {write_page(directory)}")
    summary: dict[str, Any] = scored.summary
    return summary


def _compare(summaries: list[dict[str, Any] | None]) -> None:
    from harness.report.comparison import print_comparison

    print_comparison(console(), [(summary["peer"], summary) for summary in summaries if summary])


def _out(directories: tuple[Any, ...]) -> Path:
    first: Path = directories[0].path
    return first if len(directories) == 1 else first.parent


COMMANDS = (bench_command,)
