"""Whisper on CTranslate2 over many clips (extra `asr`): greedy, several clips in one pass of the network.

For one clip with word times, and Mandarin in simplified characters, see `harness.engines.asr`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from harness.core.errors import ConfigError
from harness.engines import store
from harness.engines.asr import SIMPLIFIED_PROMPTS, WHISPER_RATE_HZ, Transcript, simplified
from harness.engines.clip_engine import Clip, EngineSpec
from harness.engines.extras import installed, require
from harness.engines.pinned import WHISPER_BASE
from harness.engines.resample import resample
from harness.engines.weights import fingerprint, label, sha256_of

WINDOW_S = 30
"""Whisper's window; longer clips are decoded window after window by their timestamps."""
_CPU_BATCH, _GPU_BATCH = 4, 32
"""On a CPU 2 to 4 clips take 15 % less time than one by one, 16 take more (Whisper base, int8, one thread)."""
_SLOT = (WINDOW_S + 1) * WHISPER_RATE_HZ
_FRAMES_PER_S = 100
_GREEDY: dict[str, Any] = {"beam_size": 1, "temperature": 0.0, "condition_on_previous_text": False}
_NO_THRESHOLDS: dict[str, Any] = {
    "no_speech_threshold": None,
    "log_prob_threshold": None,
    "compression_ratio_threshold": None,
}
"""The Transformers pipeline, which the published figures come from, drops no window as silent."""


class FasterWhisperBatch:
    """spec.model: pinned name, folder, or hub id of a CTranslate2 conversion. spec.language None: detected for each
    clip. Clips up to 30 s are decoded without timestamps, as the Transformers pipeline does; int8 on a CPU, fp16 on a
    GPU. Raises PrerequisiteError or ConfigError as `harness.engines.store.resolve_with`."""

    def __init__(self, spec: EngineSpec) -> None:
        version = installed("faster_whisper", "asr")
        runtime = installed("ctranslate2", "asr")
        model = spec.model or WHISPER_BASE.name
        self._folder = store.resolve_with(model, ("model.bin", "config.json"))
        self._language = spec.language
        self._threads = spec.threads
        self.device: Literal["cpu", "cuda"] = _device(spec)
        self._compute = "int8" if self.device == "cpu" else "float16"
        self.batch = _CPU_BATCH if self.device == "cpu" else _GPU_BATCH
        self._prompt = SIMPLIFIED_PROMPTS.get(spec.language or "")
        decoding = f"{self._compute}, greedy, language {spec.language or 'auto'}"
        self.name = label(f"{model} (faster-whisper {version}, {decoding})", self._folder)
        files = [path for path in self._folder.iterdir() if path.is_file()]
        self.fingerprint = fingerprint("faster-whisper", version, runtime, decoding, self._prompt, sha256_of(files))
        self._whisper: Any = None
        self._batched: Any = None

    def load(self) -> None:
        if self._whisper is not None:
            return
        module = require("faster_whisper", "asr")
        if self._language == "zh":
            require("zhconv", "asr")
        try:
            self._whisper = module.WhisperModel(
                str(self._folder), device=self.device, compute_type=self._compute, cpu_threads=self._threads
            )
        except (RuntimeError, ValueError) as exc:
            raise ConfigError(f"{self._folder} cannot be loaded by faster-whisper: {exc}") from exc
        self._batched = module.BatchedInferencePipeline(self._whisper)
        if self._language is not None and self._language not in self._whisper.supported_languages:
            raise ConfigError(f"{self.name}: Whisper knows no language {self._language!r}")

    def run(self, clips: Sequence[Clip]) -> list[Transcript]:
        self.load()
        signals = [resample(clip.pcm, clip.rate_hz, WHISPER_RATE_HZ) for clip in clips]
        short = [i for i, signal in enumerate(signals) if len(signal) <= WINDOW_S * WHISPER_RATE_HZ]
        texts = dict(zip(short, self._short([signals[i] for i in short]), strict=True))
        return [
            Transcript(text=texts[i] if i in texts else self._long(signal), words=None, model=self.name)
            for i, signal in enumerate(signals)
        ]

    def _short(self, signals: Sequence[Any]) -> list[str]:
        """Every clip a window of its own, all windows in one pass."""
        if not signals:
            return []
        # The pipeline takes one signal and windows in it: each clip gets a slot whose number shows in `seek`.
        tape = np.zeros(len(signals) * _SLOT, np.float32)
        windows = []
        for i, signal in enumerate(signals):
            tape[i * _SLOT : i * _SLOT + len(signal)] = signal
            begin_s = i * _SLOT / WHISPER_RATE_HZ
            # Half a sample more, since the pipeline rounds down.
            windows.append({"start": begin_s, "end": begin_s + (len(signal) + 0.5) / WHISPER_RATE_HZ})
        segments, _ = self._batched.transcribe(
            tape,
            language=self._language or "en",  # stands in until each window's own is found
            multilingual=self._language is None,
            clip_timestamps=windows,
            batch_size=len(signals),
            vad_filter=False,
            without_timestamps=True,
            initial_prompt=self._prompt,
            **_GREEDY,
        )
        texts = ["" for _ in signals]
        for segment in segments:
            texts[segment.seek // (_SLOT // WHISPER_RATE_HZ * _FRAMES_PER_S)] += segment.text
        return [self._tidy(text) for text in texts]

    def _long(self, signal: Any) -> str:
        segments, _ = self._whisper.transcribe(
            signal, language=self._language, initial_prompt=self._prompt, vad_filter=False, **_GREEDY, **_NO_THRESHOLDS
        )
        return self._tidy("".join(segment.text for segment in segments))

    def _tidy(self, text: str) -> str:
        return simplified(text.strip()) if self._language == "zh" else text.strip()


def _device(spec: EngineSpec) -> Literal["cpu", "cuda"]:
    if spec.device != "auto":
        return spec.device
    return "cuda" if require("ctranslate2", "asr").get_cuda_device_count() > 0 else "cpu"
