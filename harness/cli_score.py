"""Commands of published benchmarks: `score` a run, place it on the `leaderboard`, the `overall` of given columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli_options import summary_option
from harness.cli_results import write_page

if TYPE_CHECKING:
    from scoring.judge.options import JudgeOptions

run_argument = click.argument("run", type=click.Path(path_type=Path))
benchmark_option = click.option("--benchmark", required=True, metavar="NAME", help="vocalbench-zh or vocalbench-en.")


@click.command("score")
@run_argument
@benchmark_option
@click.option(
    "--data", type=click.Path(path_type=Path), help="Checkout of the benchmark, for the judge prompts it has."
)
@click.option(
    "--asr",
    default="",
    metavar="ENGINE[:MODEL]",
    help="What transcribes the answers: faster-whisper (default), transformers, openai-whisper, paraformer, "
    "recorded (what came with imported answers), or none.",
)
@click.option("--asr-language", metavar="CODE", help="Tell ASR the language. [default: it decides, as published]")
@click.option(
    "--mos",
    default="",
    metavar="ENGINE[:MODEL]",
    help="What rates the sound: distillmos (default), dnsmos, utmos22:CHECKPOINT, or none.",
)
@click.option(
    "--emotion", default="", metavar="ENGINE[:MODEL]", help="What names the emotion: emotion2vec, or none (default)."
)
@click.option(
    "--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True, help="Where engines run."
)
@click.option(
    "--workers", type=click.IntRange(1, 64), help="Processes of an engine on a CPU. [default: its own choice]"
)
@click.option(
    "--judge",
    "judge_url",
    metavar="URL",
    help="OpenAI-compatible endpoint of the judge, such as https://api.openai.com/v1.",
)
@click.option("--judge-model", metavar="NAME", help="The judge's model.")
@click.option("--judge-key-env", metavar="NAME", help="Environment variable that holds the judge's key.")
@click.option(
    "--judge-concurrency", type=click.IntRange(1, 256), default=8, show_default=True, help="Questions at once."
)
@click.option("--judge-rpm", type=click.FloatRange(min=0, min_open=True), help="Requests a minute at most.")
@click.option("--judge-tpm", type=click.FloatRange(min=0, min_open=True), help="Tokens a minute at most.")
@click.option("--judge-price", metavar="IN,OUT", help="Price of a million tokens in and out, for the cost.")
@click.option(
    "--judge-timeout",
    type=click.FloatRange(0.1, 3600),
    default=120.0,
    show_default=True,
    help="Seconds to wait for a reply.",
)
@click.option("--judge-max-tokens", type=click.IntRange(min=1), metavar="N", help="Longest reply, in tokens.")
@click.option("--judge-seed", type=int, metavar="N", help="Seed sent along, for services that heed one.")
@click.option(
    "--judge-extra",
    multiple=True,
    metavar="NAME=JSON",
    help="Field of every request, such as enable_thinking=false; null takes one out. Repeatable.",
)
@click.option("--judge-ca", metavar="FILE", help="PEM file with the certificate to trust.")
@click.option(
    "--judge-transcripts",
    is_flag=True,
    help="vocalbench-zh: judge what was heard where a peer sends no text; not as published.",
)
@click.option("--random-weights", is_flag=True, help="Score answers of a model with random weights too.")
@summary_option
def score_command(run: Path, benchmark: str, **options: Any) -> None:
    """Score the answers in RUN by a published benchmark's rules, beside their latency.

    Made by `bench --suite` or `import vocalbench`. Interrupted, it goes on where it was when called again.
    """
    from harness.core.run_directory import RunDirectory
    from harness.report.score_table import print_scores
    from harness.report.terminal import console, print_json, say
    from harness.run.score_progress import ScoreProgress
    from scoring.benchmarks.registry import make_benchmark
    from scoring.pipeline.engines import EngineChoice, OpenEngines
    from scoring.pipeline.score import keep_scores, score_run

    directory = RunDirectory(run)
    rules = make_benchmark(benchmark, options["data"], transcripts=options["judge_transcripts"])
    choice = EngineChoice(
        asr=options["asr"],
        mos=options["mos"],
        emotion=options["emotion"],
        language=options["asr_language"],
        device=options["device"],
        workers=options["workers"],
        judge=_judge(options),
    )
    with ScoreProgress(shown=not options["as_json"]) as progress, OpenEngines(choice, directory) as engines:
        scores = score_run(directory, rules, engines, progress, random_weights=options["random_weights"])
    if engines.usage is not None:
        scores.summary["judge_usage"] = engines.usage
    keep_scores(directory, scores)
    write_page(directory)
    if options["as_json"]:
        print_json(scores.summary)
        return
    print_scores(console(), scores.summary)
    say(f"kept in {directory.path}: scores.jsonl, scores.json, report.html")


_ONLY_WITH_JUDGE = (
    *("judge_model", "judge_key_env", "judge_rpm", "judge_tpm", "judge_price"),
    *("judge_max_tokens", "judge_seed", "judge_extra", "judge_ca"),
)


def _judge(options: dict[str, Any]) -> JudgeOptions | None:
    """The judge that was named, if one was."""
    from harness.core.errors import ConfigError
    from scoring.judge.options import JudgeOptions, parse_extra, parse_price

    if not options["judge_url"]:
        for name in _ONLY_WITH_JUDGE:
            if options[name] not in (None, ()):
                raise ConfigError(f"--{name.replace('_', '-')} needs --judge URL")
        return None
    return JudgeOptions(
        url=options["judge_url"],
        model=options["judge_model"] or "",
        key_env=options["judge_key_env"],
        max_tokens=options["judge_max_tokens"],
        seed=options["judge_seed"],
        extra=parse_extra(options["judge_extra"]),
        ca=options["judge_ca"],
        concurrency=options["judge_concurrency"],
        requests_per_minute=options["judge_rpm"],
        tokens_per_minute=options["judge_tpm"],
        timeout_s=options["judge_timeout"],
        price=parse_price(options["judge_price"]) if options["judge_price"] else None,
    )


@click.command("leaderboard")
@run_argument
@benchmark_option
@summary_option
def leaderboard_command(run: Path, benchmark: str, as_json: bool) -> None:
    """A scored run beside the published rows, and whether it may be compared with them."""
    from harness.core.errors import ConfigError
    from harness.core.run_directory import RunDirectory
    from harness.report.score_table import print_leaderboard
    from harness.report.terminal import console, print_json
    from scoring.benchmarks.leaderboard import leaderboard
    from scoring.benchmarks.overall import formula_of
    from scoring.pipeline.score import SUMMARY

    formula_of(benchmark)
    directory = RunDirectory(run)
    summary = directory.read_json(SUMMARY)
    if summary is None or summary.get("benchmark") != benchmark:
        raise ConfigError(f"{run}: not scored yet; run `firstpacket score {run} --benchmark {benchmark}` first")
    board = leaderboard(benchmark, summary, label=directory.info().peer)
    if as_json:
        print_json(board)
        return
    print_leaderboard(console(), board)


@click.command("overall")
@benchmark_option
@click.option(
    "--rows", required=True, type=click.Path(path_type=Path), help="CSV with a line a model and a column an ability."
)
@summary_option
def overall_command(benchmark: str, rows: Path, as_json: bool) -> None:
    """The overall score of each row of a table of abilities, by the published formula."""
    from harness.report.score_table import print_overall
    from harness.report.terminal import console, print_json
    from scoring.benchmarks.overall import overall_of_rows

    found = [
        {
            "model": row.model,
            "overall": row.overall.value,
            "printed": row.printed,
            "residual": row.residual,
            "points": row.overall.points,
            "missing": row.overall.missing,
        }
        for row in overall_of_rows(rows, benchmark)
    ]
    if as_json:
        print_json(found)
        return
    print_overall(console(), found)


COMMANDS = (score_command, leaderboard_command, overall_command)
