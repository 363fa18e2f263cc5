"""Cells, intervals, what is left out of them, and the scorer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.core.run_directory import RunDirectory
from scoring.duplex.floor import Floor
from scoring.duplex.panel import offsets, panel
from scoring.duplex.rows import conversation_rows, roles
from scoring.duplex.scorer import DuplexScorer
from tests.scoring.duplex.conversations import said, talk
from tests.scoring.duplex.sessions import Talk, speech
from tests.scoring.timing.recordings import header

pytestmark = pytest.mark.unit


def barge_in(session: str, stop_ms: float, **more: Any) -> list[dict[str, Any]]:
    user = [said(2000, 4000, category="interruption", **more)]
    return conversation_rows(talk(user, [(500, 2000 + stop_ms), (4500, 6000)]), session=session)


def cell(rows: list[dict[str, Any]], metric: str, category: str = "all") -> dict[str, Any]:
    (found,) = [each for each in panel(rows) if (each["category"], each["metric"]) == (category, metric)]
    return found


def test_a_median_with_its_interval() -> None:
    rows = [row for n in range(12) for row in barge_in(f"s{n}", 100.0 * (n + 1))]
    found = cell(rows, "stop_ms", "interruption")
    assert (found["n"], found["value"], found["statistic"], found["few"]) == (12, 650.0, "median", False)
    low, high = found["ci95"]
    assert 100 <= low < 650 < high <= 1200


def test_a_rate_with_its_interval_and_few() -> None:
    rows = barge_in("s0", 500) + barge_in("s1", 500) + barge_in("s2", 2200)
    found = cell(rows, "yielded")
    assert (found["n"], found["value"], found["few"]) == (3, round(2 / 3, 6), True)
    assert found["ci95"] == [0.0, 1.0]


def test_one_session_has_no_interval() -> None:
    assert cell(barge_in("s0", 500) + barge_in("s0", 700), "stop_ms")["ci95"] is None


def test_a_session_is_drawn_whole() -> None:
    # Two sessions of equal values: resampling sessions gives 0, 1/2 or 1, never the narrow spread of 40 rows.
    rows = [row for n in range(20) for row in barge_in("a", 300)] + [r for n in range(20) for r in barge_in("b", 2500)]
    assert cell(rows, "yielded")["ci95"] == [0.0, 1.0]


def test_events_whose_offset_is_not_the_planned_one_are_left_out_where_it_matters() -> None:
    rows = barge_in("s0", 500) + barge_in("s1", 900, offset_exact=False)
    assert (cell(rows, "stop_ms")["n"], cell(rows, "stop_ms")["inexact"]) == (1, 1)
    assert (cell(rows, "fto_ms")["n"], cell(rows, "fto_ms")["inexact"]) == (2, 0)


def test_censored_events_are_counted_and_in_no_figure() -> None:
    cut = conversation_rows(talk([said(2000, 2500)], [(500, 3000)], end_ms=3000), session="s1")
    found = cell(barge_in("s0", 500) + cut, "stop_ms")
    assert (found["n"], found["value"], found["censored"]) == (1, 500.0, 1)
    only = cell(cut, "stop_ms")
    assert (only["n"], only["value"], only["ci95"], only["censored"], only["few"]) == (0, None, None, 1, True)


def test_warm_ups_are_in_no_cell() -> None:
    rows = barge_in("s0", 500) + [row | {"warmup": True} for row in barge_in("s1", 900)]
    assert cell(rows, "stop_ms")["value"] == 500.0
    assert offsets(rows)["n"] == 1


def test_backchannels_a_minute_are_sum_over_sum() -> None:
    # 30 s with two, 60 s with one: 3 in 90 s.
    first = conversation_rows(talk([said(0, 30_000)], [(5000, 5400), (9000, 9500)]), session="a")
    second = conversation_rows(talk([said(0, 60_000)], [(5000, 5400)], end_ms=70_000), session="b")
    found = cell(first + second, "agent_backchannels_per_min")
    assert (found["n"], found["value"]) == (2, 2.0)
    assert found["ci95"] == [1.0, 4.0]


def test_the_distribution_of_offsets() -> None:
    user = [said(1000, 2000), said(5000, 6000), said(9000, 10_000)]
    found = offsets(conversation_rows(talk(user, [(1750, 4000), (6100, 8000), (10_450, 12_000)]), session="a"))
    assert (found["n"], found["p50"], found["negative"]) == (3, 100.0, 1)
    assert found["histogram"] == [[-400, 1], [0, 1], [400, 1]]


def test_each_utterance_plays_one_role() -> None:
    user = [said(2000, 6000), said(9000, 9400, "stay_silent", "noise"), said(14_500, 14_900, "keep_talking", "tic")]
    agent = [
        (500, 1500),
        (3000, 3400),
        (4000, 5200),
        (6500, 8000),
        (10_000, 11_000),
        (14_000, 15_000),
        (16_500, 18_000),
    ]
    found = roles(Floor(talk([*user], [*agent, (25_000, 26_000)])))
    assert found == {
        "greeting": 1,
        "backchannel": 1,
        "interruption": 1,
        "answer": 1,
        "false_start": 1,
        "resume": 1,
        "other": 2,
    }


def write(sessions: Path, name: str, script: Talk, **changes: Any) -> None:
    script.write(sessions, header(session=name, **changes))


def test_the_scorer_gives_rows_and_panel_and_skips_plain_turns(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    for number in range(2):
        script = Talk()
        script.stream().event("q", 500, 1000, category="smooth", tags=("t",)).begin(1300)
        script.audio(1500 + number * 100, speech()).done(1600)
        write(run.sessions, f"s{number}", script.until(9000), languages=("en",))
    plain = Talk()
    plain.stream().turn(0, 300, 1000, clip_ms=(0, 1200)).begin(1300).audio(1500, speech()).done(1600)
    write(run.sessions, "s9", plain)
    scored = DuplexScorer().score(run)
    assert [row["session"] for row in scored.rows] == ["s0", "s1"]
    assert (scored.summary["sessions"], scored.summary["skipped"]) == (2, 1)
    first = scored.rows[0]
    assert (first["category"], first["language"], first["tags"], first["timed_out"]) == ("smooth", "en", ["t"], False)
    assert first["response_latency_ms"] == pytest.approx(500, abs=10)
    assert scored.summary["agent"]["answer"] == 2
    assert scored.summary["parameters"]["vad"].startswith("silero-")
    assert {each["category"] for each in scored.summary["panel"]} == {"all", "smooth"}
    assert len(DuplexScorer(every_session=True).score(run).rows) == 3
    assert DuplexScorer().score(run) == scored
