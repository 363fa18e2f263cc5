"""Weights of Qwen's Omni models: from a folder or a hub, or random ones, with what belongs to them."""

from __future__ import annotations

from importlib import util
from pathlib import Path
from typing import Any, NamedTuple

from connectors.local.device import Place
from connectors.local.models.qwen_hearing import FRAME, RATE_HZ
from connectors.local.models.qwen_tokens import stand_in
from connectors.local.random_weights import build
from harness.core.errors import PrerequisiteError
from harness.core.weights_mark import RANDOM
from harness.engines.extras import require
from harness.engines.weights import RANDOM_MARK


class Loaded(NamedTuple):
    """source: the folder, or `random`. trained: False for random numbers, wherever they come from."""

    omni: Any
    tokenizer: Any
    extractor: Any
    source: Path | str
    trained: bool


def random(kind: Any, config: Any, at: Place, attention: str, float32: tuple[str, ...], seed: int) -> Loaded:
    """A `kind` of the shape `config` with random numbers. float32: names of submodules that stay so."""
    config._attn_implementation = attention
    dtype = str(at.dtype).removeprefix("torch.")
    omni = build(lambda: kind(config), device=str(at.device), dtype=dtype, float32=float32, seed=seed)
    # Qwen's features: Whisper's log-mel frames with 128 bands (`preprocessor_config.json` of Qwen/Qwen2.5-Omni-7B).
    extractor = require("transformers", "local").WhisperFeatureExtractor(
        feature_size=128, sampling_rate=RATE_HZ, hop_length=FRAME, n_fft=400, chunk_length=300
    )
    return Loaded(omni, stand_in(), extractor, RANDOM, False)


def stored(kind: Any, weights: str, revision: str, at: Place, attention: str, float32: tuple[str, ...]) -> Loaded:
    """Weights of a folder, or of a hub id, which is fetched unless the hub's cache has it.

    Raises PrerequisiteError where there are none, or what is there cannot be loaded.
    """
    transformers = require("transformers", "local")
    folder = _folder(weights, revision)
    # Straight to the device where accelerate is installed, else by way of the host's memory.
    more = {"device_map": {"": str(at.device)}} if util.find_spec("accelerate") else {}
    try:
        omni = kind.from_pretrained(folder, dtype=at.dtype, attn_implementation=attention, **more).to(at.device)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        extractor = transformers.AutoFeatureExtractor.from_pretrained(folder)
    except (OSError, ValueError, ImportError) as exc:
        raise PrerequisiteError(f"weights={weights}: cannot be loaded: {_line(exc)}") from exc
    for name in float32:
        omni.get_submodule(name).float()
    return Loaded(omni, tokenizer, extractor, folder, not (folder / RANDOM_MARK).exists())


def _folder(weights: str, revision: str) -> Path:
    if Path(weights).is_dir():
        return Path(weights)
    hub = require("huggingface_hub", "local")
    try:
        return Path(hub.snapshot_download(weights, revision=revision or None))
    except Exception as exc:
        raise PrerequisiteError(
            f"weights={weights}: no such folder here, and not to be had from the hub ({_line(exc)}); "
            "give a folder, or weights=random for timing only"
        ) from exc


def _line(exc: Exception) -> str:
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    return lines[0] if lines else type(exc).__name__
