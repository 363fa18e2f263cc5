"""The command `duplex`: scenarios are played to a peer, and what each did while the other spoke is reported."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from harness.cli_options import INTERRUPTED, PEER_FAILED, peer_options_of, priority_option, takes_peer_options
from harness.cli_recordings import ROWS, SUMMARY

PACKS = ("duplex-en", "duplex-zh")
STEREO = "stereo"
"""The folder of a run with a file for each session: the user left, the agent as heard right."""


@click.command("duplex")
@click.option("--peer", "peers", multiple=True, metavar="NAME|URL", help="Who is measured, as for bench. Repeatable.")
@click.option(
    "--pack",
    default="duplex-en",
    show_default=True,
    metavar="PATH|PACK",
    help="duplex-en, duplex-zh, all (both), or a folder with clips and scenarios/.",
)
@click.option("--scenario", "names", multiple=True, metavar="ID", help="Only this scenario. Repeatable.")
@click.option(
    "--impair",
    "impairments",
    multiple=True,
    metavar="SPEC",
    help="Impair all speech, e.g. noise:babble:snr=5 or reverb:rt60=0.5. Repeatable: applied in this order.",
)
@click.option("--concurrency", type=click.IntRange(min=1), default=10, show_default=True, help="Sessions at once.")
@click.option(
    "--repeat", type=click.IntRange(1, 1000), default=1, show_default=True, help="Play each scenario N times."
)
@takes_peer_options
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of every random choice.")
@click.option("--wire", is_flag=True, help="Keep the raw messages too (wire.jsonl of each session).")
@priority_option
@click.option("--out", type=click.Path(path_type=Path), help="Run directory. [default: bench_results/<date>_…]")
@click.option("--resume", is_flag=True, help="Go on with the run in --out; finished sessions are kept.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON instead of a table.")
def duplex_command(**options: Any) -> None:
    """Play scenarios to a peer: interruptions, backchannels, pauses, overlap.

    The panel shows n and a 95 % interval for each figure. A stereo recording of each session is kept beside it.
    """
    from harness.report.terminal import print_json, say
    from harness.run.bench import BenchRequest, run_bench
    from harness.run.peers import DEFAULT_PEER
    from harness.run.plan import PlanOptions
    from harness.run.runner import SessionOptions
    from harness.run.suite import SuiteOptions

    plays, identity = _plays(options)
    request = BenchRequest(
        peers=options["peers"] or (DEFAULT_PEER,),
        options=peer_options_of(options),
        suite=SuiteOptions(
            session=SessionOptions(**{key: options[key] for key in ("timeout_s", "instructions", "voice", "model")}),
            plan=PlanOptions(repeat=options["repeat"], seed=options["seed"]),
            concurrency=options["concurrency"],
        ),
        out=options["out"],
        resume=options["resume"],
        priority=options["priority"],
        show_progress=not options["as_json"],
        duplex=True,
    )
    name = "duplex-all" if options["pack"] == "all" else Path(options["pack"]).name
    outcome = run_bench(request, name, plays, identity)
    summaries = [_conclude(directory, as_json=options["as_json"]) for directory in outcome.directories]
    if options["as_json"]:
        print_json(summaries[0] if len(summaries) == 1 else {"peers": summaries})
    if outcome.result is None:
        say("interrupted: finished sessions are kept; the same command with --out and --resume goes on")
        sys.exit(INTERRUPTED)
    for label, why in outcome.result.hopeless.items():
        say(f"{label} was given up: {why}")
    if any(summary is None or summary["events"] == summary["unplaced"] for summary in summaries):
        say("nothing could be said to a peer")
        sys.exit(PEER_FAILED)


def _plays(options: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The scenarios that were asked for, and what identifies them for a resumed run."""
    from harness.core.errors import ConfigError, nearest
    from scenarios.play import ScenarioPlay, load_scenario_pack

    packs = [load_scenario_pack(name) for name in (PACKS if options["pack"] == "all" else (options["pack"],))]
    known = [scenario.id for pack in packs for scenario in pack.scenarios]
    for name in options["names"]:
        if name not in known:
            raise ConfigError(f"--scenario {name}: the pack has none of this name; {nearest(name, known)}")
    plays = [
        ScenarioPlay(
            scenario,
            pack.pack.clips,
            repeats=options["repeat"],
            seed=options["seed"],
            impairments=options["impairments"],
        )
        for pack in packs
        for scenario in pack.scenarios
        if not options["names"] or scenario.id in options["names"]
    ]
    identity = {
        "packs": {pack.pack.name: pack.pack.sha256 for pack in packs},
        "scenarios": [play.id for play in plays],
        "impairments": options["impairments"],
    }
    return plays, identity


def _conclude(directory: Any, *, as_json: bool) -> dict[str, Any] | None:
    """Score a run from disk, keep its figures and stereo recordings, print the panel; None: it holds no session."""
    from harness.core.errors import ConfigError
    from harness.report.duplex_panel import print_panel
    from harness.report.terminal import console, say
    from harness.run.replay import score, write_scores
    from scenarios.exporters.stereo import export_stereo
    from scoring.duplex.scorer import DuplexScorer

    if not directory.finished():
        return None
    write_scores(directory, score(directory))
    scored = DuplexScorer().score(directory)
    directory.write_lines(ROWS, scored.rows)
    directory.write_json(SUMMARY, scored.summary)
    for session in directory.load():
        try:
            export_stereo(session, directory.path / STEREO / f"{session.header.session}.wav")
        except ConfigError as exc:
            say(f"no stereo recording: {exc}")
    if not as_json:
        print_panel(console(), scored.summary["panel"])
    say(f"recordings to listen to (left: user, right: agent): {directory.path / STEREO}")
    summary: dict[str, Any] = scored.summary
    return summary
