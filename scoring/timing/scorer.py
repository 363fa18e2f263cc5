"""The timing scorer: a run directory in, rows and summary out; the same input gives the same bytes."""

from __future__ import annotations

from typing import Any

from harness.core.audibility import DEFAULT, Audibility
from harness.core.run_directory import RunDirectory
from harness.core.scorer import Scored
from scoring.timing.metric import Parameters
from scoring.timing.registry import all_metrics
from scoring.timing.rows import session_rows
from scoring.timing.summary import Tally, summarize


class TimingScorer:
    """Latency, delivery and real-time factor of every turn (see `scoring/timing/METRICS.md`)."""

    name = "timing"
    version = 1

    def __init__(self, *, parameters: Parameters | None = None, rule: Audibility = DEFAULT) -> None:
        self._parameters = parameters or Parameters()
        self._rule = rule

    def score(self, run: RunDirectory) -> Scored:
        """Score the sessions one by one; only numbers are kept. Raises ScoringError or SessionFormatError."""
        metrics, tally = all_metrics(), Tally(noise=run.read_lines("noise.jsonl"))
        rows: list[dict[str, Any]] = []
        for session in run.load():
            tally.take(session)
            rows += session_rows(session, parameters=self._parameters, rule=self._rule, metrics=metrics)
        summary = summarize(
            rows,
            tally,
            metrics,
            info=run.info() if run.exists() else None,
            parameters=self._parameters,
            rule=self._rule,
        )
        return Scored(rows=rows, summary=summary)
