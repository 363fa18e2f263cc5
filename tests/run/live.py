"""Real runs against the embedded agent for tests: one call, and the rows, summary and sessions that it left."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from harness.core.connector import PeerOptions
from harness.core.run_directory import RunDirectory
from harness.core.session.reader import Session
from harness.run.bench import BenchOutcome, BenchRequest, run_bench
from harness.run.plan import PlanOptions
from harness.run.replay import score, write_scores
from harness.run.session_plan import SessionOptions
from harness.run.suite import SuiteOptions
from scenarios.pack import load_pack


class Held(NamedTuple):
    outcome: BenchOutcome
    rows: list[dict]
    summary: dict
    sessions: list[Session]

    @property
    def row(self) -> dict:
        (row,) = self.rows
        return row


def clip(name: str):
    """A bundled query by id."""
    return next(each for each in load_pack("queries").clips if each.id == name)


def hold(
    out: Path,
    settings: dict[str, object] | None = None,
    *,
    queries=None,
    peer: str = "agent",
    timeout_s: float = 10.0,
    concurrency: int = 1,
    plan: PlanOptions | None = None,
    **session,
) -> Held:
    """Hold `queries` (default: one short English clip) with the agent told by `settings`."""
    options = {
        key: str(value) if not isinstance(value, bool) else str(value).lower()
        for key, value in (settings or {}).items()
    }
    request = BenchRequest(
        peers=(peer,),
        options=PeerOptions(settings=options, timeout_s=timeout_s),
        suite=SuiteOptions(
            session=SessionOptions(timeout_s=timeout_s, **session),
            plan=plan or PlanOptions(),
            concurrency=concurrency,
        ),
        out=out,
        show_progress=False,
    )
    outcome = run_bench(request, "test", queries or [clip("en-14")], {"pack": "test"})
    (directory,) = outcome.directories
    assert isinstance(directory, RunDirectory)
    scored = score(directory)
    write_scores(directory, scored)
    return Held(outcome, scored.rows, scored.summary, list(directory.load()))
