"""Runs compared: rows find their partners, what was not measured alike is refused by name, doubts are told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.errors import ConfigError, SessionFormatError
from harness.core.run_directory import RunDirectory, RunInfo
from scoring.compare.comparison import Comparison, compare
from scoring.compare.figures import Figure
from scoring.compare.pairing import turn_keys
from scoring.compare.run import load_run, load_runs
from tests.report.duplex_run import event_rows, write_conversations
from tests.report.sample_run import Plan, write_session
from tests.scoring.compare.runs import VERSIONS, turn, turns, write_run

pytestmark = pytest.mark.unit


def compared(tmp_path: Path, base: list[dict[str, Any]], other: list[dict[str, Any]], **summary: Any) -> Comparison:
    paths = [write_run(tmp_path / "a", base), write_run(tmp_path / "b", other, **summary)]
    return compare(*load_runs(paths))


def figure(found: Comparison, name: str) -> Figure:
    return next(each for each in found.figures if each.name == name)


def test_a_shift_of_50_ms_is_found_within_2_ms(tmp_path: Path) -> None:
    found = compared(tmp_path, turns(seed=1), turns(50, seed=2)[::-1])
    difference = figure(found, "first_packet_ms").difference
    assert difference.paired
    assert difference.value == pytest.approx(50, abs=2)
    assert (difference.verdict, difference.n) == ("worse", 24)
    assert difference.resolution == 0.4  # 0.2 ms of own error in each run
    assert (found.forced, found.unpaired, found.alone) == ([], {}, [])


def test_equal_runs_show_no_difference(tmp_path: Path) -> None:
    found = compared(tmp_path, turns(seed=1), turns(seed=2))
    assert figure(found, "first_packet_ms").difference.verdict == "none"


def test_rows_pair_by_query_repeat_and_order(tmp_path: Path) -> None:
    rows = [turn("q", 1, repeat=0), turn("q", 2, repeat=0), turn("q", 3, repeat=1), turn("p", 4)]
    left_out = turn("q", None, status="not_run", failed=False)
    places = [key.place for key, _ in turn_keys([left_out, *rows])]
    assert places == [(0, 0), (0, 1), (1, 0), (0, 0)]
    found = compared(tmp_path, rows, [*rows[2:], turn("new", 9)])
    assert figure(found, "first_packet_ms").difference.value == 0
    assert found.unpaired == {"turns": (2, 1)}


def test_failed_turns_are_in_no_latency_and_compared_as_a_share(tmp_path: Path) -> None:
    other = turns(seed=2)
    for k in range(12):
        other[k] = turn(f"q{k:02d}", None)
    found = compared(tmp_path, turns(seed=1), other)
    assert figure(found, "first_packet_ms").difference.n == 12
    failed = figure(found, "failed").difference
    assert (failed.base, failed.other, failed.value, failed.verdict) == (0, 0.5, 0.5, "worse")


def test_runs_with_other_queries_are_compared_unpaired(tmp_path: Path) -> None:
    other = [{**row, "query": f"x{row['query']}"} for row in turns(900, seed=2)]
    found = compared(tmp_path, turns(seed=1), other)
    difference = figure(found, "first_packet_ms").difference
    assert (difference.paired, difference.verdict, found.alone) == (False, "worse", ["turns"])


def test_turns_of_live_runs_are_nobodys_partners(tmp_path: Path) -> None:
    """`live-001` of one run is not what was said as `live-001` in the other, nor in the run's next session."""
    rows = [turn(f"live-{k:03d}", 100.0 + k, session=f"0000{s}-live") for s in range(2) for k in range(4)]
    paths = [write_run(tmp_path / name, rows) for name in "ab"]
    for path in paths:
        info = RunDirectory(path).info()
        live = msgspec.structs.replace(info, suite="live", config={"device": {}})
        RunDirectory(path).write_info(live)
    found = compare(*load_runs(paths))
    difference = figure(found, "first_packet_ms").difference
    assert (difference.paired, difference.n, difference.clusters) == (False, 8, 8)
    assert (found.alone, found.unpaired) == (["turns"], {})


def test_a_figure_of_the_session_counts_once_a_session(tmp_path: Path) -> None:
    rows = [turn(f"q{k}", 100.0, session=f"s{k // 2}", rtt_ms=float(k // 2)) for k in range(12)]
    difference = figure(compared(tmp_path, rows, rows), "rtt_ms").difference
    assert (difference.n, difference.base) == (6, 2.5)


@pytest.mark.parametrize(
    ("summary", "said"),
    [
        ({"mode": "manual"}, "mode (vad and manual)"),
        ({"metric_versions": {**VERSIONS, "ttft_ms": 2}}, "timing version of ttft_ms (1 and 2)"),
        (
            {"parameters": {"taint_bound_ms": 2.0, "audibility": {"threshold_db": -50.0, "hold_ms": 50}}},
            "parameters audibility.threshold_db (-40 and -50)",
        ),
    ],
)
def test_what_was_not_measured_alike_is_refused_by_name(tmp_path: Path, summary: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        compared(tmp_path, turns(seed=1), turns(seed=2), **summary)
    assert str(refusal.value) == f"a and b were not measured alike: {said}; --force compares them nevertheless"
    found = compare(*load_runs([tmp_path / "a", tmp_path / "b"]), force=True)
    assert found.forced == [said]
    assert figure(found, "first_packet_ms").difference.n == 24


def test_other_anchors_of_rtf_and_other_judges_are_refused(tmp_path: Path) -> None:
    paths = [
        write_run(tmp_path / name, turns(seed=1), rtf_by_anchor={anchor: {}})
        for name, anchor in (("a", "endpoint"), ("b", "committed"))
    ]
    for path, judge in zip(paths, ("qwen", "gpt"), strict=True):
        RunDirectory(path).write_json("scores.json", {"benchmark": "x", "version": 1, "engines": {"judge": judge}})
    with pytest.raises(ConfigError, match=r"anchor of rtf \(endpoint and committed\); benchmark engines judge \(qwen "):
        compare(*load_runs(paths))


def test_a_metric_that_one_run_lacks_is_no_clash(tmp_path: Path) -> None:
    compared(tmp_path, turns(seed=1), turns(seed=2), metric_versions={**VERSIONS, "new_ms": 7})


def test_events_pair_by_scenario_and_shares_are_means(tmp_path: Path) -> None:
    late = event_rows()
    for number, row in enumerate(late):
        late[number] = {**row, "session": f"0000{number}-{row['session']}"}
        if row["response_latency_ms"] is not None:
            late[number]["response_latency_ms"] += 120
        if row["yielded"] is not None:
            late[number]["yielded"] = False
    paths = [write_conversations(tmp_path / name, rows).path for name, rows in (("a", event_rows()), ("b", late))]
    found = compare(*load_runs(paths))
    latency, yielded = (figure(found, name).difference for name in ("response_latency_ms", "yielded"))
    assert (latency.value, latency.verdict, latency.paired) == (120, "worse", True)
    # Twelve interruptions whose offset was the planned one; that of the last session was not.
    assert (yielded.center, yielded.n, yielded.base, yielded.other, yielded.verdict) == ("mean", 12, 1, 0, "worse")


def test_items_of_a_benchmark_are_compared_by_subset(tmp_path: Path) -> None:
    for name, right in (("a", 4), ("b", 16)):
        rows = [{"subset": "knowledge", "qid": f"k{k}", "session": f"s{k}", "correct": k < right} for k in range(20)]
        rows.append({"subset": "safety", "qid": "x", "session": "x", "correct": None})
        run = RunDirectory(tmp_path / name)
        run.write_info(RunInfo(peer=name, suite="s", created="", firstpacket="0", config={}))
        run.write_lines("scores.jsonl", rows)
        run.write_json("scores.json", {"benchmark": "vb", "overall": {"value": float(right)}})
    found = compare(*load_runs([tmp_path / "a", tmp_path / "b"]))
    (only,) = found.figures
    assert (only.name, only.difference.value, only.difference.verdict) == ("knowledge.correct", 0.6, "better")
    assert found.overall == (4, 16)


def test_doubts_are_told(tmp_path: Path) -> None:
    harness = {"error_ms": {"p50": 3.0}, "tainted": 7, "noise": {"quiet": False}}
    path = write_run(tmp_path / "b", turns(seed=1), harness=harness)
    RunDirectory(path).write_json("scores.json", {"engines": {"mos": "dnsmos, weights: random", "asr": "whisper"}})
    found = compare(load_run(write_run(tmp_path / "a", turns(seed=2))), load_run(path))
    assert found.other["random_weights"] == ["dnsmos, weights: random"]
    assert (found.other["tainted"], found.other["quiet"], found.base["random_weights"]) == (7, False, [])


def test_a_peer_on_random_weights_is_marked(tmp_path: Path) -> None:
    path = write_run(tmp_path / "a", turns(seed=1))
    write_session(path / "sessions", Plan(session="s", answer_ms=100))
    assert load_run(path).random_weights == ()
    file = path / "sessions" / "s" / "session.json"
    header = json.loads(file.read_text())
    header["peer"]["config"]["facts"] = {"weights": "random"}
    file.write_text(json.dumps(header))
    assert load_run(path).random_weights == ("weights: random",)


def test_a_directory_of_several_peers_stands_for_all_of_them(tmp_path: Path) -> None:
    for name in ("agent", "agent-2"):
        write_run(tmp_path / "out" / name, turns(seed=1), peer="agent")
    assert [run.label for run in load_runs([tmp_path / "out"])] == ["agent (agent)", "agent (agent-2)"]
    with pytest.raises(ConfigError, match="holds several runs"):
        load_run(tmp_path / "out")


def test_no_run_and_no_figures(tmp_path: Path) -> None:
    with pytest.raises(SessionFormatError, match=r"no run\.json"):
        load_runs([tmp_path])
    RunDirectory(tmp_path / "new").write_info(RunInfo(peer="p", suite="s", created="", firstpacket="0", config={}))
    with pytest.raises(ConfigError, match="not scored yet; run `firstpacket replay"):
        load_runs([tmp_path / "new"])
