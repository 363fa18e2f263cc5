"""Paraformer for Mandarin through funasr (extra `emotion` brings it): an option, not what VocalBench-zh uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from harness.core.errors import ConfigError
from harness.engines import store
from harness.engines.asr import Transcript
from harness.engines.clip_engine import Clip, EngineSpec
from harness.engines.extras import installed
from harness.engines.funasr_model import load_funasr
from harness.engines.resample import resample
from harness.engines.torch_device import torch_device
from harness.engines.weights import fingerprint, label, sha256_of

RATE_HZ = 16_000
HUB_ID = "funasr/paraformer-zh"
_FILES = ("config.yaml", "configuration.json", "model.pt")


class Paraformer:
    """spec.model: a folder as funasr keeps it, or a hub id. Whole clips, no voice detection, no punctuation; Mandarin.
    One clip a pass: padding beside a longer one can add a character (seen).

    Raises ConfigError for another language than `zh`.
    """

    batch = 1

    def __init__(self, spec: EngineSpec) -> None:
        version = installed("funasr", "emotion")
        self._spec = spec
        if spec.language not in (None, "zh"):
            raise ConfigError(f"Paraformer hears Mandarin only, not {spec.language!r}: take a Whisper engine")
        self.device: Literal["cpu", "cuda"] = torch_device(spec, "emotion")
        model = spec.model or HUB_ID
        self._folder = store.resolve_with(model, _FILES)
        self.name = label(f"{model} (funasr {version}, no VAD, no punctuation, no dither)", self._folder)
        files = [path for path in self._folder.iterdir() if path.is_file()]
        self.fingerprint = fingerprint("paraformer", version, installed("torch", "emotion"), sha256_of(files))
        self._model: Any = None

    def load(self) -> None:
        if self._model is not None:
            return
        self._model = load_funasr(self._folder, msgspec.structs.replace(self._spec, device=self.device))
        # funasr adds noise to the sound by default, another at every call.
        self._model.kwargs["frontend"].dither = 0.0

    def run(self, clips: Sequence[Clip]) -> list[Transcript]:
        self.load()
        return [Transcript(text=self._heard(clip), words=None, model=self.name) for clip in clips]

    def _heard(self, clip: Clip) -> str:
        (result,) = self._model.generate(resample(clip.pcm, clip.rate_hz, RATE_HZ))
        return _joined(result["text"])


def _joined(text: str) -> str:
    """It writes a space between characters: words stay apart only where letters of an alphabet meet."""
    joined = ""
    for word in text.split():
        joined += f" {word}" if joined and joined[-1].isascii() and word[0].isascii() else word
    return joined
