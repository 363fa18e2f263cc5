"""The command `duplex`: scenarios are played to a peer, and what each did while the other spoke is reported."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

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
from harness.cli_results import of_peers, print_duplex, score_and_keep, write_page
from harness.report.terminal import console, print_json, say

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
@impair_option
@click.option("--concurrency", type=click.IntRange(min=1), default=10, show_default=True, help="Sessions at once.")
@click.option(
    "--repeat", type=click.IntRange(1, 1000), default=1, show_default=True, help="Play each scenario N times."
)
@click.option(
    "--agent-over",
    "over_ms",
    type=click.IntRange(100, 10_000),
    default=600,
    show_default=True,
    metavar="MS",
    help="Silence after which the agent's turn is over, where it does not say so itself.",
)
@takes_peer_options
@seed_option
@wire_option
@priority_option
@out_option
@resume_option
@summary_option
def duplex_command(**options: Any) -> None:
    """Play scenarios to a peer: interruptions, backchannels, pauses, overlap.

    The panel shows n and a 95 % interval for each figure. A stereo recording of each session is kept beside it.
    """
    from harness.run.bench import BenchRequest, run_bench
    from harness.run.peers import DEFAULT_PEER
    from harness.run.plan import PlanOptions
    from harness.run.session_plan import SessionOptions
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
    several = len(outcome.directories) > 1
    summaries = [_conclude(run, as_json=options["as_json"], titled=several) for run in outcome.directories]
    if options["as_json"]:
        print_json(of_peers(summaries))
    elif several:
        _compare(summaries)
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
            over_ms=options["over_ms"],
        )
        for pack in packs
        for scenario in pack.scenarios
        if not options["names"] or scenario.id in options["names"]
    ]
    identity = {
        "packs": {pack.pack.name: pack.pack.sha256 for pack in packs},
        "scenarios": [play.id for play in plays],
        "impairments": options["impairments"],
        "agent_over_ms": options["over_ms"],
    }
    return plays, identity


def _conclude(run: Any, *, as_json: bool, titled: bool) -> dict[str, Any] | None:
    """Score a run from disk, keep its figures, stereo recordings and page, print the panel (under the peer's name).

    Returns the summary with `peer` and `run`; None for a run that holds no session.
    """
    from harness.core.weights_mark import MARK
    from harness.report.duplex_panel import print_title
    from harness.run.cue_report import cue_report
    from harness.run.replay import DUPLEX

    if not run.finished():
        return None
    scored = score_and_keep(run, as_json=as_json)[DUPLEX]
    _write_stereo(run)
    random = any(str(row["peer"]).endswith(MARK) for row in scored.rows)
    peer = f"{run.info().peer}, {MARK}" if random else run.info().peer
    cues = cue_report(run.load())
    if not as_json:
        if titled:
            print_title(console(), peer, scored.summary)
        print_duplex(scored)
    for line in cues.lines:
        say(line)
    say(f"report: {write_page(run)}")
    if (run.path / STEREO).is_dir():
        say(f"recordings to listen to (left: user, right: agent): {run.path / STEREO}")
    return {"peer": peer, "run": str(run.path), **scored.summary, "cues": msgspec.to_builtins(cues)}


def _write_stereo(run: Any) -> None:
    from harness.core.errors import ConfigError
    from harness.core.events import ScenarioEvent
    from scenarios.exporters.stereo import export_stereo

    for session in run.load():
        if next(session.of(ScenarioEvent), None) is None:
            continue
        try:
            export_stereo(session, run.path / STEREO / f"{session.header.session}.wav")
        except ConfigError as exc:
            say(f"no stereo recording: {exc}")


def _compare(summaries: list[dict[str, Any] | None]) -> None:
    from harness.report.duplex_comparison import print_duplex_comparison

    print_duplex_comparison(console(), [(summary["peer"], summary) for summary in summaries if summary])


COMMANDS = (duplex_command,)
