"""Which turns are shown."""

from __future__ import annotations

import pytest

from harness.report.choice import chosen_turns
from tests.report.sample_run import Plan, row_of, summary_of

pytestmark = pytest.mark.unit


def test_the_turn_nearest_to_the_median_comes_first() -> None:
    rows = [row_of(Plan(session=f"s{i}", think_ms=100.0 + 10 * i)) for i in range(9)]
    chosen = chosen_turns(rows, summary_of(rows)["metrics"])
    assert [choice.row["session"] for choice in chosen] == ["s4", "s8", "s0"]


def test_one_of_each_failure_and_never_a_warm_up() -> None:
    rows = [row_of(Plan(session="w", warmup=True, think_ms=1.0))]
    rows += [row_of(Plan(session="ok"))]
    rows += [row_of(Plan(session=f"t{i}", status="timeout")) for i in range(3)]
    rows += [row_of(Plan(session="n", status="not_run"))]
    chosen = chosen_turns(rows, summary_of(rows)["metrics"])
    assert [choice.row["session"] for choice in chosen] == ["ok", "t0"]


def test_a_peer_without_audible_figures_is_judged_by_its_packets() -> None:
    rows = [row_of(Plan(session=f"s{i}", think_ms=100.0 * i)) | {"first_audible_ms": None} for i in range(1, 4)]
    chosen = chosen_turns(rows, summary_of(rows)["metrics"])
    assert chosen[0].row["session"] == "s2"
    assert chosen[0].why == "nearest to median first packet"


def test_no_rows() -> None:
    assert chosen_turns([], {}) == []
