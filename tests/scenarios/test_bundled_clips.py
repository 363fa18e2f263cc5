"""The clips in the tree: whole, annotated, level, and what the recipes say."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import soundfile

from harness.core.audibility import first_audible_sample
from harness.core.audio import Int16
from scenarios.annotator import annotate
from scenarios.clip import Clip
from scenarios.pack import MANIFEST, ManifestRow, load_pack, read_manifest
from scenarios.packs.make_packs import active_level_power, as_answer, as_query, cut, levelled
from scenarios.packs.recipes import ANSWERS, QUERIES, Recipe

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
FOLDERS = {"queries": ROOT / "scenarios" / "packs" / "queries", "answers": ROOT / "connectors" / "agent" / "answers"}
RATE = 24_000
CLIPS = [clip for folder in FOLDERS.values() for clip in load_pack(folder).clips]


def rows(name: str) -> list[ManifestRow]:
    return read_manifest(FOLDERS[name] / MANIFEST)


@pytest.mark.parametrize("clip", CLIPS, ids=lambda clip: clip.id)
def test_marks_are_the_annotators(clip: Clip) -> None:
    assert (clip.speech_start, clip.speech_end) == annotate(clip.samples, clip.rate_hz)


@pytest.mark.parametrize("clip", CLIPS, ids=lambda clip: clip.id)
def test_level_and_format(clip: Clip) -> None:
    samples = clip.samples.astype(np.float32) / 32768
    assert clip.rate_hz == RATE
    assert 20 * math.log10(np.abs(samples).max()) <= -0.99
    assert -21.5 <= 10 * math.log10(active_level_power(samples, RATE)) <= -18.5


@pytest.mark.parametrize(("name", "recipes"), [("queries", QUERIES), ("answers", ANSWERS)])
def test_manifest_is_the_recipes(name: str, recipes: tuple[Recipe, ...]) -> None:
    assert [(row.id, row.text, row.lang, row.voice) for row in rows(name)] == [
        (recipe.id, recipe.text, recipe.language, recipe.voice) for recipe in recipes
    ]
    for row in rows(name):
        assert row.sha256 is not None
        assert "Apache-2.0" in row.licence
        assert soundfile.info(FOLDERS[name] / row.audio).subtype == "PCM_16"
    listed = {row.audio for row in rows(name)}
    assert listed == {path.name for path in FOLDERS[name].glob("*.flac")}


def test_queries_are_as_many_and_as_various_as_promised() -> None:
    listed = rows("queries")
    assert len(listed) >= 24
    assert sum(row.lang == "en" for row in listed) * 2 == len(listed)
    assert len({row.voice for row in listed}) >= 8
    for language in ("en", "zh"):
        assert {row.voice[1] for row in listed if row.lang == language} == {"f", "m"}
        assert sum(recipe.pause_ms > 0 for recipe in QUERIES if recipe.language == language) == 2


def test_queries_have_their_lead_and_tail() -> None:
    for clip in load_pack("queries").clips:
        assert abs(clip.speech_start - RATE // 5) <= RATE // 100, clip.id
        assert abs(len(clip.samples) - clip.speech_end - RATE * 3 // 10) <= RATE // 100, clip.id
        assert 1.5 <= clip.duration_s <= 6.5


def test_answers_begin_at_once() -> None:
    for clip in load_pack(FOLDERS["answers"]).clips:
        assert clip.speech_start <= RATE * 5 // 1000, clip.id
        onset = first_audible_sample(clip.samples, RATE)
        assert onset is not None
        assert onset <= RATE * 5 // 1000, clip.id
        assert 3.0 <= clip.duration_s <= 6.0


def test_all_of_it_is_a_few_megabytes() -> None:
    assert sum(path.stat().st_size for folder in FOLDERS.values() for path in folder.iterdir()) < 5_000_000


@pytest.mark.parametrize("rate_hz", [16_000, 48_000])
def test_marks_of_resampled_clips_are_where_the_annotator_finds_them(rate_hz: int) -> None:
    """Not at 8 kHz: an initial "f" loses the band that made it loud there: marks are mapped, not redone."""
    for clip in CLIPS[::6]:
        out = clip.at_rate(rate_hz)
        found = annotate(out.samples, rate_hz)
        assert abs(found.speech_start - out.speech_start) * 1000 / rate_hz <= 12, clip.id
        assert abs(found.speech_end - out.speech_end) * 1000 / rate_hz <= 12, clip.id


def test_levelling_never_clips_and_cutting_pads_with_silence(speech: Int16) -> None:
    peaky = np.zeros(RATE, np.float32)
    peaky[:2_000:400] = 0.1
    assert np.abs(levelled(peaky, RATE)).max() == pytest.approx(10 ** (-1 / 20), rel=1e-3)
    piece = cut(np.ones(100, np.float32), -50, 150, 1_000)
    assert len(piece) == 200
    assert not piece[:51].any()
    assert not piece[149:].any()
    samples = speech.astype(np.float32) / 32768
    assert first_audible_sample(as_answer(samples, RATE), RATE) in range(5 * RATE // 1000)
    assert abs(annotate(as_query(samples, RATE), RATE).speech_start - RATE // 5) <= RATE // 1000
