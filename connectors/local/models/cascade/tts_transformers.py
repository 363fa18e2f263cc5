"""A text-to-speech model in Transformers as the voice, by its pipeline (VITS and MMS, Bark and the like)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from connectors.local.device import Place, place
from connectors.local.facts import model_facts
from connectors.local.models.cascade.tts import Language, TtsOptions, at_rate
from harness.core.audio import Float32
from harness.core.errors import ConfigError
from harness.engines import store
from harness.engines.extras import installed, require

_WANTED = ("*.json", "*.txt", "*.model", "*.safetensors")


class TransformersVoice:
    """model: folder or hub id. One language, the model's own; a clause is one packet."""

    def __init__(self, options: TtsOptions, model: str) -> None:
        self._options = options
        self._name = model
        self._version = installed("transformers", "local")
        self._folder = Path()
        self._at: Place | None = None
        self._pipe: Any = None

    @property
    def facts(self) -> dict[str, Any]:
        assert self._at is not None
        found = model_facts(self._at, weights=self._folder, model=self._pipe.model)
        own = {"tts": f"{self._name} (transformers {self._version})", "tts_sha256": found.get("sha256", "")}
        return own | ({"weights": "random"} if found.get("weights") == "random" else {})

    def load(self) -> None:
        self._folder = store.resolve(self._name, hub_files=_WANTED)
        transformers = require("transformers", "local")
        transformers.utils.logging.set_verbosity_error()
        self._at = place(self._options.device, "float32")
        try:
            self._pipe = transformers.pipeline("text-to-speech", model=str(self._folder), device=self._at.device)
        except (OSError, ValueError, KeyError) as exc:
            raise ConfigError(f"{self._name} is no voice that Transformers can load: {exc}") from exc

    def speak(self, text: str, language: Language, voice: str | None, stop: threading.Event) -> Iterator[Float32]:
        made = self._pipe(text)
        sound = np.asarray(made["audio"], dtype=np.float32).reshape(-1)
        if len(sound):
            yield at_rate(sound, int(made["sampling_rate"]))
