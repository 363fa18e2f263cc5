"""Published benchmarks around a run: their queries for `bench --suite`, what that will take, and answers of models in
their own layout (`import vocalbench`, `export vocalbench`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from harness.cli_options import json_option
from harness.report.terminal import print_json, say

if TYPE_CHECKING:
    from scenarios.benchmarks.dataset import Dataset
    from scenarios.benchmarks.estimate import Assumptions, Rates

SUITES = ("vocalbench-zh", "vocalbench-en")
NAMED = 5
"""Missing files that are named on the terminal."""
ONLY_WITH_SUITE = ("data", "subsets", "synthesize", "generate", "dry_run", "answer_s", "judge_price")
NOT_WITH_SUITE = {
    "queries": "--queries",
    "languages": "--language",
    "impairments": "--impair",
    "turns_per_session": "--turns-per-session",
}

_OPTIONS = (
    click.option("--suite", type=click.Choice(SUITES), help="The queries of a published benchmark; needs --data."),
    click.option(
        "--data",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="With --suite: where it lies, as JSON and sound files or as parquet files.",
    ),
    click.option("--subset", "subsets", multiple=True, metavar="NAME", help="With --suite: only this one. Repeatable."),
    click.option("--synthesize", is_flag=True, help="With --suite: a local voice speaks queries without sound."),
    click.option(
        "--generate-robust",
        "generate",
        is_flag=True,
        help="With --suite: make the robustness subset's sound from robust_clean, by seeded impairments.",
    ),
    click.option(
        "--dry-run", is_flag=True, help="With --suite: only say what it takes: hours, gigabytes, judge calls."
    ),
    click.option(
        "--answer-seconds",
        "answer_s",
        type=click.FloatRange(0.1, 600),
        default=20.0,
        show_default=True,
        help="With --dry-run: how long an answer is.",
    ),
    click.option(
        "--judge-price",
        default="1.6,6.4",
        show_default=True,
        metavar="IN,OUT",
        help="With --dry-run: dollars for a million of the judge's tokens in and out.",
    ),
)


def takes_suite_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Everything that says which benchmark is asked; `check_suite_options` and `open_suite` read it."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def check_suite_options(options: dict[str, Any]) -> None:
    """Raises UsageError where they do not go together."""
    context = click.get_current_context()

    def given(name: str) -> bool:
        return context.get_parameter_source(name) is ParameterSource.COMMANDLINE

    if options["suite"] is None:
        for name in ONLY_WITH_SUITE:
            if given(name):
                flag = next(each.opts[0] for each in context.command.params if each.name == name)
                raise click.UsageError(f"{flag} needs --suite")
        return
    if options["data"] is None:
        raise click.UsageError(f"--suite {options['suite']} needs --data: the folder of the data set")
    for name, flag in NOT_WITH_SUITE.items():
        if given(name):
            raise click.UsageError(f"{flag} does not go with --suite: each of its queries is a session, as published")


def suite_queries(options: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The queries to ask, and what identifies them for a resumed run; missing sound is spoken first, or named.

    Raises ConfigError where a whole subset has no sound.
    """
    from scenarios.annotator import annotator_name
    from scenarios.benchmarks.sound import SEED
    from scenarios.impairments import reverb

    dataset = _opened(options)
    _tell(dataset)
    _speak(dataset, shown=not options["as_json"])
    identity = {
        "pack": dataset.benchmark,
        "sha256": dataset.sha256,
        "clips": len(dataset.queries),
        "annotator": annotator_name(),
        "subsets": {size.subset: size.asked for size in dataset.sizes},
    }
    if options["generate"]:
        identity["generated"] = {"seed": SEED, "reverb": reverb.method("")}
    return list(dataset.queries), identity


def print_estimate(options: dict[str, Any]) -> None:
    """What the run will take, for `--dry-run`."""
    from scenarios.benchmarks.catalogue import catalogue_of
    from scenarios.benchmarks.estimate import estimate

    dataset = _opened(options)
    rates, delivery = _of_peers(options)
    figures = estimate(
        dataset,
        catalogue_of(options["suite"]),
        _assumed(options, delivery),
        rates,
        repeat=options["repeat"],
        at_once=options["concurrency"],
    )
    if options["as_json"]:
        print_json({**figures, "without_sound": [name for _, name in dataset.missing]})
        return
    for each in figures["subsets"]:
        lacks = f", {each['missing']} without sound" if each["missing"] else ""
        click.echo(
            f"{each['subset']:22} {each['queries']:5} queries of {each['query_s']:.1f} s, "
            f"{each['judge_calls']} judge calls{lacks}"
        )
    assumed = figures["assumptions"]
    click.echo(
        f"{figures['sessions']} sessions: about {figures['hours']:.3g} h, {figures['gigabytes']:.3g} GB, "
        f"{figures['judge_calls']} judge calls for about ${figures['judge_usd']:.2f}"
    )
    click.echo(
        f"assumed: answers of {assumed['answer_s']:g} s that begin {assumed['wait_s']:g} s after the query and come in "
        f"{assumed['delivery']:g} of their length, {assumed['setup_s']:g} s around each session, "
        f"{assumed['sessions_at_once']} at once; {assumed['prompt_tokens']} + {assumed['reply_tokens']} tokens a judge "
        f"call at ${assumed['usd_in']:g} and ${assumed['usd_out']:g} a million, no call repeated; the peer's own price "
        "is not in it"
    )
    if figures["to_speak"]:
        click.echo(f"before that {figures['to_speak']} texts are spoken, in about twice their length")
    _tell(dataset, whole=False)


def _opened(options: dict[str, Any]) -> Dataset:
    from scenarios.benchmarks.catalogue import catalogue_of
    from scenarios.benchmarks.dataset import Choice, open_dataset

    choice = Choice(
        subsets=options["subsets"],
        limit=options["limit"],
        synthesize=options["synthesize"],
        generate=options["generate"],
    )
    return open_dataset(options["data"], catalogue_of(options["suite"]), choice)


def _tell(dataset: Dataset, *, whole: bool = True) -> None:
    """Name what is not as published, or not there. whole: a subset without any sound is an error."""
    from harness.core.errors import ConfigError

    for size in dataset.sizes:
        if size.found != size.published:
            say(f"{size.subset}: {size.found} items, {size.published} are published: figures will not be comparable")
        names = [name for subset, name in dataset.missing if subset == size.subset]
        if not names:
            continue
        listed = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
        remedy = " (--generate-robust makes it)" if size.subset == "robust" else ""
        if len(names) == size.asked:
            line = (
                f"{size.subset}: no sound for any of its {size.asked} queries: {listed}; fetch it, leave the subset "
                f"out with --subset, or let a local voice speak with --synthesize{remedy}"
            )
            if whole:
                raise ConfigError(line)
            say(line)
            continue
        say(f"{size.subset}: no sound for {len(names)} of {size.asked} queries, they will be not_run: {listed}")


def _speak(dataset: Dataset, *, shown: bool) -> None:
    if not dataset.wanted:
        return
    from harness.engines.tts import KokoroSynthesizer
    from harness.run.replay_progress import ReplayProgress
    from scenarios.benchmarks.spoken import speak_all

    with ReplayProgress(shown=shown, what="texts spoken") as progress:
        failed = speak_all(dataset.wanted, KokoroSynthesizer, progress)
    say(f"{len(dataset.wanted) - len(failed)} texts are spoken by a local voice; their results say synthesized")
    for why in list(failed.values())[:NAMED]:
        say(f"not_run: {why}")


def _of_peers(options: dict[str, Any]) -> tuple[list[Rates], float]:
    """Rates of each peer, and the slowest delivery among them. A peer that cannot be made here counts as usual."""
    from harness.cli_options import peer_options_of
    from harness.core.clock import SystemClock
    from harness.core.errors import HarnessError
    from harness.run.peers import DEFAULT_PEER, make_peer
    from scenarios.benchmarks.estimate import Assumptions, Rates

    rates, delivery = [], Assumptions().delivery
    for name in options["peers"] or (DEFAULT_PEER,):
        try:
            profile = make_peer(name, peer_options_of(options), SystemClock()).profile
        except HarnessError as exc:
            say(f"{name}: {exc}; 24 kHz both ways assumed")
            rates.append(Rates())
            continue
        rates.append(Rates(input_hz=profile.input_rate_hz, output_hz=profile.output_rate_hz))
        delivery = max(delivery, 1.0) if profile.pacing != "burst" else delivery
    return rates, delivery


def _assumed(options: dict[str, Any], delivery: float) -> Assumptions:
    from scenarios.benchmarks.estimate import Assumptions
    from scoring.judge.options import parse_price

    price = parse_price(options["judge_price"])
    return Assumptions(answer_s=options["answer_s"], delivery=delivery, usd_in=price.prompt, usd_out=price.completion)


@click.command("vocalbench")
@click.argument("source", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--data", type=click.Path(path_type=Path), metavar="DIR", help="The query files. [default: json/ in a folder above]"
)
@click.option("--benchmark", type=click.Choice(SUITES), help="Which of the two. [default: by the keys of the answers]")
@click.option("--out", type=click.Path(path_type=Path), help="Run directory. [default: bench_results/import-…]")
@json_option
def import_vocalbench_command(
    source: Path, data: Path | None, benchmark: str | None, out: Path | None, as_json: bool
) -> None:
    """VocalBench's layout: json/<subset>.json with a model's answers, wav/ with their sound.

    Both benchmarks; sound may be missing. Answers then count in `score RUN --benchmark NAME`.
    """
    from harness.core.run_directory import slug
    from harness.run.replay_progress import ReplayProgress
    from scenarios.importers.vocalbench import import_vocalbench

    target = out or Path("bench_results") / f"import-vocalbench_{slug(source.resolve().name)}"
    with ReplayProgress(shown=not as_json, what="answers imported") as progress:
        imported = import_vocalbench(source, target, data=data, benchmark=benchmark, progress=progress)
    _name_skipped(imported.skipped, "without sound")
    if as_json:
        print_json({"run": str(imported.run), "sessions": len(imported.sessions), "skipped": imported.skipped})
    say(
        f"{len(imported.sessions)} answers in {imported.run}; firstpacket score {imported.run} --benchmark … rates them"
    )


@click.command("vocalbench")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@json_option
def export_vocalbench_command(run: Path, folder: Path, as_json: bool) -> None:
    """VocalBench's layout: DIR/json/<subset>.json and DIR/wav/<subset>/<Qid>.wav, of a run of its queries."""
    from scenarios.exporters.vocalbench import export_vocalbench

    exported = export_vocalbench(run, folder)
    _name_skipped(exported.skipped, "left out")
    if as_json:
        found = {"answers": exported.answers, "sounds": exported.sounds, "skipped": exported.skipped}
        print_json({"folder": str(exported.folder), **found})
        return
    for subset, count in exported.answers.items():
        click.echo(f"{exported.folder / 'json' / subset}.json: {count} answers")
    say(f"{exported.sounds} with sound")


def _name_skipped(skipped: Sequence[str], what: str) -> None:
    for each in skipped[:NAMED]:
        say(f"{what}: {each}")
    if len(skipped) > NAMED:
        say(f"{what}: {len(skipped) - NAMED} more (--json names all)")
