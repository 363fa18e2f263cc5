"""Whisper by its authors' package `openai-whisper` (extra `score`), from a checkpoint `.pt` file."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from harness.core.errors import ConfigError
from harness.engines.asr import WHISPER_RATE_HZ, Transcript
from harness.engines.batches import first_line
from harness.engines.clip_engine import Clip, EngineSpec
from harness.engines.extras import installed, require
from harness.engines.resample import resample
from harness.engines.torch_device import prepare, torch_device
from harness.engines.weights import fingerprint, label, sha256_of

_WINDOW_SAMPLES = 30 * WHISPER_RATE_HZ
_CPU_BATCH, _GPU_BATCH = 4, 16


class OpenAIWhisper:
    """spec.model: a checkpoint file, or a name that the package keeps in `~/.cache/whisper` (fetched by
    `whisper.load_model`). Clips up to 30 s are decoded in one pass without timestamps, longer ones window after window.
    """

    def __init__(self, spec: EngineSpec) -> None:
        versions = (
            f"openai-whisper {installed('whisper', 'score', 'openai-whisper')}, torch {installed('torch', 'score')}"
        )
        self._spec = spec
        self.device: Literal["cpu", "cuda"] = torch_device(spec, "whisper")
        self.batch = _CPU_BATCH if self.device == "cpu" else _GPU_BATCH
        model = spec.model or "large-v3"
        self._path = _checkpoint(model)
        precision = "fp32" if self.device == "cpu" else "fp16"
        decoding = f"{precision}, greedy, language {spec.language or 'auto'}"
        self.name = label(f"{model} ({versions}, {decoding})", self._path)
        self.fingerprint = fingerprint("openai-whisper", versions, decoding, sha256_of([self._path]))
        self._model: Any = None
        self._whisper: Any = None

    def load(self) -> None:
        if self._model is not None:
            return
        prepare(self._spec, "whisper")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numba and triton, on import
            self._whisper = require("whisper", "whisper")
        language = self._spec.language
        if language is not None and language not in self._whisper.tokenizer.LANGUAGES:
            raise ConfigError(f"{self.name}: Whisper knows no language {language!r}")
        try:
            self._model = self._whisper.load_model(str(self._path), device=self.device)
        except (OSError, RuntimeError, KeyError, TypeError, ValueError, EOFError, pickle.UnpicklingError) as exc:
            raise ConfigError(f"{self._path} is no checkpoint of openai-whisper: {first_line(exc)}") from exc

    def run(self, clips: Sequence[Clip]) -> list[Transcript]:
        self.load()
        signals = [resample(clip.pcm, clip.rate_hz, WHISPER_RATE_HZ) for clip in clips]
        short = [i for i, signal in enumerate(signals) if len(signal) <= _WINDOW_SAMPLES]
        texts = dict(zip(short, self._short([signals[i] for i in short]), strict=True))
        return [
            Transcript(text=texts[i] if i in texts else self._long(signal), words=None, model=self.name)
            for i, signal in enumerate(signals)
        ]

    def _short(self, signals: Sequence[Any]) -> list[str]:
        if not signals:
            return []
        whisper, model = self._whisper, self._model
        torch = require("torch", "whisper")
        mels = torch.stack(
            [whisper.log_mel_spectrogram(whisper.pad_or_trim(signal), model.dims.n_mels) for signal in signals]
        ).to(self.device)
        half = self.device == "cuda"
        if half:
            mels = mels.half()
        languages = [self._spec.language or "en"] * len(signals)
        if self._spec.language is None and model.is_multilingual:
            _, chances = model.detect_language(mels)
            languages = [max(chance, key=chance.get) for chance in chances]
        texts = ["" for _ in signals]
        # The decoder takes one language a pass.
        for language in sorted(set(languages)):
            members = [i for i, found in enumerate(languages) if found == language]
            options = whisper.DecodingOptions(language=language, temperature=0.0, without_timestamps=True, fp16=half)
            for i, result in zip(members, whisper.decode(model, mels[members], options), strict=True):
                texts[i] = result.text.strip()
        return texts

    def _long(self, signal: Any) -> str:
        result = self._model.transcribe(
            signal,
            language=self._spec.language,
            temperature=0.0,
            condition_on_previous_text=False,
            no_speech_threshold=None,
            logprob_threshold=None,
            compression_ratio_threshold=None,
            fp16=self.device == "cuda",
            verbose=None,
        )
        return str(result["text"]).strip()


def _checkpoint(model: str) -> Path:
    kept = Path.home() / ".cache" / "whisper" / f"{model}.pt"
    for path in (Path(model).expanduser(), kept):
        if path.is_file():
            return path
    raise ConfigError(
        f"no checkpoint {model}: give the path of a .pt file, or fetch one into ~/.cache/whisper with "
        f"""`python -c "import whisper; whisper.load_model('{Path(model).stem}', 'cpu')"`"""
    )
