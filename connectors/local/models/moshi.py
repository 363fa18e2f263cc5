"""Moshi as a local model, `--peer local:moshi`: the `moshi` package's own streaming step loop, 80 ms at a time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import metadata, util
from typing import Any, ClassVar, Literal

import numpy as np

from connectors.local.device import Place, cpu_threads, place
from connectors.local.facts import model_facts
from connectors.local.model import Audio, Declaration, LocalModel, Output, Session, Text
from connectors.local.models import moshi_weights
from connectors.local.models.moshi_weights import Parts
from harness.core.audio import Int16, int16_to_float
from harness.core.errors import ConfigError
from harness.core.weights_mark import RANDOM
from harness.engines.extras import require

RATE_HZ = 24_000
FRAME = 1_920
"""Samples of a step: 80 ms."""
DELAY = 1
"""Frames by which most codebooks lag behind the first, so the first step has no output."""
SILENT_TEXTS = (0, 3)
"""Text ids that are padding (protocol sheet, section 7.1)."""
WARM_UP_FRAMES = 6
"""CUDA graphs are recorded in the second step of each part, and parts begin one step apart."""


class Moshi(LocalModel):
    """Settings: weights (a folder, a hub id or `random`), size (of random weights), revision (of a hub id), sampling
    (`stock`: drawn as the checkpoint says; `greedy`), device, dtype (of the language model; Mimi is float32), compile
    (torch.compile of the package's small kernels; left out: on a GPU with a C compiler), graphs (CUDA graphs), threads
    (of torch on the CPU; 0: cores - 1), seed (of everything drawn, set once in a process).
    """

    hub_id: ClassVar[str] = "kyutai/moshiko-pytorch-bf16"
    unit_delay: ClassVar[int] = DELAY
    step_limit_s: ClassVar[float] = 10.0

    def __init__(
        self,
        *,
        weights: str = "",
        size: Literal["", "7b", "tiny"] = "",
        revision: str = "",
        sampling: Literal["stock", "greedy"] = "stock",
        device: str = "auto",
        dtype: str = "auto",
        compile: bool | None = None,
        graphs: bool = True,
        threads: int = 0,
        seed: int = 0,
    ) -> None:
        self._weights = weights or self.hub_id
        if size and self._weights != RANDOM:
            raise ConfigError(f"size={size} is for weights=random: real weights have the size they have")
        if threads < 0:
            raise ConfigError("threads cannot be negative")
        self._size = size or "7b"
        self._revision = revision
        self._sampling = sampling
        self._device, self._dtype = device, dtype
        self._compile, self._graphs = compile, graphs
        self._threads = threads
        self._seed = seed
        self._first = True
        self._modes = ExitStack()
        self._at: Place
        self._parts: Parts
        self._gen: Any = None

    @property
    def declaration(self) -> Declaration:
        return Declaration(
            input_rate_hz=RATE_HZ,
            output_rate_hz=RATE_HZ,
            pacing="input_clocked",
            unit_samples=FRAME,
            unit_delay=self.unit_delay,
            continuous=True,
            text="with_audio",
            step_limit_s=self.step_limit_s,
            load_limit_s=1_800.0,
        )

    @property
    def facts(self) -> dict[str, Any]:
        random = self._parts.source == RANDOM
        modes = [name for name, on in (("torch.compile", self._compile), ("cuda graphs", self._graphs)) if on]
        return model_facts(
            self._at,
            weights=self._parts.source,
            model=self._parts.lm,
            revision=self._revision,
            attention="sdpa",
            compiled=", ".join(modes) or "none",
            codec=f"mimi, {sum(p.numel() for p in self._parts.mimi.parameters())} parameters, float32",
            sampling=self._sampling,
            size=self._size if random else "",
            tokenizer="stand-in: made-up words" if random else "",
            moshi=metadata.version("moshi"),
        )

    # --- loading --------------------------------------------------------------------------------------------------

    def load(self) -> None:
        torch = require("torch", "local")
        models = moshi_weights.package("moshi.models")
        self._at = place(self._device, self._dtype)
        cuda = self._at.device.type == "cuda"
        self._graphs = self._graphs and cuda
        if self._compile is None:
            self._compile = cuda and _can_compile()
        self._choose_modes()
        if not cuda:
            torch.set_num_threads(cpu_threads(self._threads))
        torch.manual_seed(self._seed)
        if self._weights == RANDOM:
            self._parts = moshi_weights.random(self._size, self._at, self._seed)
        else:
            self._parts = self._from_files()
        lm, mimi = self._parts.lm, self._parts.mimi
        if (max(lm.delays), lm.dep_q) != (DELAY, moshi_weights.AGENT_CODES):
            raise ConfigError(
                f"{self._weights} has delays up to {max(lm.delays)} and {lm.dep_q} codebooks: not Moshi's"
            )
        for module in (lm, mimi):
            module.requires_grad_(False)
        options = {**self._parts.options, **self._hooks()}
        if self._sampling == "greedy":
            options["use_sampling"] = False
        self._gen = models.LMGen(lm, **options)
        mimi.streaming_forever(1)
        self._gen.streaming_forever(1)

    def _choose_modes(self) -> None:
        """For the whole process: the package's kernels ask whether they may compile or record at each call."""
        modes = moshi_weights.package("moshi.utils.compile")
        if not self._compile:
            self._modes.enter_context(modes.no_compile())
        if not self._graphs:
            self._modes.enter_context(modes.no_cuda_graph())

    def _from_files(self) -> Parts:
        return moshi_weights.load(self._weights, self._revision, self._at)

    def _hooks(self) -> dict[str, Any]:
        """What `LMGen` calls between sampling and writing down."""
        return {}

    def warm_up(self) -> None:
        self.start(Session(turn="vad"))
        for _ in range(WARM_UP_FRAMES):
            for _ in self.push_audio(np.zeros(FRAME, dtype=np.int16)):
                pass

    # --- a session ------------------------------------------------------------------------------------------------

    def start(self, session: Session) -> None:
        self._parts.mimi.reset_streaming()
        self._gen.reset_streaming()
        self._first = True

    def push_audio(self, pcm: Int16) -> Iterator[Output]:
        """One step: the text's token as soon as it is on the host, then the frame that belongs to it."""
        mimi = self._parts.mimi
        heard = require("torch", "local").from_numpy(int16_to_float(pcm)).to(self._at.device)
        codes = mimi.encode(heard[None, None])
        if self._first:
            # The model takes its first frame for the past: it is encoded, but Mimi begins anew after it.
            mimi.reset_streaming()
            self._first = False
        tokens = self._gen.step(codes)
        if tokens is None:
            return
        text = int(tokens[0, 0, 0])
        if text not in SILENT_TEXTS:
            yield Text(self._parts.pieces.id_to_piece(text).replace("\u2581", " "))
        sound = mimi.decode(tokens[:, 1:])
        yield Audio(sound[0, 0].float().cpu().numpy())


def _can_compile() -> bool:
    """Whether torch.compile finds what it needs on a GPU: Triton, and a C compiler for its launchers."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    return bool(compiler and util.find_spec("triton"))
