"""Text that is spoken where sound is missing: once, by the voice of its language, and with a reason where it fails."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from harness.core.errors import ConfigError
from harness.engines.tts import Speech
from scenarios.benchmarks.spoken import speak_all, spoken

pytestmark = pytest.mark.unit


class Voice:
    """Says each character as ten samples."""

    name = "voice"

    def __init__(self) -> None:
        self.said: list[tuple[str, str, str]] = []

    def speak(self, text: str, voice: str, language: str) -> Speech:
        if "坏" in text:
            raise ConfigError("a sentence of 999 phonemes cannot be spoken")
        self.said.append((text, voice, language))
        return Speech(np.full(10 * len(text), 0.5, np.float32), 24_000)


def say(voice: Voice, *wanted, steps: list[tuple[int, int]] | None = None) -> dict[Path, str]:
    return speak_all(wanted, lambda: voice, lambda done, total: (steps or []).append((done, total)))


def test_each_text_is_spoken_once() -> None:
    voice, text = Voice(), spoken("你好", "zh")
    assert say(voice, text, text) == {}
    samples, rate_hz = soundfile.read(text.path, dtype="int16")
    assert (len(samples), int(samples[0]), rate_hz) == (20, 16_384, 24_000)

    def none() -> Voice:
        raise AssertionError("nothing is left to speak")

    assert speak_all([text], none, lambda done, total: None) == {}
    assert spoken("你好", "en").path != text.path != spoken("您好", "zh").path


def test_english_words_in_a_mandarin_text_are_said_in_english() -> None:
    voice = Voice()
    say(voice, spoken("我想听 Taylor Swift 的歌，好吗？", "zh"), spoken("Mixed 文字", "en"))
    assert voice.said == [
        ("我想听 ", "zf_xiaoxiao", "zh"),
        ("Taylor Swift", "af_heart", "en"),
        (" 的歌，好吗？", "zf_xiaoxiao", "zh"),
        ("Mixed 文字", "af_heart", "en"),
    ]


def test_what_cannot_be_spoken_is_told_and_the_rest_goes_on() -> None:
    bad, empty, good = spoken("坏", "zh"), spoken("……", "zh"), spoken("好", "zh")
    steps: list[tuple[int, int]] = [(0, 0)]
    assert say(Voice(), bad, empty, good, steps=steps) == {
        bad.path: "could not be spoken: a sentence of 999 phonemes cannot be spoken",
        empty.path: "could not be spoken: the text has no words",
    }
    assert good.path.is_file()
    assert not bad.path.exists()
    assert steps[1:] == [(1, 3), (2, 3), (3, 3)]


def test_voices_follow_each_other_without_a_pause() -> None:
    class Padded(Voice):
        def speak(self, text: str, voice: str, language: str) -> Speech:
            silence = np.zeros(24_000, np.float32)
            return Speech(np.concatenate([silence, super().speak(text, voice, language).samples, silence]), 24_000)

    mixed, plain = spoken("听Swift", "zh"), spoken("你好", "zh")
    say(Padded(), mixed, plain)
    # 10 + 50 samples said, and at most 40 ms (960 samples) of silence before and after each.
    assert soundfile.info(mixed.path).frames == 60 + 4 * 960
    assert soundfile.info(plain.path).frames == 20 + 2 * 24_000
