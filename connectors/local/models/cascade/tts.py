"""The cascade's voice: what any of them is, which one a line such as `kokoro` names, and Kokoro itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Literal, Protocol

import msgspec
import numpy as np

from harness.core.audio import Float32
from harness.core.errors import ConfigError, nearest
from harness.engines import store
from harness.engines.pinned import KOKORO_VOICES
from harness.engines.resample import resample
from harness.engines.tts import KokoroSynthesizer
from harness.engines.weights import sha256_of

RATE_HZ = 24_000
"""Of all that the cascade says; voices of other rates are resampled."""
Language = Literal["en", "zh"]


class Voice(Protocol):
    """Speaks clause by clause. facts: as of `LanguageModel`."""

    @property
    def facts(self) -> dict[str, Any]: ...

    def load(self) -> None:
        """Bring the weights in, once. Raises PrerequisiteError or ConfigError."""
        ...

    def speak(self, text: str, language: Language, voice: str | None, stop: threading.Event) -> Iterator[Float32]:
        """One clause in packets: float32 in [-1, 1), shape (n,), at 24 kHz; nothing for what cannot be spoken. voice:
        asked for by the session (None, or one that it has not: its own). Blocks; one clause at a time."""
        ...


class TtsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """spec: `kokoro[:MODEL]`, `transformers:MODEL`, `cosyvoice2:FOLDER`, or the base URL of an OpenAI-compatible API.

    model, key_env, rate_hz: of an endpoint (rate: where it sends no WAV). voice: its default, one for each language
    with a comma. prompt_audio, prompt_text: what CosyVoice clones.
    """

    spec: str
    model: str = ""
    voice: str = ""
    key_env: str = ""
    rate_hz: int = RATE_HZ
    prompt_audio: str = ""
    prompt_text: str = ""
    device: str = "auto"
    threads: int = 1


KINDS = ("kokoro", "transformers", "cosyvoice2", "http://…", "https://…")


def make_voice(options: TtsOptions) -> Voice:
    """The voice of `options`, not loaded. Raises ConfigError or PrerequisiteError."""
    kind, _, model = options.spec.partition(":")
    if kind in ("http", "https"):
        from connectors.local.models.cascade.tts_endpoint import EndpointVoice

        return EndpointVoice(options)
    if kind == "kokoro":
        return Kokoro(options, model)
    if kind == "transformers" and model:
        from connectors.local.models.cascade.tts_transformers import TransformersVoice

        return TransformersVoice(options, model)
    if kind == "cosyvoice2" and model:
        from connectors.local.models.cascade.tts_cosyvoice import CosyVoice2

        return CosyVoice2(options, model)
    if kind in KINDS:
        raise ConfigError(f"tts={kind}: needs a model, tts={kind}:FOLDER or a hub id")
    raise ConfigError(f"tts={options.spec}: no such voice; {nearest(kind, KINDS)}")


def at_rate(samples: Float32, rate_hz: int) -> Float32:
    """`samples` at the cascade's rate, clipped to [-1, 1]."""
    return np.clip(resample(samples, rate_hz, RATE_HZ), -1.0, 1.0)


class Kokoro:
    """Kokoro-82M on onnxruntime; a clause is one packet, since the network makes it in one piece."""

    def __init__(self, options: TtsOptions, model: str) -> None:
        self._threads = options.threads
        self._model = model or KokoroSynthesizer.name
        self._voices: dict[Language, str] = {"en": "af_heart", "zh": "zf_xiaoxiao"}
        for voice in filter(None, options.voice.split(",")):
            self._voices[_language(voice)] = voice
        self._kokoro: KokoroSynthesizer | None = None

    @property
    def facts(self) -> dict[str, Any]:
        folder = store.resolve(self._model)
        return {"tts": f"{self._model} (onnxruntime)", "tts_sha256": sha256_of([folder / "kokoro.onnx"])}

    def load(self) -> None:
        self._kokoro = KokoroSynthesizer(self._model, threads=self._threads)
        # Phonemizers load with the first words; a voice that does not exist is found out here.
        self._kokoro.speak("Ready.", self._voices["en"], "en")
        self._kokoro.speak("好。", self._voices["zh"], "zh")

    def speak(self, text: str, language: Language, voice: str | None, stop: threading.Event) -> Iterator[Float32]:
        assert self._kokoro is not None
        asked = voice if voice in KOKORO_VOICES and _language(voice) == language else None
        try:
            speech = self._kokoro.speak(text, asked or self._voices[language], language)
        except ConfigError:  # no sound stands for any of it: a row of foreign letters
            return
        yield at_rate(speech.samples, speech.rate_hz)


def _language(voice: str) -> Language:
    return "zh" if voice.startswith("z") else "en"
