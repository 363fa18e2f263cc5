"""emotion2vec plus large through funasr (extra `emotion`), restricted to the labels that VocalBench uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from harness.core.errors import ConfigError
from harness.engines import store
from harness.engines.clip_engine import Clip, EngineSpec
from harness.engines.extras import installed
from harness.engines.funasr_model import load_funasr
from harness.engines.resample import resample
from harness.engines.torch_device import torch_device
from harness.engines.weights import fingerprint, label, sha256_of

RATE_HZ = 16_000
HUB_ID = "emotion2vec/emotion2vec_plus_large"
NINE = ("angry", "disgusted", "fearful", "happy", "neutral", "other", "sad", "surprised", "unknown")
USED = ("angry", "happy", "neutral", "sad", "surprised", "unknown")
"""What VocalBench leaves of the nine: it has `disgusted`, `fearful` and `other` renamed in tokens.txt to a name that
funasr sets to minus infinity before the softmax. Dividing the nine by the sum of these six is the same."""
_SKIPPED = "unuse"
_FILES = ("config.yaml", "configuration.json", "model.pt", "tokens.txt")


class Emotion2vec:
    """spec.model: a folder as on the hub (`config.yaml`, `configuration.json`, `model.pt`, `tokens.txt`) or a hub id.

    The same model comes with nine or with five classes, by framework and revision (modelscope/FunASR #2728): only nine,
    as published or with VocalBench's renaming, are taken. One clip a pass, whole, as funasr does.
    """

    batch = 1

    def __init__(self, spec: EngineSpec) -> None:
        version = installed("funasr", "emotion")
        torch_version = installed("torch", "emotion")
        self._spec = spec
        self.device: Literal["cpu", "cuda"] = torch_device(spec, "emotion")
        model = spec.model or HUB_ID
        self._folder = store.resolve_with(model, _FILES, hub_files=_FILES)
        self._labels = _labels(self._folder / "tokens.txt")
        self.name = label(f"{model} (funasr {version}, utterance, six of nine labels)", self._folder)
        files = [self._folder / name for name in _FILES]
        self.fingerprint = fingerprint("emotion2vec", version, torch_version, USED, sha256_of(files))
        self._model: Any = None

    def load(self) -> None:
        if self._model is not None:
            return
        self._model = load_funasr(self._folder, msgspec.structs.replace(self._spec, device=self.device))

    def run(self, clips: Sequence[Clip]) -> list[Mapping[str, float]]:
        self.load()
        return [self._classify(resample(clip.pcm, clip.rate_hz, RATE_HZ)) for clip in clips]

    def _classify(self, signal: Any) -> Mapping[str, float]:
        (result,) = self._model.generate(signal, granularity="utterance", extract_embedding=False)
        scores = {_plain(name): float(score) for name, score in zip(result["labels"], result["scores"], strict=True)}
        whole = sum(scores[name] for name in USED)
        return {name: scores[name] / whole for name in USED}


def _labels(path: Path) -> tuple[str, ...]:
    """The classes by plain name. Raises ConfigError unless they are the nine, as published or with the renaming."""
    names = tuple(_plain(line.strip()) for line in path.read_text("utf-8").splitlines() if line.strip())
    renamed = tuple(name if name in USED else _SKIPPED for name in NINE)
    if names not in (NINE, renamed):
        raise ConfigError(
            f"{path} names {len(names)} classes ({', '.join(names)}): emotion2vec_plus_large has {len(NINE)} "
            f"({', '.join(NINE)}); take the revision that has them"
        )
    return names


def _plain(label: str) -> str:
    """`生气/angry` -> `angry`; `<unk>` -> `unknown`; `unuse_1` -> `unuse` (funasr takes no label twice)."""
    name = label.rpartition("/")[2]
    if name.startswith(_SKIPPED):
        return _SKIPPED
    return "unknown" if name == "<unk>" else name
