"""UTMOS22 strong (extra `quality`) from a checkpoint that the user gives; its network is `utmos22_network`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from harness.core.errors import ConfigError
from harness.engines.clip_engine import Clip, EngineSpec
from harness.engines.extras import installed, require
from harness.engines.resample import resample
from harness.engines.torch_device import prepare, torch_device
from harness.engines.weights import fingerprint, label, sha256_of

RATE_HZ = 16_000
DOMAIN, LISTENER = 0, 288
"""What the authors' demonstration and VocalBench use."""
SHORTEST_SAMPLES = 400
"""One frame of wav2vec 2.0."""


class UTMOS22Strong:
    """Naturalness MOS, the strong learner without phoneme encoder: mean over frames, times 2, plus 3.

    spec.model: the authors' `epoch=3-step=7459.ckpt` or SpeechMOS's `utmos22_strong_step7459_v1.pt`. One clip a pass:
    the first layer normalises over time, so padding would change the figure (VocalBench pads by repeating, and its
    values depend on the batch). Resampled by soxr. Raises ConfigError without a checkpoint.
    """

    batch = 1

    def __init__(self, spec: EngineSpec) -> None:
        versions = f"transformers {installed('transformers', 'quality')}, torch {installed('torch', 'quality')}"
        if not spec.model:
            raise ConfigError(
                "UTMOS22 needs its checkpoint: mos:utmos22:PATH, `epoch=3-step=7459.ckpt` of the authors' demo "
                "or `utmos22_strong_step7459_v1.pt` of SpeechMOS; mos:distillmos needs none"
            )
        self._path = Path(spec.model).expanduser()
        if not self._path.is_file():
            raise ConfigError(f"UTMOS22: no such checkpoint: {spec.model}")
        self._spec = spec
        self.device: Literal["cpu", "cuda"] = torch_device(spec, "quality")
        settings = f"domain {DOMAIN}, listener {LISTENER}"
        self.name = label(f"UTMOS22 strong ({self._path.name}, {settings})", self._path)
        self.fingerprint = fingerprint("utmos22", versions, settings, sha256_of([self._path]))
        self._network: Any = None

    def load(self) -> None:
        if self._network is not None:
            return
        prepare(self._spec, "quality")
        from harness.engines.utmos22_network import load_network  # imports torch

        self._network = load_network(self._path, domain=DOMAIN, listener=LISTENER).to(self.device)

    def run(self, clips: Sequence[Clip]) -> list[float]:
        self.load()
        return [self._score(resample(clip.pcm, clip.rate_hz, RATE_HZ)) for clip in clips]

    def _score(self, signal: Any) -> float:
        if len(signal) < SHORTEST_SAMPLES:
            raise ConfigError(f"{len(signal)} samples are shorter than one frame")
        wave = require("torch", "quality").from_numpy(signal).to(self.device)[None]
        return float(self._network(wave)[0])
