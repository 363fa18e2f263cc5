"""The network of UTMOS22 strong (Saeki et al. 2022, arXiv 2204.02152), and its checkpoints in either naming.

wav2vec 2.0 base, two embeddings appended to each frame (data domain, then listener), a bidirectional LSTM, and two
linear layers. Imports torch: only `harness.engines.quality_utmos22` imports this.
"""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn

from harness.core.errors import ConfigError
from harness.engines.checkpoint import read_tensors

_SSL_NAMES = (
    (r"^feature_extractor\.conv_layers\.(\d+)\.0\.", r"feature_extractor.conv_layers.\1.conv."),
    (r"^feature_extractor\.conv_layers\.0\.2\.", r"feature_extractor.conv_layers.0.layer_norm."),
    (r"^layer_norm\.", "feature_projection.layer_norm."),
    (r"^post_extract_proj\.", "feature_projection.projection."),
    (r"^encoder\.pos_conv\.0\.weight_g$", "encoder.pos_conv_embed.conv.parametrizations.weight.original0"),
    (r"^encoder\.pos_conv\.0\.weight_v$", "encoder.pos_conv_embed.conv.parametrizations.weight.original1"),
    (r"^encoder\.pos_conv\.0\.bias$", "encoder.pos_conv_embed.conv.bias"),
    (r"^encoder\.layers\.(\d+)\.self_attn\.", r"encoder.layers.\1.attention."),
    (r"^encoder\.layers\.(\d+)\.self_attn_layer_norm\.", r"encoder.layers.\1.layer_norm."),
    (r"^encoder\.layers\.(\d+)\.fc1\.", r"encoder.layers.\1.feed_forward.intermediate_dense."),
    (r"^encoder\.layers\.(\d+)\.fc2\.", r"encoder.layers.\1.feed_forward.output_dense."),
    (r"^mask_emb$", "masked_spec_embed"),
)
"""fairseq's names of wav2vec 2.0 to those of Transformers."""
_HEAD_WIDTH = 64
"""wav2vec 2.0 base has 12 heads of 64; the checkpoint does not tell them apart."""

Weights = dict[str, Any]


class Network:
    """(batch, samples) at 16 kHz to (batch,) MOS, without gradients."""

    def __init__(self, ssl: Weights, blstm: Weights, projection: Weights, domain: Any, listener: Any) -> None:
        self._ssl = transformers.Wav2Vec2Model(_ssl_config(ssl)).eval()
        width = blstm["weight_ih_l0"].shape[1]
        self._blstm = nn.LSTM(width, blstm["weight_hh_l0"].shape[1], batch_first=True, bidirectional=True)
        hidden, joined = projection["first.weight"].shape
        self._layers = nn.ModuleDict({"first": nn.Linear(joined, hidden), "last": nn.Linear(hidden, 1)})
        self._conditions = torch.cat((domain.reshape(-1), listener.reshape(-1)))
        self._ssl.load_state_dict(ssl)
        self._blstm.load_state_dict(blstm)
        self._layers.load_state_dict(projection)

    def to(self, device: str) -> Network:
        for module in (self._ssl, self._blstm, self._layers):
            module.to(device)
        self._conditions = self._conditions.to(device)
        return self

    def __call__(self, wave: Any) -> Any:
        with torch.inference_mode():
            frames = self._ssl(wave).last_hidden_state
            conditions = self._conditions.expand(frames.shape[0], frames.shape[1], -1)
            hidden, _ = self._blstm(torch.cat((frames, conditions), dim=2))
            scores = self._layers["last"](torch.relu(self._layers["first"](hidden)))
            return scores.mean(dim=1).squeeze(1) * 2 + 3


def load_network(path: Path, *, domain: int, listener: int) -> Network:
    """The network of a checkpoint, ready to score. A checkpoint of one domain and listener (SpeechMOS's) must have
    been made for these. Raises ConfigError for a file that is no checkpoint of this network."""
    try:
        state = read_tensors(path)
        return Network(*(_speechmos(state) if "domain_emb" in state else _official(state, domain, listener)))
    except (KeyError, IndexError, RuntimeError, ValueError, TypeError, AttributeError, EOFError) as exc:
        reason = str(exc).splitlines()[0] if str(exc) else type(exc).__name__
        raise ConfigError(f"{path} is no checkpoint of UTMOS22 strong without phoneme encoder: {reason}") from exc
    except (OSError, pickle.UnpicklingError) as exc:
        raise ConfigError(f"{path} cannot be read as a checkpoint: {exc}") from exc


def _official(state: Weights, domain: int, listener: int) -> tuple[Weights, Weights, Weights, Any, Any]:
    projection = _part(state, "output_layers.1.net.")
    return (
        _ssl(_part(state, "feature_extractors.0.ssl_model.")),
        _part(state, "output_layers.0.decoder_rnn."),
        _named(projection, "0", "3"),
        state["feature_extractors.1.embedding.weight"][domain],
        state["output_layers.0.judge_embedding.weight"][listener],
    )


def _speechmos(state: Weights) -> tuple[Weights, Weights, Weights, Any, Any]:
    projection = _part(state, "projection.")
    return (
        _ssl(_part(state, "wav2vec2.")),
        _part(state, "blstm."),
        _named(projection, "0", "2"),
        state["domain_emb"],
        state["judge_emb"],
    )


def _part(state: Weights, prefix: str) -> Weights:
    part = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
    if not part:
        raise KeyError(f"it holds no {prefix}*")
    return part


def _named(projection: Weights, first: str, last: str) -> Weights:
    return {
        f"{name}.{kind}": projection[f"{number}.{kind}"]
        for name, number in (("first", first), ("last", last))
        for kind in ("weight", "bias")
    }


def _ssl(part: Weights) -> Weights:
    named = {}
    for name, value in part.items():
        for pattern, replacement in _SSL_NAMES:
            name, changed = re.subn(pattern, replacement, name)
            if changed:
                break
        named[name] = value
    return named


def _ssl_config(ssl: Weights) -> Any:
    """The configuration that the shapes tell; all else is wav2vec 2.0 base."""
    convs = [ssl[f"feature_extractor.conv_layers.{i}.conv.weight"] for i in range(7)]
    hidden = ssl["feature_projection.projection.weight"].shape[0]
    layers = 1 + max(int(name.split(".")[2]) for name in ssl if name.startswith("encoder.layers."))
    position = ssl["encoder.pos_conv_embed.conv.parametrizations.weight.original1"]
    return transformers.Wav2Vec2Config(
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=max(1, hidden // _HEAD_WIDTH),
        intermediate_size=ssl["encoder.layers.0.feed_forward.intermediate_dense.weight"].shape[0],
        conv_dim=[conv.shape[0] for conv in convs],
        conv_kernel=[conv.shape[2] for conv in convs],
        conv_stride=[5, 2, 2, 2, 2, 2, 2],
        num_conv_pos_embeddings=position.shape[2],
        num_conv_pos_embedding_groups=hidden // position.shape[1],
        feat_extract_norm="group",
        do_stable_layer_norm=False,
        apply_spec_augment=False,
    )
