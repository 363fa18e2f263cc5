"""Lag and missed units of a peer that is clocked by its input, computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.audio import int16_to_pcm16
from harness.core.events import AudioReceived, AudioSent
from harness.core.profile import Profile
from tests.scoring.timing.recordings import Script, silence, tone, vad_turn

pytestmark = pytest.mark.unit
UNIT_MS = 80
CLOCKED = Profile(pacing="input_clocked", turns=("vad",), continuous=True, unit_ms=UNIT_MS, unit_delay=1, text="none")
SENT_MS = 0.15
"""In `Script.send`: a chunk leaves 0.1 ms after its last sample and is written 0.05 ms later."""


def spoken(end_ms: int = 1_200, chunk_ms: int = UNIT_MS) -> Script:
    """One turn whose speech ends at 1 s; the user's stream is sent until `end_ms`."""
    script = Script().connected().stream().turn(0, 300, 1_000, clip_ms=(0, 1_100))
    return script.send(0, end_ms, chunk_ms=chunk_ms)


def give(script: Script, lags_ms: list[float], first: int = 1, parts: int = 1) -> Script:
    """The output for input unit `first` and those after it, `lags_ms` after each was sent; quiet sound."""
    for unit, lag_ms in enumerate(lags_ms, first):
        for part in range(parts):
            # The parts of a unit come 2 ms apart, the last one at the unit's lag.
            at_ms = (unit + 1) * UNIT_MS + SENT_MS + lag_ms - 2 * (parts - 1 - part)
            script.audio(at_ms, silence(UNIT_MS / parts), response="")
    return script


def row(tmp_path: Path, script: Script, **profile: Any) -> dict[str, Any]:
    return script.row(tmp_path, profile=msgspec.structs.replace(CLOCKED, **profile))


def figures(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("unit_lag_ms", "unit_lag_p99_ms", "unit_misses", "unit_miss_rate"))


def test_each_unit_is_timed_against_the_one_that_it_answers(tmp_path: Path) -> None:
    # 1,200 ms are 15 units; the first has no output.
    assert figures(row(tmp_path, give(spoken(), [30.0] * 14))) == (30.0, 30.0, 0, 0.0)


def test_median_and_p99_are_linear(tmp_path: Path) -> None:
    lags = [10.0, 20.0, 30.0, 60.0]
    # p99 of four: 30 + (60 - 30) * 0.97.
    assert figures(row(tmp_path, give(spoken(400), lags))) == (25.0, 59.1, 0, 0.0)


@pytest.mark.parametrize(("lag_ms", "missed"), [(79.999, 0), (80.0, 0), (80.001, 1)])
def test_a_miss_is_a_lag_of_more_than_a_unit(tmp_path: Path, lag_ms: float, missed: int) -> None:
    found = row(tmp_path, give(spoken(), [30.0] * 13 + [lag_ms]))
    assert found["unit_misses"] == missed
    assert found["unit_miss_rate"] == round(missed / 14, 6)


@pytest.mark.parametrize(("chunk_ms", "lag_ms", "missed"), [(20, 89.925, 2), (40, 89.925, 2), (100, 39.925, 0)])
def test_a_unit_is_sent_with_the_chunk_that_holds_its_end(
    tmp_path: Path, chunk_ms: int, lag_ms: float, missed: int
) -> None:
    script = spoken(400, chunk_ms)
    for at_ms in (240.15, 340, 430, 480):
        script.audio(at_ms, silence(UNIT_MS), response="")
    # Units 1 to 4 end at 160, 240, 320 and 400 ms. Chunks of 20 or 40 ms end there too: lags of 80, 99.85, 109.85 and
    # 79.85 ms. Chunks of 100 ms leave at 200, 300, 400 and 400 ms: 40, 39.85, 29.85 and 79.85.
    found = row(tmp_path, script)
    assert (found["unit_lag_ms"], found["unit_misses"]) == (lag_ms, missed)


def test_a_unit_in_pieces_is_done_with_its_last(tmp_path: Path) -> None:
    assert figures(row(tmp_path, give(spoken(), [30.0] * 14, parts=4)))[:2] == (30.0, 30.0)


def test_pre_skip_counts_as_output(tmp_path: Path) -> None:
    """A peer that declares 80 ms of pre-skip spends its first unit on it: nothing moves by a unit."""
    script = spoken()
    script.add(AudioReceived(t_ns=script.at(160.15 + 30), samples=0, skipped=1_920, rate_hz=24_000))
    script.add(
        AudioReceived(
            t_ns=script.at(240.15 + 30),
            samples=1_904,
            skipped=16,
            rate_hz=24_000,
            pcm=int16_to_pcm16(silence(UNIT_MS)[16:]),
        )
    )
    assert figures(row(tmp_path, give(script, [30.0] * 12, first=3))) == (30.0, 30.0, 0, 0.0)


def test_a_unit_that_was_never_done_is_missed(tmp_path: Path) -> None:
    # Units 1 to 4 are done; of 5 to 14 those sent by 1,120.15 ms had more than a unit left until the end at 1,200.15.
    assert figures(row(tmp_path, give(spoken(), [30.0] * 4))) == (30.0, 30.0, 8, round(8 / 12, 6))


def test_no_output_at_all(tmp_path: Path) -> None:
    found = row(tmp_path, spoken())
    assert (found["unit_lag_ms"], found["unit_misses"]) == (None, 12)
    assert found["reasons"]["unit_lag_ms"] == "no unit was ever done"


def test_a_lost_chunk_ends_the_count(tmp_path: Path) -> None:
    script = give(spoken(), [30.0] * 4)
    lost = [e for e in script.events if isinstance(e, AudioSent) and e.sample >= 5 * 1_920]
    script.events = [msgspec.structs.replace(e, lost=True) if e in lost else e for e in script.events]
    assert figures(row(tmp_path, script))[2:] == (0, 0.0)


def test_output_ahead_of_its_input_shows_that_the_profile_is_wrong(tmp_path: Path) -> None:
    found = row(tmp_path, give(spoken(), [30.0] * 14), unit_delay=3)
    assert figures(found) == (None, None, None, None)
    assert "not clocked in these units" in found["reasons"]["unit_misses"]


def test_units_belong_to_the_turn_in_which_they_were_sent(tmp_path: Path) -> None:
    script = Script().connected().stream().turn(0, 300, 700, clip_ms=(0, 800)).send(0, 2_400, chunk_ms=UNIT_MS)
    script.turn(1, 1_700, 2_200, t_ms=1_590, clip_ms=(1_600, 2_400))
    script = give(script, [20.0] * 19 + [90.0] * 10)  # from unit 20 (1,600-1,680 ms) on: too slow
    first, second = script.rows(tmp_path, profile=CLOCKED, queries=("q0", "q1"))
    assert figures(first) == (20.0, 20.0, 0, 0.0)
    assert figures(second) == (90.0, 90.0, 10, 1.0)


def test_other_peers_have_no_units(tmp_path: Path) -> None:
    found = vad_turn().row(tmp_path)
    assert figures(found) == (None, None, None, None)
    assert {"unit_lag_ms", "unit_miss_rate"} <= set(found["undefined"])
    assert found["reasons"]["unit_misses"] == "the peer works in no units of its own"


def test_another_time_of_day_changes_nothing(tmp_path: Path) -> None:
    script = give(spoken(), [30.0 + unit for unit in range(14)])
    here, there = row(tmp_path / "a", script), row(tmp_path / "b", script.shifted(987_654_321_012_345))
    assert figures(here) == figures(there)


def test_the_profile_moves_the_anchor_packet_by_the_look_ahead(tmp_path: Path) -> None:
    script = Script().connected().stream().turn(0, 300, 960, clip_ms=(0, 1_000)).send(0, 1_600, chunk_ms=UNIT_MS)
    script.text(1_500, "word", response="").audio(1_500, tone(80), response="")
    # 960 ms end a chunk: with 60 samples (2.5 ms) more, the last of the speech leaves with the next one.
    assert row(tmp_path / "a", script)["ttft_ms"] is None  # the profile has no text
    plain = row(tmp_path / "b", script, text="with_audio")
    ahead = row(tmp_path / "c", script, text="with_audio", encoder_lookahead_samples=60)
    assert plain["ttft_ms"] - ahead["ttft_ms"] == UNIT_MS
