"""What a run takes, computed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.benchmarks.catalogue import VOCALBENCH_ZH
from scenarios.benchmarks.estimate import Assumptions, Rates, estimate
from tests.scenarios.benchmarks.made import KNOWLEDGE, opened, row, tone, write_rows, write_sound

pytestmark = pytest.mark.unit


def test_hours_gigabytes_and_calls(tmp_path: Path) -> None:
    rows = [row(f"codeswitching_open_ended-{k:03d}", f"o/{k}.wav") | {"Question": "字" * 27} for k in range(2)]
    write_rows(tmp_path, chinese_knowledge=KNOWLEDGE, cs_open_ended=rows)
    for each in KNOWLEDGE:
        write_sound(tmp_path / each["Audio"], tone(2.0))
    assumed = Assumptions(answer_s=10, wait_s=1, delivery=0.5, setup_s=2, usd_in=1, usd_out=10)
    dataset = opened(tmp_path)
    figures = estimate(dataset, VOCALBENCH_ZH, assumed, [Rates(input_hz=16_000)], repeat=2, at_once=2)
    # Without sound: 27 characters at 4.5 a second.
    assert [each["query_s"] for each in figures["subsets"]] == [2.0, 6.0]
    assert figures["sessions"] == 10
    # Twice (3 x 2 s + 2 x 6 s) of queries and 10 x (2 + 1 + 5) s, two at once: 58 s.
    assert figures["hours"] == round(58 / 3600, 4)
    # 36 s at 16 kHz and 100 s at 24 kHz, two bytes, 0.55; 60 kB each: 3.9 MB.
    assert figures["gigabytes"] == round((0.55 * 2 * (36 * 16_000 + 100 * 24_000) + 10 * 60_000) / 1e9, 4)
    # One call for an answer on knowledge, two for an open one.
    assert figures["judge_calls"] == 6 + 8
    assert figures["judge_usd"] == round(14 * (700 * 1 + 80 * 10) / 1e6, 4)
    assert (figures["missing"], figures["to_speak"]) == (2, 0)
    assert figures["assumptions"]["answer_s"] == 10


def test_the_whole_benchmark_is_about_two_days(tmp_path: Path) -> None:
    rows = [row(f"chinese_knowledge-{k:04d}", f"{k}.wav") for k in range(1000)]
    dataset = opened(write_rows(tmp_path, chinese_knowledge=rows))
    figures = estimate(dataset, VOCALBENCH_ZH, Assumptions(), [Rates()], repeat=1, at_once=1)
    assert 30 < figures["hours"] * 11.115 < 70
    assert figures["judge_calls"] == 1000
