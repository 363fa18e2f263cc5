"""Several peers side by side in the terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from harness.report.comparison import print_comparison
from tests.report.sample_run import HOSTILE, Plan, row_of, summary_of

pytestmark = pytest.mark.unit

LONG = "openai-wss://api.example-vendor.com/v1/realtime?model=gpt-realtime-2025-08-28"
LONGER = "azure-sweden-central-deployment-of-gpt-realtime-mini-2025-10-06"


def peer(think_ms: float, count: int = 8, **more: Any) -> dict[str, Any]:
    return summary_of([row_of(Plan(session=f"s{i}", think_ms=think_ms + i, **more)) for i in range(count)])


def shown(summaries: list[tuple[str, dict[str, Any]]], width: int = 80) -> str:
    file = io.StringIO()
    print_comparison(Console(file=file, width=width, color_system=None), summaries)
    text = file.getvalue()
    assert max(map(cell_len, text.splitlines())) <= width
    assert "…" not in text
    return text


def test_two_peers_stand_side_by_side_with_their_intervals() -> None:
    left, right = peer(400), peer(900)
    lines = shown([("agent", left), ("openai", right)]).splitlines()
    assert lines[1].split() == ["metric", "agent", "openai"]
    line = next(line for line in lines if line.startswith("first_audible_ms"))
    cells = []
    for summary in (left, right):
        figure = summary["metrics"]["first_audible_ms"]
        low, high = figure["ci95"]["p50"]
        cells += [f"{figure['p50']:,.1f}", f"({low:,.1f}–{high:,.1f})"]
    assert line.split() == ["first_audible_ms", *cells]
    names = [line.split()[0] for line in lines if line.startswith(("first_", "ttft", "endpoint", "rtf", "think"))]
    assert names == ["first_audible_ms", "first_packet_ms", "ttft_ms", "endpoint_ms", "rtf"]
    assert lines[-2:] == ["agent: 8 turns: 8 ok", "openai: 8 turns: 8 ok"]


@pytest.mark.parametrize("width", [40, 60, 80, 100])
@pytest.mark.parametrize("labels", [(LONG, LONGER), (LONG, "agent", LONGER)])
def test_long_labels_go_on_below_themselves(labels: tuple[str, ...], width: int) -> None:
    summaries = [(label, peer(1400.0 + 10_000 * index)) for index, label in enumerate(labels)]
    text = shown(summaries, width)
    for label, summary in summaries:
        assert label in "".join(text.split()) or label in text.replace("\n", "")
        figure = summary["metrics"]["first_audible_ms"]
        digits = 0 if figure["p50"] >= 10_000 else 1
        assert f"{figure['p50']:,.{digits}f}" in text
        assert f"({figure['ci95']['p50'][0]:,.{digits}f}–" in text


def test_one_table_at_80_columns_for_three_peers() -> None:
    text = shown([(LONG, peer(1400)), ("agent", peer(2400)), (LONGER, peer(3400))])
    assert text.count("first_audible_ms") == 1


def test_more_peers_than_fit_follow_in_further_tables() -> None:
    text = shown([(f"peer{i}", peer(1400 + i)) for i in range(7)])
    assert text.count("first_audible_ms") == 3
    assert all(f"peer{i}: 8 turns: 8 ok" in text for i in range(7))


def test_what_a_peer_lacks_is_a_dash_and_what_all_lack_is_no_row() -> None:
    text = shown([("manual", peer(400, mode="manual", pace=1.0)), ("vad", peer(400, pace=1.0))])
    line = next(line for line in text.splitlines() if line.startswith("endpoint_ms"))
    assert line.split()[1] == "–"
    assert "rtf" not in text


def clocked(think_ms: float, mode: str, *anchors: str) -> dict[str, Any]:
    entry = {"n": 8, "rtf": 0.2, "mean_of_ratios": 0.2, "generation_s": 1.0, "response_s": 5.0}
    return peer(think_ms) | {"mode": mode, "rtf_by_anchor": dict.fromkeys(anchors, entry)}


def test_the_clocks_stand_below_the_figures_and_other_ones_are_named() -> None:
    text = shown([("chat", clocked(400, "upload", "upload")), ("openai", clocked(900, "vad", "endpoint"))], 100)
    lines = [line.split() for line in text.splitlines()]
    assert ["turn", "mode", "upload", "vad"] in lines
    assert ["anchor", "of", "rtf", "upload", "endpoint"] in lines
    whole = " ".join(text.split())
    assert "Not comparable: first_packet_ms and ttft_ms start in different places (upload: when the last byte" in whole
    assert "Not comparable: rtf counts from different anchors (upload, endpoint)." in whole


def test_figures_by_one_clock_are_compared_without_a_word() -> None:
    text = shown([("a", clocked(400, "vad", "endpoint")), ("b", clocked(900, "vad", "endpoint"))])
    assert "Not comparable" not in text
    assert ["turn", "mode", "vad", "vad"] in [line.split() for line in text.splitlines()]


def test_one_clock_of_rtf_may_differ_alone() -> None:
    text = shown([("gemini", clocked(400, "vad", "speech_sent")), ("openai", clocked(900, "vad", "endpoint"))], 60)
    assert "rtf counts from different anchors (speech_sent, endpoint)" in " ".join(text.split())
    assert "start in different places" not in text


def test_a_peer_with_two_anchors_is_not_comparable_even_with_its_like() -> None:
    mixed = clocked(400, "vad", "endpoint", "speech_sent")
    text = shown([("a", mixed), ("b", mixed)], 60)
    assert "rtf counts from different anchors (endpoint, speech_sent)" in " ".join(text.split())


def test_few_turns_have_no_interval() -> None:
    line = next(line for line in shown([("a", peer(400, 2)), ("b", peer(500, 2))]).splitlines() if "ttft" in line)
    assert "(" not in line


def test_failed_peers_show_their_statuses_only() -> None:
    dead = summary_of([row_of(Plan(session=f"s{i}", status="peer_error", error="refused")) for i in range(3)])
    assert shown([("a", dead), ("b", dead)]).splitlines() == ["a: 3 turns: 3 peer_error", "b: 3 turns: 3 peer_error"]
    assert "first_audible_ms" in shown([("a", dead), ("b", peer(400))])


def test_labels_are_inert() -> None:
    text = shown([(HOSTILE, peer(400)), ("[bold]b[/bold]", peer(500)), ("", {})])
    assert "\x1b" not in text
    assert "[bold]b[/bold]" in text
