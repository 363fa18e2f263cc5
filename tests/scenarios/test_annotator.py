"""Annotator v1: its rule on signals whose truth is known, and its cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.core.audio import Int16, int16_to_float, ms_to_samples, window_power
from harness.core.errors import ConfigError
from harness.engines.vad import Span, speech_spans
from scenarios import annotator
from scenarios.annotator import BELOW_LOUDEST_DB, FLOOR_DB, annotate, annotate_cached, annotator_name
from scenarios.pack import load_pack

pytestmark = pytest.mark.unit

RATE = 24_000
MS = RATE // 1000


@pytest.mark.parametrize("shift_ms", [1, 17, 250, 1_000])
def test_silence_in_front_shifts_the_marks_by_as_much(speech: Int16, shift_ms: int) -> None:
    marks = annotate(speech, RATE)
    shifted = annotate(np.pad(speech, (shift_ms * MS, 0)), RATE)
    assert shifted == (marks.speech_start + shift_ms * MS, marks.speech_end + shift_ms * MS)


@pytest.mark.parametrize("tail_ms", [1, 300, 2_000])
def test_silence_behind_changes_nothing(speech: Int16, tail_ms: int) -> None:
    assert annotate(np.pad(speech, (0, tail_ms * MS)), RATE) == annotate(speech, RATE)


def test_half_the_level_moves_the_marks_only_where_the_floor_rules(speech: Int16) -> None:
    marks, quiet = annotate(speech, RATE), annotate((speech // 2).astype(np.int16), RATE)
    assert abs(quiet.speech_start - marks.speech_start) <= 5 * MS
    assert abs(quiet.speech_end - marks.speech_end) <= 5 * MS


def test_the_rule_by_an_independent_count(speech: Int16) -> None:
    """The last loud window within reach, found by a plain loop over the clip."""
    marks = annotate(speech, RATE)
    spans = speech_spans(int16_to_float(speech), RATE)
    x = speech.astype(np.float64) / 32768

    def level_db(start: int) -> float:
        return 10 * np.log10(max(float(np.mean(x[start : start + 10 * MS] ** 2)), 1e-12))

    starts = range(0, len(x) - 10 * MS + 1, MS)
    levels = {start: level_db(start) for start in starts}
    bound = max(FLOOR_DB, max(levels.values()) - BELOW_LOUDEST_DB)
    ends = [s + 10 * MS for s in starts if levels[s] >= bound and abs(s + 10 * MS - spans[-1].end) <= 100 * MS]
    begins = [s for s in starts if levels[s] >= bound and abs(s - spans[0].start) <= 100 * MS]
    assert marks == (begins[0], ends[-1])


def test_a_click_far_from_speech_is_not_its_end(speech: Int16) -> None:
    marks = annotate(speech, RATE)
    longer = np.pad(speech, (0, 2 * RATE))
    longer[-RATE : -RATE + 5 * MS] = 8_000
    assert annotate(longer, RATE) == marks


@pytest.mark.parametrize(
    ("spans", "expected_ms"),
    [
        ([Span(0, 500)], (0, 500)),
        ([Span(60, 560)], (0, 500)),
        ([Span(0, 590)], (0, 500)),
        ([Span(0, 350)], (0, 450)),
        ([Span(0, 900)], (0, 500)),
        ([Span(120, 800)], (20, 500)),
        ([Span(0, 200), Span(300, 520)], (0, 500)),
        ([Span(620, 900)], (620, 900)),
    ],
    ids=["exact", "late", "within reach", "too short", "overstayed", "both", "last span counts", "nothing loud"],
)
def test_where_the_marks_fall_for_given_spans(
    spans: list[Span], expected_ms: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tone of 500 ms in 1.5 s of silence, Silero's spans (here in ms after the tone's start) made up."""
    lead = 300
    tone = 10_000 * np.sin(2 * np.pi * 1_000 * np.arange(500 * MS) / RATE)
    samples = np.pad(tone.astype(np.int16), (lead * MS, 700 * MS))
    given = [Span((span.start + lead) * MS, (span.end + lead) * MS) for span in spans]
    monkeypatch.setattr(annotator, "speech_spans", lambda signal, rate_hz: given)
    # A window that holds 1 ms of the tone is loud already, so a mark stands up to 9 ms outside the tone.
    start, end = annotate(samples, RATE)
    assert 0 <= expected_ms[0] + lead - start / MS <= 9
    assert 0 <= end / MS - lead - expected_ms[1] <= 9


def test_every_bundled_query_ends_in_a_loud_window() -> None:
    for clip in load_pack("queries").clips:
        window = ms_to_samples(10, clip.rate_hz)
        power = window_power(clip.samples[clip.speech_end - window : clip.speech_end], window, 1)
        assert 10 * np.log10(power[0]) >= FLOOR_DB, clip.id


@pytest.mark.parametrize("samples", [np.zeros(0, np.int16), np.zeros(10, np.int16), np.zeros(RATE, np.int16)])
def test_nothing_to_time(samples: Int16) -> None:
    with pytest.raises(ConfigError, match=r"^no speech to time"):
        annotate(samples, RATE)


def test_name_tells_version_and_engine() -> None:
    assert annotator_name().startswith("silero-rms v1 (silero-")


def test_cache_is_used_and_mended(speech: Int16, private_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = annotate_cached(speech, RATE)
    files = [path for path in private_cache.rglob("*") if path.is_file()]
    assert len(files) == 1

    def never(samples: Int16, rate_hz: int) -> None:
        raise AssertionError("computed again")

    with monkeypatch.context() as patch:
        patch.setattr(annotator, "annotate", never)
        assert annotate_cached(speech, RATE) == first
        with pytest.raises(AssertionError, match="computed again"):
            annotate_cached(speech, 16_000)
    files[0].write_bytes(b"{broken")
    assert annotate_cached(speech, RATE) == first
    assert files[0].read_bytes() != b"{broken"


def test_a_new_version_does_not_read_old_annotations(
    speech: Int16, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    annotate_cached(speech, RATE)
    monkeypatch.setattr(annotator, "VERSION", 2)
    annotate_cached(speech, RATE)
    assert len([path for path in private_cache.rglob("*") if path.is_file()]) == 2


def test_a_cache_that_cannot_be_written_costs_nothing(
    speech: Int16, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("FIRSTPACKET_CACHE", str(tmp_path / "file"))
    assert annotate_cached(speech, RATE) == annotate(speech, RATE)
