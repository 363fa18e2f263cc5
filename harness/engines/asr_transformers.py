"""Whisper through the Transformers pipeline (extra `score`): how the published VocalBench-zh figures were transcribed.

The official way is model large-v3, no language argument, no chunking, fp16 on a GPU. Clips over 30 s are decoded
window after window by timestamps, which the pipeline insists on (huggingface/transformers #34192, #35633).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from harness.core.errors import ConfigError
from harness.engines import store
from harness.engines.asr import WHISPER_RATE_HZ, Transcript
from harness.engines.batches import first_line
from harness.engines.clip_engine import Clip, EngineSpec
from harness.engines.extras import installed, require
from harness.engines.resample import resample
from harness.engines.torch_device import prepare, torch_device
from harness.engines.weights import fingerprint, label, sha256_of

OFFICIAL = "openai/whisper-large-v3"
_WANTED = ("*.json", "*.txt", "model.safetensors", "model-*.safetensors")
"""The repository holds the same weights four times over."""
_WINDOW_SAMPLES = 30 * WHISPER_RATE_HZ
_CPU_BATCH, _GPU_BATCH = 4, 16


class TransformersWhisper:
    """spec.model: folder or hub id of a Transformers Whisper; by default large-v3. spec.language None: the official
    way. Sound is resampled to 16 kHz by soxr, where the official script leaves it to torchaudio."""

    def __init__(self, spec: EngineSpec) -> None:
        versions = f"transformers {installed('transformers', 'score')}, torch {installed('torch', 'score')}"
        self._spec = spec
        self.device: Literal["cpu", "cuda"] = torch_device(spec, "whisper")
        self.batch = _CPU_BATCH if self.device == "cpu" else _GPU_BATCH
        model = spec.model or OFFICIAL
        self._folder = store.resolve_with(model, ("config.json",), hub_files=_WANTED)
        precision = "fp32" if self.device == "cpu" else "fp16"
        decoding = f"{precision}, greedy, language {spec.language or 'auto'}"
        self.name = label(f"{model} ({versions}, {decoding})", self._folder)
        files = [path for path in self._folder.iterdir() if path.suffix in {".json", ".txt", ".safetensors", ".bin"}]
        self.fingerprint = fingerprint("transformers", versions, decoding, sha256_of(files))
        self._pipe: Any = None

    def load(self) -> None:
        if self._pipe is not None:
            return
        torch = prepare(self._spec, "whisper")
        transformers = require("transformers", "whisper")
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        folder = str(self._folder)
        try:
            model = transformers.WhisperForConditionalGeneration.from_pretrained(
                folder, dtype=torch.float32 if self.device == "cpu" else torch.float16
            ).to(self.device)
            processor = transformers.AutoProcessor.from_pretrained(folder)
        except (OSError, ValueError, RuntimeError, KeyError, TypeError) as exc:
            raise ConfigError(f"{folder} is no Whisper model that Transformers can load: {first_line(exc)}") from exc
        languages = getattr(model.generation_config, "lang_to_id", {})
        if self._spec.language is not None and f"<|{self._spec.language}|>" not in languages:
            raise ConfigError(f"{self.name}: Whisper knows no language {self._spec.language!r}")
        self._pipe = transformers.pipeline(
            "automatic-speech-recognition",
            model=model,
            tokenizer=processor.tokenizer,
            feature_extractor=processor.feature_extractor,
            device=self.device,
        )

    def run(self, clips: Sequence[Clip]) -> list[Transcript]:
        self.load()
        signals = [resample(clip.pcm, clip.rate_hz, WHISPER_RATE_HZ) for clip in clips]
        short = [i for i, signal in enumerate(signals) if len(signal) <= _WINDOW_SAMPLES]
        texts = dict(zip(short, self._heard([signals[i] for i in short], long=False), strict=True))
        for i, signal in enumerate(signals):
            if i not in texts:
                (texts[i],) = self._heard([signal], long=True)
        return [Transcript(text=texts[i], words=None, model=self.name) for i in range(len(clips))]

    def _heard(self, signals: Sequence[Any], *, long: bool) -> list[str]:
        if not signals:
            return []
        options: dict[str, Any] = {"num_beams": 1, "do_sample": False}
        if self._spec.language is not None:
            options |= {"language": self._spec.language, "task": "transcribe"}
        heard = self._pipe(
            [{"raw": signal, "sampling_rate": WHISPER_RATE_HZ} for signal in signals],
            batch_size=len(signals),
            generate_kwargs=options,
            **({"return_timestamps": True} if long else {}),
        )
        return [str(one["text"]).strip() for one in heard]
