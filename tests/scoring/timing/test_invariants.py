"""What must not change a row: another time, more silence around what was said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.core.events import LoopLag, RoundTrip
from tests.scoring.timing.recordings import MS, Script, silence, tone, vad_turn

pytestmark = pytest.mark.unit
LATENCIES = (
    "status",
    "ttft_ms",
    "first_packet_ms",
    "first_audible_ms",
    "endpoint_ms",
    "think_ms",
    "leading_silence_ms",
    "generation_s",
    "response_s",
    "rtf",
    "stream_rtf",
    "stalls",
    "stall_ms",
    "buffer_lead_ms",
    "barge_in_stop_ms",
    "wire_stop_ms",
)


def rich() -> Script:
    """Two turns: an early answer to a pause, a real one with a stall, a barge-in, a late delta."""
    script = Script().connected().stream().turn(0, 300, 1500, clip_ms=(0, 1700)).send(0, 2000).heard_stop(700)
    script.begin(701, "e").audio(720, tone(2000), "e").heard_start(800).done(810, "e", status="cancelled")
    script.heard_stop(1900).begin(1901).text(1950).audio(2000, silence(70)).audio(2200, tone(300.5)).audio(
        2213, tone(900)
    )
    script.done(2300).audio(2400, tone(50)).ended(2301)
    script.turn(1, 3000, 3600, clip_ms=(2900, 3700)).send(2000, 4000).heard_start(3111.111)
    script.heard_stop(3901).begin(3902, "r1").audio(4000.123, tone(200), "r1").done(4001, "r1").ended(4002, turn=1)
    script.add(RoundTrip(t_ns=script.at(100), rtt_ns=3 * MS))
    return script.add(LoopLag(t_ns=script.at(2010), window_ns=50 * MS, max_lag_ns=1_234_567))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(-(10**12), 10**15))
def test_another_time_gives_the_same_rows(tmp_path_factory: pytest.TempPathFactory, shift_ns: int):
    plain = rich().rows(tmp_path_factory.mktemp("a"), queries=("q0", "q1"))
    assert rich().shifted(shift_ns).rows(tmp_path_factory.mktemp("b"), queries=("q0", "q1")) == plain


def test_the_rich_session_has_what_it_says(tmp_path: Path):
    first, second = rich().rows(tmp_path, queries=("q0", "q1"))
    assert (first["early"], first["late_packets"], first["stalls"]) == (1, 1, 1)
    assert second["barge_in_stop_ms"] == 111.111


@pytest.mark.parametrize("pad_ms", [20, 500, 1234.5])
def test_silence_before_the_query_changes_no_latency(tmp_path: Path, pad_ms: float):
    plain = vad_turn().row(tmp_path / "a")
    script = Script()
    script.base_ns -= round(pad_ms * MS)
    # The stream starts earlier by the pad and every sample number is larger by it; all instants stay.
    script.stream().turn(0, 300 + pad_ms, 1000 + pad_ms, clip_ms=(0, 1200 + pad_ms)).send(0, pad_ms)
    script.send(pad_ms, 1400 + pad_ms).heard_stop(1400 + pad_ms).begin(1401 + pad_ms).text(1500 + pad_ms)
    script.audio(1600 + pad_ms, silence(100)).audio(1610 + pad_ms, tone(200)).audio(1620 + pad_ms, tone(100))
    padded = script.done(1630 + pad_ms).send(1400 + pad_ms, 2000 + pad_ms).ended(1640 + pad_ms).row(tmp_path / "b")
    assert {name: padded[name] for name in LATENCIES} == {name: plain[name] for name in LATENCIES}


def answered(*packets: tuple[float, Any]) -> Script:
    script = Script().stream().turn(0, 300, 1000, clip_ms=(0, 1200)).send(0, 1400).heard_stop(1400).begin(1401)
    script.text(1500)
    for ms, sound in packets:
        script.audio(ms, sound)
    return script.done(1900)


@pytest.mark.parametrize("pad_ms", [1, 35, 800])
def test_silence_at_the_head_of_the_answer_is_leading_silence_and_nothing_else(tmp_path: Path, pad_ms: int):
    head: Callable[[int], Script] = lambda k: answered((1600, silence(50 + k)), (1610, tone(200)))  # noqa: E731
    plain, padded = head(0).row(tmp_path / "a"), head(pad_ms).row(tmp_path / "b")
    assert padded["first_audible_ms"] == plain["first_audible_ms"] + pad_ms
    assert padded["leading_silence_ms"] == plain["leading_silence_ms"] + pad_ms
    for name in ("ttft_ms", "first_packet_ms", "endpoint_ms", "think_ms", "generation_s"):
        assert padded[name] == plain[name]


@pytest.mark.parametrize("pad_ms", [1, 35, 800])
def test_silence_after_the_answer_changes_no_latency(tmp_path: Path, pad_ms: int):
    plain = answered((1600, tone(200)), (1610, tone(100))).row(tmp_path / "a")
    padded = answered((1600, tone(200)), (1610, tone(100)), (1610, silence(pad_ms))).row(tmp_path / "b")
    for name in ("ttft_ms", "first_packet_ms", "first_audible_ms", "endpoint_ms", "think_ms", "generation_s"):
        assert padded[name] == plain[name]


def test_splitting_a_packet_changes_nothing_but_the_lead(tmp_path: Path):
    whole = answered((1600, silence(100)), (1610, tone(400))).row(tmp_path / "a")
    parts = answered((1600, silence(100)), (1610, tone(400)[:3331]), (1610, tone(400)[3331:])).row(tmp_path / "b")
    for name in LATENCIES:
        if name not in ("buffer_lead_ms", "anchors"):
            assert parts[name] == whole[name], name
