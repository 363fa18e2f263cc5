"""Moshi's weights, from a folder, a hub or at random, as the `moshi` package's own objects: `load`, `random`."""

from __future__ import annotations

import copy
import importlib
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from connectors.local.device import Place
from connectors.local.random_weights import build
from harness.core.errors import ConfigError, PrerequisiteError
from harness.core.weights_mark import RANDOM
from harness.engines import store

HUB_FILES = ("*.json", "*.safetensors", "*.model", "voices.tgz")
AGENT_CODES = 8
"""Codebooks of one stream: the agent's and the user's have as many."""
TINY_TEXTS = 500
_STEPPED = re.compile(r"(?:gating|linears|depformer_in|in_projs|out_projs)\.(\d+)\.")
_STEPPED_EMBEDDING = re.compile(r"depformer_emb\.(\d+)\.")


class Parts(NamedTuple):
    """mimi, lm: torch modules on the device. pieces: a sentencepiece vocabulary. options: of `LMGen`, what the
    checkpoint asks for. source: the folder, or `random`."""

    mimi: Any
    lm: Any
    pieces: Any
    options: dict[str, Any]
    source: Path | str


class MadeUpPieces:
    """Stands in for the vocabulary of random weights: each token is a word."""

    def __init__(self, texts: int) -> None:
        self._texts = texts

    def id_to_piece(self, token: int) -> str:
        return f"\u2581t{token}"

    def encode(self, text: str) -> list[int]:
        return [4 + sum(map(ord, word)) % (self._texts - 4) for word in text.split()]


def package(module: str) -> Any:
    """A module of the `moshi` package, imported now. Raises PrerequisiteError where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as exc:
        raise PrerequisiteError(
            f"{exc.name or module} is not installed here: pip install moshi msgspec into an environment of its own, "
            "then --set python=DIR (moshi's own requirements do not go with newer packages)"
        ) from exc


def random(size: str, at: Place, seed: int) -> Parts:
    """The published architecture (`7b`) or one that a CPU core steps in time (`tiny`), with random numbers."""
    loaders = package("moshi.models.loaders")
    shape, codec = dict(loaders._lm_kwargs), copy.deepcopy(loaders._mimi_config)
    if size == "tiny":
        _shrink(shape, codec)
    lm = build(
        lambda: loaders.get_moshi_lm(None, shape, device="meta", dtype=at.dtype),
        device=str(at.device),
        dtype=_name(at.dtype),
        seed=seed,
    )
    # Mimi moves itself to its device while it is built: None, as nothing can be moved from meta.
    mimi = build(
        lambda: loaders.get_mimi(None, codec, device=None, num_codebooks=AGENT_CODES), device=str(at.device), seed=seed
    )
    for module in mimi.modules():
        if "embedding_sum" in module._buffers:
            module.embedding_sum.normal_()  # codebooks begin as zeros, which all sound the same
    return Parts(mimi, lm, MadeUpPieces(shape["text_card"]), {}, RANDOM)


def load(weights: str, revision: str, at: Place) -> Parts:
    """Moshi as Kyutai publishes it: `model.safetensors`, Mimi and vocabulary, named by `config.json` if there is one.

    Raises ConfigError for weights that are none of Moshi's, PrerequisiteError where they cannot be had.
    """
    folder, config = _folder(weights, revision)
    kind = config.get("model_type", "moshi")
    if kind != "moshi":
        more = "; --peer local:personaplex runs it" if kind == "personaplex" else ""
        raise ConfigError(f"{folder} holds a model of the type {kind}, not moshi{more}")
    loaders = package("moshi.models.loaders")
    files = [
        _file(folder, config, "moshi_name", loaders.MOSHI_NAME),
        _file(folder, config, "mimi_name", loaders.MIMI_NAME),
        _file(folder, config, "tokenizer_name", loaders.TEXT_TOKENIZER_NAME),
    ]
    if "dim" in config:
        optional = {
            argument: _file(folder, config, name, "") if config.get(name) else None
            for argument, name in (("lora_weights", "lora_name"), ("mimi_config_path", "mimi_config_name"))
        }
        found = loaders.CheckpointInfo.from_hf_repo("", *files, config_path=folder / "config.json", **optional)
    else:
        found = loaders.CheckpointInfo(*files, lm_gen_config=config.get("lm_gen_config", {}))

    def read() -> Parts:
        mimi = found.get_mimi(device=at.device)
        lm = found.get_moshi(device=at.device, dtype=at.dtype, fuse_lora=True)
        return Parts(mimi, lm, found.get_text_tokenizer(), found.lm_gen_config, folder)

    return _checked(folder, read)


def load_personaplex(weights: str, revision: str, at: Place) -> Parts:
    """PersonaPlex, as `load`: its depth transformer's steps for the user's stream, which is always given, are left out.

    Its checkpoints name no shape: it is Moshi's (source: NVIDIA/personaplex, moshi/models/loaders.py, 2026-03).
    """
    folder, config = _folder(weights, revision)
    loaders = package("moshi.models.loaders")
    shape = {**loaders._lm_kwargs, **(config if "dim" in config else {}), "dep_q": AGENT_CODES}
    for name in [name for name in shape if name.endswith("_name") or name in ("model_type", "version")]:
        del shape[name]
    weights_file = _file(folder, config, "moshi_name", loaders.MOSHI_NAME)
    mimi_file = _file(folder, config, "mimi_name", loaders.MIMI_NAME)
    vocabulary = _file(folder, config, "tokenizer_name", loaders.TEXT_TOKENIZER_NAME)
    own = _file(folder, config, "mimi_config_name", "") if config.get("mimi_config_name") else None
    codec = json.loads(own.read_text("utf-8")) if own else None

    def read() -> Parts:
        mimi = loaders.get_mimi(mimi_file, codec, device=at.device, num_codebooks=AGENT_CODES)
        lm = loaders.get_moshi_lm(None, shape, device="meta", dtype=at.dtype)
        state = package("safetensors.torch").load_file(weights_file, device=str(at.device))
        kept = {name: tensor.to(at.dtype) for name, tensor in without_user_steps(state).items()}
        lm.load_state_dict(kept, assign=True)
        return Parts(mimi, lm.eval(), package("sentencepiece").SentencePieceProcessor(str(vocabulary)), {}, folder)

    return _checked(folder, read)


def without_user_steps(state: dict[str, Any]) -> dict[str, Any]:
    """A state dict of a depth transformer of up to 16 steps, cut to the agent's 8."""
    kept: dict[str, Any] = {}
    for name, tensor in state.items():
        stepped, embedding = _STEPPED.search(name), _STEPPED_EMBEDDING.search(name)
        in_depth = name.startswith(("depformer", "linears"))
        if in_depth and stepped and int(stepped[1]) >= AGENT_CODES:
            continue
        if embedding and int(embedding[1]) >= AGENT_CODES - 1:
            continue  # the last codebook is no input
        if in_depth and name.endswith(("self_attn.in_proj_weight", "self_attn.out_proj.weight")):
            rows = AGENT_CODES * tensor.shape[1] * (3 if "in_proj" in name else 1)
            kept[name] = tensor[:rows]
        else:
            kept[name] = tensor
    return kept


def _shrink(shape: dict[str, Any], codec: dict[str, Any]) -> None:
    shape |= {"dim": 128, "num_layers": 2, "num_heads": 4, "text_card": TINY_TEXTS, "context": 100}
    shape |= {"depformer_dim": 64, "depformer_dim_feedforward": 128, "depformer_num_heads": 4}
    shape |= {"depformer_num_layers": 1}
    codec["seanet"] |= {"n_filters": 4, "dimension": 64}
    codec["transformer"] |= {"d_model": 64, "num_heads": 4, "num_layers": 1, "dim_feedforward": 128}
    codec["transformer"] |= {"input_dimension": 64, "output_dimensions": [64]}
    codec["quantizer"] |= {"dimension": 32, "input_dimension": 64, "output_dimension": 64}


def _folder(weights: str, revision: str) -> tuple[Path, dict[str, Any]]:
    """The folder of `weights` and what its `config.json` says, empty where it has none."""
    folder = store.resolve(weights, hub_files=HUB_FILES, revision=revision)
    if not folder.is_dir():
        raise ConfigError(f"weights={weights}: needs the folder that holds the weights, a hub id, or random")
    path = folder / "config.json"
    return folder, json.loads(path.read_text("utf-8")) if path.is_file() else {}


def _file(folder: Path, config: dict[str, Any], key: str, default: str) -> Path:
    name = str(config.get(key) or default)
    if "://" in name:
        return Path(package("moshi.models.loaders").hf_get(name))
    if not (folder / name).is_file():
        raise ConfigError(f"{folder} has no {name}, so it holds no weights of Moshi")
    return folder / name


def _checked(folder: Path, read: Any) -> Parts:
    """What `read()` returns; whatever a damaged or foreign file makes it raise becomes one line."""
    unreadable = (OSError, KeyError, TypeError, ValueError, RuntimeError, package("safetensors").SafetensorError)
    try:
        return read()  # type: ignore[no-any-return]
    except unreadable as exc:
        if "OutOfMemory" in type(exc).__name__:
            raise
        said = (str(exc).strip().splitlines() or [type(exc).__name__])[0]
        raise ConfigError(f"{folder}: these weights cannot be loaded as Moshi's: {said}") from exc


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")
