"""Kokoro and Whisper with their real weights: what is said is what is heard."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from harness.core.errors import ConfigError
from harness.engines import store
from harness.engines.asr import FasterWhisper
from harness.engines.tts import KOKORO_RATE_HZ, KokoroSynthesizer

pytestmark = [pytest.mark.models, pytest.mark.filterwarnings("ignore")]
# Third-party warnings (jieba, misaki) are not this project's to fix, hence "ignore".


def need(model: str, *modules: str) -> None:
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    if not store.is_cached(model):
        pytest.skip(f"weights not cached: {model}")


@pytest.fixture(scope="module")
def kokoro() -> KokoroSynthesizer:
    need("kokoro-82m-int8", "onnxruntime", "misaki", "phonemizer", "espeakng_loader")
    return KokoroSynthesizer()


@pytest.fixture(scope="module")
def whisper() -> FasterWhisper:
    need("whisper-base", "faster_whisper", "zhconv")
    return FasterWhisper(word_times=True)


@pytest.mark.parametrize(
    ("text", "voice", "language"),
    [
        ("How many bones are there in the human body?", "af_heart", "en"),
        ("请问明天北京的天气怎么样？", "zf_xiaoxiao", "zh"),
    ],
)
def test_round_trip(kokoro: KokoroSynthesizer, whisper: FasterWhisper, text: str, voice: str, language: str) -> None:
    samples, rate_hz = kokoro.speak(text, voice, language)
    assert rate_hz == KOKORO_RATE_HZ
    assert samples.dtype == np.float32
    heard = whisper.transcribe(samples, rate_hz, language)
    assert [c for c in heard.text.lower() if c.isalnum()] == [c for c in text.lower() if c.isalnum()]
    assert heard.words
    assert 0 <= heard.words[0].start_sample < heard.words[-1].end_sample <= len(samples) + rate_hz
    assert heard.model.startswith("whisper-base")


def test_speech_is_deterministic(kokoro: KokoroSynthesizer) -> None:
    first = kokoro.speak("Good morning.", "bm_george", "en")
    assert np.array_equal(first.samples, kokoro.speak("Good morning.", "bm_george", "en").samples)


@pytest.mark.parametrize(
    ("text", "voice", "language", "reason"),
    [
        ("Hello.", "af_hart", "en", "did you mean af_heart"),
        ("Hello.", "zf_xiaoyi", "en", "does not speak 'en'"),
        ("Hallo.", "af_heart", "de", "does not speak 'de'"),
        ("  ", "af_heart", "en", "the text is empty"),
        ("very " * 300, "af_heart", "en", "phonemes cannot be spoken"),
    ],
)
def test_bad_requests(kokoro: KokoroSynthesizer, text: str, voice: str, language: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        kokoro.speak(text, voice, language)


def test_unknown_language(whisper: FasterWhisper) -> None:
    with pytest.raises(ConfigError, match="knows no language 'xx'"):
        whisper.transcribe(np.zeros(16_000, np.float32), 16_000, "xx")
