"""DNSMOS P.835 (overall), Microsoft's network for noisy speech, on onnxruntime (extra `tts` or `quality`).

Its weights come from the package that the index calls `speechmos`, which is not the SpeechMOS that carries UTMOS22.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from harness.engines import store
from harness.engines.clip_engine import Clip, EngineSpec
from harness.engines.extras import installed, require
from harness.engines.pinned import DNSMOS_P835
from harness.engines.resample import resample
from harness.engines.weights import fingerprint, label, sha256_of

RATE_HZ = 16_000
WINDOW_SAMPLES = 144_160
"""9.01 s (speechmos 0.0.1.1, INPUT_LENGTH)."""
_OVERALL = (-0.06766283, 1.11546468, 0.04602535)
"""Raw overall figure to MOS: a quadratic, highest power first (speechmos 0.0.1.1)."""
_FILE = "sig_bak_ovr.onnx"


class DNSMOS:
    """The mean of the overall MOS over windows of 9.01 s, 1 s apart; shorter clips are repeated until they fill one.

    spec.model: a folder with `sig_bak_ovr.onnx`; by default the pinned one. Always on the CPU.
    """

    batch = 1
    device: Literal["cpu", "cuda"] = "cpu"

    def __init__(self, spec: EngineSpec) -> None:
        version = installed("onnxruntime", "quality")
        folder = store.resolve_with(spec.model or DNSMOS_P835.name, (_FILE,))
        self._path = folder / _FILE
        self._threads = spec.threads
        self.name = label(f"DNSMOS P.835 overall ({spec.model or DNSMOS_P835.name})", folder)
        self.fingerprint = fingerprint("dnsmos", version, sha256_of([self._path]))
        self._session: Any = None

    def load(self) -> None:
        if self._session is not None:
            return
        onnxruntime = require("onnxruntime", "quality")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        self._session = onnxruntime.InferenceSession(
            str(self._path), sess_options=options, providers=["CPUExecutionProvider"]
        )

    def run(self, clips: Sequence[Clip]) -> list[float]:
        self.load()
        return [self._score(resample(clip.pcm, clip.rate_hz, RATE_HZ)) for clip in clips]

    def _score(self, signal: Any) -> float:
        signal = np.clip(signal, -1.0, 1.0).astype(np.float32)
        while len(signal) < WINDOW_SAMPLES:
            signal = np.concatenate((signal, signal))
        # As published: whole seconds less 9.01, rounded towards zero, so the last second is often not heard.
        hops = int(len(signal) // RATE_HZ - WINDOW_SAMPLES / RATE_HZ) + 1
        name = self._session.get_inputs()[0].name
        scores = []
        for begin in range(0, hops * RATE_HZ, RATE_HZ):
            window = signal[begin : begin + WINDOW_SAMPLES]
            if len(window) == WINDOW_SAMPLES:
                overall = float(self._session.run(None, {name: window[np.newaxis]})[0][0][2])
                scores.append(float(np.polyval(_OVERALL, overall)))
        return float(np.mean(scores))
