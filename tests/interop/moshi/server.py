"""Kyutai's own `moshi.server` with small random weights: `python server.py PORT`, in its own environment.

Everything is theirs (the socket, both Opus streams, Mimi, the language model and its loop) but the checkpoint: models
of the same make, shrunk until a step takes a fraction of its 80 ms on one core, and a vocabulary of made-up pieces.
"""

from __future__ import annotations

import copy
import os
import runpy
import sys
from typing import Any

os.environ |= {"NO_TORCH_COMPILE": "1", "NO_CUDA_GRAPH": "1"}

import torch
from moshi.models import loaders

WEIGHT_STD = 0.05
TEXT_TOKENS = 500


class Pieces:
    """Stands in for the sentencepiece vocabulary."""

    def id_to_piece(self, token: int) -> str:
        return f"▁t{token}"


class SmallCheckpoint:
    """What `moshi.server` asks of a checkpoint."""

    model_type = "moshi"
    lm_gen_config: dict[str, Any] = {}  # noqa: RUF012 - their interface

    @classmethod
    def from_hf_repo(cls, *args: object, **options: object) -> SmallCheckpoint:
        return cls()

    def get_mimi(self, device: str) -> Any:
        config = copy.deepcopy(loaders._mimi_config)
        config["seanet"]["n_filters"] = 8
        config["transformer"]["num_layers"] = 1
        return random_weights(loaders.get_mimi(None, config, device=device, num_codebooks=8))

    def get_moshi(self, device: str, dtype: torch.dtype, fuse_lora: bool) -> Any:
        small = {"dim": 128, "num_layers": 2, "num_heads": 4, "text_card": TEXT_TOKENS, "context": 100}
        small |= {"depformer_dim": 64, "depformer_dim_feedforward": 128, "depformer_num_heads": 4}
        small |= {"depformer_num_layers": 1}
        return random_weights(
            loaders.get_moshi_lm(None, {**loaders._lm_kwargs, **small}, device=device, dtype=torch.float32)
        )

    def get_text_tokenizer(self) -> Pieces:
        return Pieces()


def random_weights(model: Any) -> Any:
    """Uninitialised tensors may hold anything."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=WEIGHT_STD)
    return model.eval()


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.cuda.synchronize = lambda *args: None
    loaders.CheckpointInfo = SmallCheckpoint
    sys.argv = ["moshi.server", "--host", "127.0.0.1", "--port", sys.argv[1], "--device", "cpu", "--static", "none"]
    runpy.run_module("moshi.server", run_name="__main__")
