"""Scoring a run: its answers, their evidence, the rows and the summary of a benchmark, and where they are kept.

`scores.jsonl` holds a row an item, `scores.json` the summary; `scoring/` in the run directory the caches of the stages,
one file an engine, so that a changed engine finds the old results when it is asked for again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from harness.core.run_directory import RunDirectory, slug
from scoring.benchmarks.benchmark import Benchmark, Stage
from scoring.pipeline.answers import ItemAnswer, answers_of
from scoring.pipeline.gather import Engines, Gatherer, Progress
from scoring.pipeline.latency import latency_by_subset

ROWS, SUMMARY, CACHES = "scores.jsonl", "scores.json", "scoring"
SCHEMA = 2


class BenchmarkScores(msgspec.Struct, frozen=True, kw_only=True):
    """rows: one an item, with `session` and `turn`. summary: the benchmark's, `latency`, and how many items have an
    answer (`answers`), have none though the peer was asked (`failed`), were never asked (`not_run`)."""

    rows: list[dict[str, Any]]
    summary: dict[str, Any]


def cache_path(run: RunDirectory, stage: Stage, engine: str) -> Path:
    """Where a stage's results with one engine are kept. engine: its name or fingerprint."""
    return run.path / CACHES / f"{stage}-{slug(engine)}.jsonl"


def score_run(
    run: RunDirectory,
    benchmark: Benchmark,
    engines: Callable[[frozenset[Stage]], Engines],
    progress: Progress | None = None,
    *,
    random_weights: bool = False,
) -> BenchmarkScores:
    """Score every answer of `run`. engines: called once with the stages that the run's items need.

    random_weights: score the words of a model whose weights are random too; they are refused otherwise.

    Raises ScoringError, SessionFormatError, ConfigError, PrerequisiteError. Interrupted, it goes on where it was when
    it is called again.
    """
    answers = list(answers_of(run, benchmark.name, random_weights=random_weights))
    needed = frozenset[Stage]().union(*(benchmark.needs(answer.item) for answer in answers if not answer.refused))
    having = engines(needed)
    evidence = Gatherer(benchmark, answers, having, progress).gather()
    rows = [{**benchmark.row(each), "session": each.session, "turn": each.turn} for each in evidence]
    return BenchmarkScores(rows=rows, summary=_summary(benchmark, rows, answers, having))


def keep_scores(run: RunDirectory, scores: BenchmarkScores) -> None:
    """Write `scores.jsonl` and `scores.json`. Raises ConfigError or PrerequisiteError (disk full)."""
    run.write_lines(ROWS, scores.rows)
    run.write_json(SUMMARY, scores.summary)


def _summary(
    benchmark: Benchmark,
    rows: list[dict[str, Any]],
    answers: list[ItemAnswer],
    having: Engines,
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "benchmark": benchmark.name,
        "version": benchmark.version,
        **benchmark.summary(rows),
        "latency": latency_by_subset(answers),
        "answers": sum(not answer.failed for answer in answers),
        "failed": sum(bool(answer.failed) and not answer.not_run for answer in answers),
        "not_run": sum(answer.not_run for answer in answers),
        "refused": sum(bool(answer.refused) for answer in answers),
        "engines": having.names(),
        "no_engine": dict(having.missing),
    }
