"""Sample to instant: exact segments, and anchors with a drifting clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.events import MediaAnchor
from harness.core.scorer import Unscored
from scoring.timing.timeline import Instant, Point, Timeline
from tests.scoring.timing.recordings import MS, Script, header, tone

pytestmark = pytest.mark.unit


def ms(point: Point) -> float:
    assert isinstance(point, Instant)
    return (point.t_ns - Script().base_ns) / MS


def test_one_segment(tmp_path: Path):
    timeline = Timeline(Script().stream(5, sample_ms=0).write(tmp_path))
    assert ms(timeline.start_of(0)) == 5
    assert ms(timeline.start_of(24_000)) == 1005
    assert timeline.origin_ns == Script().at(5)


def test_an_end_lies_in_the_segment_of_the_sample_before_it(tmp_path: Path):
    timeline = Timeline(Script().stream().stop(1000, 1000).stream(9000, sample_ms=1000).write(tmp_path))
    assert ms(timeline.end_of(24_000)) == 1000
    assert ms(timeline.start_of(24_000)) == 9000
    assert ms(timeline.segment_start(24_001)) == 9000


def test_what_was_never_streamed_has_no_instant(tmp_path: Path):
    timeline = Timeline(Script().stream().stop(1000, 1000).write(tmp_path))
    assert timeline.start_of(24_000) == Unscored(reason="the stream stopped before this sample")
    assert isinstance(timeline.end_of(24_001), Unscored)
    assert ms(timeline.end_of(24_000)) == 1000


def test_no_stream(tmp_path: Path):
    timeline = Timeline(Script().write(tmp_path))
    assert timeline.start_of(0) == Unscored(reason="no user audio was streamed")
    assert timeline.origin_ns is None


def test_periods_that_are_no_whole_ns_round_up(tmp_path: Path):
    timeline = Timeline(Script(rate_hz=44_100).stream().write(tmp_path))
    point = timeline.start_of(1)
    assert isinstance(point, Instant)
    assert point.t_ns - Script().base_ns == 22_676  # 22675.7...


def live(tmp_path: Path, anchors: list[tuple[int, float]]) -> Timeline:
    script = Script()
    for sample, t_ms in anchors:
        script.add(MediaAnchor(t_ns=script.at(t_ms), side="user", sample=sample, source="alsa"))
    script.add(MediaAnchor(t_ns=script.at(1), side="agent", sample=777))
    return Timeline(script.write(tmp_path, header(mode="none")))


def test_anchors_are_linear_in_between(tmp_path: Path):
    # A sound card that is 1 % slow: 24,000 samples take 1010 ms.
    timeline = live(tmp_path, [(0, 100), (24_000, 1110), (48_000, 2120)])
    assert ms(timeline.start_of(12_000)) == 605
    assert ms(timeline.start_of(36_000)) == 1615
    assert ms(timeline.end_of(24_000)) == 1110


def test_outside_the_anchors_the_nominal_rate_holds(tmp_path: Path):
    timeline = live(tmp_path, [(24_000, 1110), (48_000, 2120)])
    assert ms(timeline.start_of(0)) == 110
    assert ms(timeline.start_of(72_000)) == 3120
    assert timeline.origin_ns == Script().at(110)


def test_a_stream_that_stopped_and_went_on_ends_where_it_stopped(tmp_path: Path):
    # Push-to-talk: let go after a second, pressed again five seconds later; both anchors are of the same sample.
    timeline = live(tmp_path, [(0, 100), (24_000, 1100), (24_000, 6100), (48_000, 7100)])
    assert ms(timeline.end_of(24_000)) == 1100
    assert ms(timeline.start_of(24_000)) == 6100
    assert ms(timeline.start_of(36_000)) == 6600


def test_a_drift_of_100_ppm_is_followed_for_half_an_hour(tmp_path: Path):
    timeline = live(tmp_path, [(second * 24_000, second * 1000.1) for second in range(0, 1801, 10)])
    assert ms(timeline.start_of(1795 * 24_000)) == pytest.approx(1795 * 1000.1)


def test_a_live_turn_is_scored_on_its_anchors(tmp_path: Path):
    script = Script()
    for sample, t_ms in ((0, 0), (24_000, 1010), (48_000, 2020)):
        script.add(MediaAnchor(t_ns=script.at(t_ms), side="user", sample=sample))
    script.turn(0, 300, 1000, clip_ms=(0, 1200)).heard_stop(1400).begin(1401).audio(1600, tone(200)).done(1610)
    row = script.row(tmp_path)
    assert (row["status"], row["first_audible_ms"], row["endpoint_ms"]) == ("ok", 590.0, 390.0)
    assert row["reasons"]["first_packet_ms"] == "no sends were recorded"
