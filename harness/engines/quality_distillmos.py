"""DistillMOS (extra `quality`): a small network taught by a large one; its weights lie in its package (MIT).

Not UTMOS: its figures stand beside those of `harness.engines.quality_utmos22` under another name.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import sys
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from harness.core.errors import ConfigError, PrerequisiteError
from harness.engines.clip_engine import Clip, EngineSpec
from harness.engines.extras import installed, require
from harness.engines.resample import resample
from harness.engines.torch_device import prepare, torch_device
from harness.engines.weights import fingerprint, sha256_of

RATE_HZ = 16_000
WINDOW_SAMPLES = 122_880
"""7.68 s, the length it was trained on (distillmos 0.9.1, SEQ_LEN)."""
MOST_HOP_SAMPLES = 16_000
_AT_ONCE = 8
"""Windows in one pass; a long answer has hundreds, and each takes 30 MB in the first layers."""
_INSTALL = "pip install --no-deps distillmos==0.9.1 xls-r-sqa==0.1.0, and pip install 'firstpacket[quality]'"


class DistillMOS:
    """The mean over windows of 7.68 s spread evenly at most 1 s apart, shorter clips padded with silence, each window
    scaled to full scale: what `distillmos` does with a whole clip, a few windows at a time. spec.model must be empty.
    """

    batch = 1

    def __init__(self, spec: EngineSpec) -> None:
        if spec.model:
            raise ConfigError(f"DistillMOS has its weights in its package: leave out {spec.model!r}")
        self._spec = spec
        self.device: Literal["cpu", "cuda"] = torch_device(spec, "quality")
        found = importlib.util.find_spec("distillmos")
        if found is None or found.origin is None or importlib.util.find_spec("xls_r_sqa") is None:
            raise PrerequisiteError(f"distillmos is not installed: {_INSTALL}")
        version = installed("distillmos", "quality")
        weights = sorted((Path(found.origin).parent / "weights").glob("*.pt"))
        self.name = f"DistillMOS {version}"
        self.fingerprint = fingerprint("distillmos", version, sha256_of(weights))
        self._model: Any = None

    def load(self) -> None:
        if self._model is not None:
            return
        prepare(self._spec, "quality")
        with _without_torchaudio(), contextlib.redirect_stdout(io.StringIO()):  # it prints where its weights lie
            module = require("distillmos", "quality")
            self._model = module.ConvTransformerSQAModel(segmenting_in_forward=False)
        self._model.eval().to(self.device)

    def run(self, clips: Sequence[Clip]) -> list[float]:
        self.load()
        return [self._score(resample(clip.pcm, clip.rate_hz, RATE_HZ)) for clip in clips]

    def _score(self, signal: Any) -> float:
        torch = require("torch", "quality")
        beyond = max(len(signal) - WINDOW_SAMPLES, 0)
        padded = np.pad(signal, (0, max(WINDOW_SAMPLES - len(signal), 0))).astype(np.float32)
        hops = -(-beyond // MOST_HOP_SAMPLES) + 1
        begins = [int(part * beyond) for part in np.linspace(0, 1, hops)]
        scores: list[float] = []
        with torch.inference_mode():
            for at in range(0, hops, _AT_ONCE):
                windows = np.stack([padded[begin : begin + WINDOW_SAMPLES] for begin in begins[at : at + _AT_ONCE]])
                scores += self._model(torch.from_numpy(windows).to(self.device)).flatten().tolist()
        return float(np.mean(scores))


@contextlib.contextmanager
def _without_torchaudio() -> Iterator[None]:
    """Both packages import torchaudio at their top, for reading files, which is not asked of them here. Beside a
    CPU-only torch its import fails with an OSError, so an empty module stands in, and is gone afterwards."""
    names = ("torchaudio", "torchaudio.transforms")
    before = {name: sys.modules.get(name) for name in names}
    audio, transforms = types.ModuleType(names[0]), types.ModuleType(names[1])
    vars(transforms)["MFCC"] = object
    vars(audio)["transforms"] = transforms
    sys.modules.update(zip(names, (audio, transforms), strict=True))
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
