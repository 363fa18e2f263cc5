"""The command `gate`: fails when a run misses limits, for continuous integration."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli_options import OK, json_option
from harness.report.terminal import console, print_json, say

if TYPE_CHECKING:
    from harness.report.gate import Check, Limit
    from harness.report.gate_figures import Name
    from scoring.compare.run import Run

MISSED = 1
LIMIT = "METRIC.STATISTIC=NUMBER"


@click.command("gate")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--max",
    "most",
    multiple=True,
    metavar=LIMIT,
    help="Greatest allowed: first_packet_ms.p95=800 (over answered turns; p95_all counts failed ones as infinite), "
    "failed=0, duplex.stop_ms.median=400. Repeatable.",
)
@click.option(
    "--min",
    "least",
    multiple=True,
    metavar=LIMIT,
    help="Least allowed: first_packet_ms.n=20, duplex.yielded.rate=0.9, scores.overall.value=60. Repeatable.",
)
@click.option("--baseline", type=click.Path(path_type=Path), metavar="RUN2", help="Run to compare with, paired.")
@click.option(
    "--max-regression",
    "regressions",
    multiple=True,
    metavar=LIMIT,
    help="How much worse than the baseline at most: first_packet_ms.p50=50. Repeatable.",
)
@click.option("--junit", "junit_file", type=click.Path(path_type=Path), metavar="FILE", help="Write JUnit XML too.")
@json_option
def gate_command(
    run: Path,
    most: tuple[str, ...],
    least: tuple[str, ...],
    baseline: Path | None,
    regressions: tuple[str, ...],
    junit_file: Path | None,
    as_json: bool,
) -> None:
    """Exit with 1 when RUN misses a limit.

    A figure that RUN lacks, or that its n cannot carry, misses its limit too. Exit code 2: the limits make no sense.
    """
    import msgspec

    from harness.core.errors import ConfigError
    from harness.report.gate import parse_limits, print_checks
    from harness.report.gate_junit import junit, write_junit
    from scoring.compare.run import load_run

    own = [*parse_limits("max", most), *parse_limits("min", least)]
    against = parse_limits("max-regression", regressions)
    if not own and not against:
        raise ConfigError("no limit given: --max, --min, or --baseline with --max-regression")
    if bool(against) != (baseline is not None):
        raise ConfigError("--max-regression and --baseline need each other")
    measured = load_run(run)
    checks = _own(measured, own) + (_against(measured, baseline, against) if baseline else [])
    if junit_file is not None:
        write_junit(junit_file, junit(checks, peer=measured.label, run=str(run)))
    if as_json:
        print_json([{**msgspec.to_builtins(each), "text": str(each.limit)} for each in checks])
    else:
        print_checks(console(), checks)
    for said in measured.random_weights:
        say(f"random weights: {said}")
    sys.exit(OK if all(each.met for each in checks) else MISSED)


def _own(run: Run, limits: list[Limit]) -> list[Check]:
    from harness.report.gate import check
    from harness.report.gate_figures import gate_figures

    figures = gate_figures(
        run.summary("timing"), run.rows("timing"), run.summary("duplex"), run.summary("scores"), _declared()
    )
    return [check(limit, figures) for limit in limits]


def _against(run: Run, baseline: Path, limits: list[Limit]) -> list[Check]:
    import msgspec

    from harness.report.gate import check_regression
    from scoring.compare.comparison import compare
    from scoring.compare.run import load_run

    comparison = msgspec.to_builtins(compare(load_run(baseline), run))
    return [check_regression(limit, comparison, _declared()) for limit in limits]


def _declared() -> list[Name]:
    """Figures of every run: a run that lacks one misses its limit, where a name that none has is a mistake."""
    from harness.report.gate_figures import STATISTICS, Name
    from scoring.duplex.metrics import METRICS
    from scoring.timing.registry import all_metrics

    names = [
        Name(metric.name, statistic)
        for metric in all_metrics()
        if metric.unit not in ("label", "flag")
        for statistic in STATISTICS
    ]
    return names + [Name(f"duplex.{metric.name}", metric.statistic) for metric in METRICS]


COMMANDS: tuple[Any, ...] = (gate_command,)
