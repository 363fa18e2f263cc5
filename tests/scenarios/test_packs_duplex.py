"""The duplex packs: both languages, every category, clips with their marks, scenarios that name only what is there."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from harness.core.audio import audio_sha256, float_to_int16, samples_to_ns
from harness.engines.vad import speech_spans
from scenarios.annotator import annotate
from scenarios.clip import Clip
from scenarios.compiler import compile_script
from scenarios.pack import MANIFEST, ManifestRow, load_pack, read_manifest
from scenarios.packs.make_packs import active_level_power, cut, levelled
from scenarios.packs.noises import make_noise
from scenarios.packs.recipes_duplex import BACKGROUND_DB, DUPLEX, NOISES, PAUSE_MS, NoiseRecipe
from scenarios.scenario import Scenario
from scenarios.scenario_file import check_clips, load_scenarios

pytestmark = pytest.mark.unit

PACKS = Path(__file__).parents[2] / "scenarios" / "packs"
LANGUAGES = ("en", "zh")
RATE = 24_000
CATEGORIES = {
    "smooth_turn_taking",
    "pause_in_turn",
    "user_interruption",
    "user_backchannel",
    "talking_to_other",
    "background_speech",
    "noise",
    "self_correction",
    "long_silence",
    "rapid_second_question",
    "nested_interruption",
}
CLIPS = [clip for language in LANGUAGES for clip in load_pack(f"duplex-{language}").clips]
SPOKEN = [clip for clip in CLIPS if "-noise-" not in clip.id]
NOISY = [clip for clip in CLIPS if "-noise-" in clip.id]


def scenarios(language: str) -> tuple[Scenario, ...]:
    return load_scenarios(PACKS / f"duplex-{language}" / "scenarios")


def rows(language: str) -> list[ManifestRow]:
    return read_manifest(PACKS / f"duplex-{language}" / MANIFEST)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_category_has_its_scenarios(language: str) -> None:
    found = scenarios(language)
    counts = Counter(scenario.category for scenario in found)
    assert set(counts) == CATEGORIES
    assert len(found) >= 20
    assert min(counts.values()) >= 2
    assert {scenario.language for scenario in found} == {language}
    assert all(scenario.title and scenario.id.startswith(f"{language}-") for scenario in found)


def test_both_languages_have_the_same_scenarios() -> None:
    def shape(language: str) -> list[object]:
        return [
            (s.id[3:], s.category, [(e.source, e.clip[3:], e.at, e.delay_ms, e.kind, e.expect) for e in s.events])
            for s in scenarios(language)
        ]

    assert shape("en") == shape("zh")


@pytest.mark.parametrize("language", LANGUAGES)
def test_scenarios_use_every_clip_and_no_other(language: str) -> None:
    known = {clip.id for clip in load_pack(f"duplex-{language}").clips}
    for scenario in scenarios(language):
        check_clips(scenario, known)
    assert {clip for scenario in scenarios(language) for clip in scenario.clips} == known


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_scenario_compiles(language: str) -> None:
    clips = load_pack(f"duplex-{language}").clips
    for scenario in scenarios(language):
        script = compile_script(scenario, clips, rate_hz=RATE, seed=1)
        assert [event.plan for event in script.events] == list(scenario.events)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_expected_fits_the_category(language: str) -> None:
    wanted = {
        "user_interruption": "stop",
        "nested_interruption": "stop",
        "user_backchannel": "keep_talking",
        "smooth_turn_taking": "respond",
        "pause_in_turn": "respond",
    }
    for scenario in scenarios(language):
        if scenario.category in wanted:
            assert scenario.events[-1].expect == wanted[scenario.category], scenario.id
        if scenario.category == "nested_interruption":
            assert [event.expect for event in scenario.events] == ["respond", "stop", "stop"]
        if scenario.category in ("talking_to_other", "noise", "background_speech"):
            assert {event.expect for event in scenario.events} <= {"respond", "keep_talking", "stay_silent"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_manifest_is_the_recipes(language: str) -> None:
    listed = {row.id: row for row in rows(language)}
    for recipe in DUPLEX[language]:
        assert (listed[recipe.id].text, listed[recipe.id].voice) == (recipe.text, recipe.voice)
    assert set(listed) == {recipe.id for recipe in (*DUPLEX[language], *NOISES[language])}
    assert {row.lang for row in listed.values()} == {language}
    assert all("Apache-2.0" in row.licence and row.sha256 for row in listed.values())
    folder = PACKS / f"duplex-{language}"
    assert {row.audio for row in listed.values()} == {path.name for path in folder.glob("*.flac")}
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 3_000_000


@pytest.mark.parametrize("clip", SPOKEN, ids=lambda clip: clip.id)
def test_marks_of_speech_are_the_annotators(clip: Clip) -> None:
    assert (clip.speech_start, clip.speech_end) == annotate(clip.samples, clip.rate_hz)
    assert abs(clip.speech_start - RATE // 5) <= RATE // 50


@pytest.mark.parametrize("clip", NOISY, ids=lambda clip: clip.id)
def test_a_noise_sounds_between_its_marks_alone(clip: Clip) -> None:
    assert clip.speech_start == RATE // 5
    assert len(clip.samples) - clip.speech_end == RATE * 3 // 10
    assert not clip.samples[: clip.speech_start].any()
    assert not clip.samples[clip.speech_end :].any()
    assert clip.samples[clip.speech_start : clip.speech_end].any()


@pytest.mark.parametrize("recipe", NOISES["en"], ids=lambda recipe: recipe.id)
def test_a_noise_comes_from_its_seed(recipe: NoiseRecipe) -> None:
    """Close to the samples in the tree, not equal: FFTs of other machines may differ in the last bit."""
    clip = next(each for each in CLIPS if each.id == recipe.id)
    sound = levelled(make_noise(recipe, RATE), RATE)
    made = float_to_int16(cut(sound, -RATE // 5, len(sound) + RATE * 3 // 10, RATE))
    assert np.abs(made.astype(int) - clip.samples).max() <= 1
    other = NoiseRecipe(id="x", language="en", sound=recipe.sound, seed=recipe.seed + 100, text="")
    assert audio_sha256(float_to_int16(make_noise(other, RATE))) != audio_sha256(
        float_to_int16(make_noise(recipe, RATE))
    )


@pytest.mark.parametrize("clip", [c for c in SPOKEN if "-pause-" in c.id], ids=lambda clip: clip.id)
def test_a_pause_is_as_long_as_promised(clip: Clip) -> None:
    spans = speech_spans(clip.samples.astype(np.float32) / 32768, RATE)
    gaps_ms = [samples_to_ns(b.start - a.end, RATE) / 1e6 for a, b in itertools.pairwise(spans)]
    assert max(gaps_ms) == pytest.approx(PAUSE_MS, abs=200)


def test_background_speech_is_quieter_than_the_user() -> None:
    def level_db(group: str) -> float:
        clips = [clip for clip in SPOKEN if f"-{group}-" in clip.id]
        return float(
            np.mean(
                [10 * np.log10(active_level_power(clip.samples.astype(np.float32) / 32768, RATE)) for clip in clips]
            )
        )

    assert level_db("bg") - level_db("q") == pytest.approx(BACKGROUND_DB, abs=1.5)
