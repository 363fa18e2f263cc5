"""CosyVoice2 as the voice, by its own repository's package `cosyvoice` (on no package index: put it on PYTHONPATH)."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import soundfile

from connectors.local.models.cascade.tts import Language, TtsOptions, at_rate
from harness.core.audio import Float32
from harness.core.errors import ConfigError, PrerequisiteError
from harness.engines.extras import require
from harness.engines.resample import resample

PROMPT_RATE_HZ = 16_000


class CosyVoice2:
    """Zero-shot: speaks with the voice of `prompt_audio`, whose words are `prompt_text`; a stream of packets."""

    def __init__(self, options: TtsOptions, folder: str) -> None:
        if not (options.prompt_audio and options.prompt_text):
            raise ConfigError(
                "tts=cosyvoice2 needs a voice to clone: --set tts_prompt_audio=WAV --set tts_prompt_text=…"
            )
        self._options = options
        self._folder = folder
        self._model: Any = None
        self._prompt: Any = None

    @property
    def facts(self) -> dict[str, Any]:
        return {"tts": f"CosyVoice2 ({self._folder})"}

    def load(self) -> None:
        try:
            module = importlib.import_module("cosyvoice.cli.cosyvoice")
        except ImportError as exc:
            message = f"tts=cosyvoice2: {exc.name or 'cosyvoice'} is missing: clone FunAudioLLM/CosyVoice, install its"
            raise PrerequisiteError(
                f"{message} requirements, and put it and its third_party/Matcha-TTS on PYTHONPATH"
            ) from exc
        try:
            sound, rate_hz = soundfile.read(self._options.prompt_audio, dtype="float32", always_2d=True)
        except (OSError, soundfile.LibsndfileError) as exc:
            raise ConfigError(f"tts_prompt_audio={self._options.prompt_audio}: {exc}") from exc
        prompt = resample(sound.mean(axis=1), rate_hz, PROMPT_RATE_HZ)
        self._prompt = require("torch", "local").from_numpy(prompt)[None]
        self._model = module.CosyVoice2(self._folder)

    def speak(self, text: str, language: Language, voice: str | None, stop: threading.Event) -> Iterator[Float32]:
        packets = self._model.inference_zero_shot(text, self._options.prompt_text, self._prompt, stream=True)
        for packet in packets:
            if stop.is_set():
                return
            sound = np.asarray(packet["tts_speech"], dtype=np.float32).reshape(-1)
            yield at_rate(sound, int(self._model.sample_rate))
