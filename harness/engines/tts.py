"""Speech synthesis: the `Synthesizer` interface and Kokoro-82M on onnxruntime (extra `tts`)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from harness.core.audio import Float32
from harness.core.errors import ConfigError, nearest
from harness.engines import store
from harness.engines.extras import require
from harness.engines.pinned import KOKORO, KOKORO_VOICES

KOKORO_RATE_HZ = 24_000
_STYLE_SHAPE = (-1, 1, 256)
_MAX_TOKENS = 510
"""Rows of a voice file, one per utterance length in tokens."""

_SENTENCE = re.compile(r"(?<=[.!?。！？])\s*")
_ESPEAK_LANGUAGE = {"a": "en-us", "b": "en-gb"}
_ESPEAK_TO_KOKORO = str.maketrans({"r": "ɹ", "x": "k", "ɬ": "l", "ʲ": "j"})
"""espeak symbols that stand for sounds which Kokoro's English voices know under another symbol."""


class Speech(NamedTuple):
    """Synthesised audio: float32 mono in [-1, 1], shape (n,), at `rate_hz`."""

    samples: Float32
    rate_hz: int


class Synthesizer(Protocol):
    """Turns text into speech."""

    @property
    def name(self) -> str:
        """Model and version, for provenance."""

    def speak(self, text: str, voice: str, language: str) -> Speech:
        """Speak `text` (language `en` or `zh`). Raises ConfigError for an unknown voice or language."""


class KokoroSynthesizer:
    """Kokoro-82M v1.0, int8 ONNX, on the CPU; the same text, voice and machine give the same samples.

    model: name of the pinned model, or a local folder laid out like it (`harness.engines.pinned.KOKORO`).
    English goes through espeak-ng's phonemes, Mandarin through misaki. Raises PrerequisiteError when the packages of
    the extra `tts` or the weights are missing.
    """

    name = KOKORO.name

    def __init__(self, model: str = KOKORO.name, *, threads: int = 1) -> None:
        onnxruntime = require("onnxruntime", "tts")
        folder = store.resolve_with(model, ("kokoro.onnx", "vocab.json", "voices.bin"))
        options = onnxruntime.SessionOptions()
        # One thread by default: several add up partial sums in an order that changes from run to run.
        options.intra_op_num_threads = threads
        self._session: Any = onnxruntime.InferenceSession(
            str(folder / "kokoro.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self._vocabulary: dict[str, int] = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))["vocab"]
        styles = np.fromfile(folder / "voices.bin", dtype="<f4").reshape(len(KOKORO_VOICES), *_STYLE_SHAPE)
        self._styles = dict(zip(KOKORO_VOICES, styles, strict=True))
        self._phonemizers: dict[str, Callable[[str], str]] = {}

    def speak(self, text: str, voice: str, language: str) -> Speech:
        """Speak `text`; long texts are cut at sentence ends, at most 510 phonemes a sentence."""
        if voice not in self._styles:
            raise ConfigError(f"no such voice: {voice}; {nearest(voice, self._styles)}")
        if language not in ("en", "zh") or (language == "zh") != voice.startswith("z"):
            raise ConfigError(f"voice {voice} does not speak {language!r}")
        phonemize = self._phonemizer(voice[0])
        sentences = [sentence for sentence in _SENTENCE.split(text.strip()) if sentence]
        pieces = [self._infer(phonemize(sentence), self._styles[voice]) for sentence in sentences]
        if not pieces:
            raise ConfigError("nothing to speak: the text is empty")
        return Speech(np.concatenate(pieces), KOKORO_RATE_HZ)

    def _infer(self, phonemes: str, style: Float32) -> Float32:
        ids = [self._vocabulary[symbol] for symbol in phonemes if symbol in self._vocabulary]
        if not 0 < len(ids) < _MAX_TOKENS:
            raise ConfigError(f"a sentence of {len(ids)} phonemes cannot be spoken (1 to {_MAX_TOKENS - 1})")
        inputs = {
            "tokens": np.array([[0, *ids, 0]], dtype=np.int64),
            "style": style[len(ids)],
            "speed": np.array([1.0], dtype=np.float32),
        }
        return np.asarray(self._session.run(None, inputs)[0], dtype=np.float32).ravel()

    def _phonemizer(self, accent: str) -> Callable[[str], str]:
        if accent not in self._phonemizers:
            self._phonemizers[accent] = _mandarin() if accent == "z" else _english(_ESPEAK_LANGUAGE[accent])
        return self._phonemizers[accent]


def _english(espeak_language: str) -> Callable[[str], str]:
    wrapper = require("phonemizer.backend.espeak.wrapper", "tts").EspeakWrapper
    loader = require("espeakng_loader", "tts")
    wrapper.set_library(loader.get_library_path())
    wrapper.set_data_path(loader.get_data_path())
    backend = require("phonemizer.backend", "tts").EspeakBackend(
        espeak_language, preserve_punctuation=True, with_stress=True
    )
    return lambda text: str(backend.phonemize([text], strip=True)[0]).translate(_ESPEAK_TO_KOKORO)


def _mandarin() -> Callable[[str], str]:
    require("jieba", "tts").setLogLevel("WARNING")
    phonemize = require("misaki.zh", "tts").ZHG2P()
    return lambda text: str(phonemize(text)[0])
