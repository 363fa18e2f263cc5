"""Checkpoints in the true formats with few and random weights: the real loaders read them, results are noise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from harness.engines import store
from harness.engines.weights import RANDOM_MARK

NINE = (
    "生气/angry", "厌恶/disgusted", "恐惧/fearful", "开心/happy", "中立/neutral", "其他/other", "难过/sad",
    "吃惊/surprised", "<unk>",
)  # fmt: skip
"""tokens.txt of emotion2vec_plus_large as published."""


def mark(path: Path) -> Path:
    """Say that these weights are random, as `harness.engines.weights.label` reads it."""
    (path / RANDOM_MARK if path.is_dir() else path.with_name(f"{path.name}.{RANDOM_MARK}")).touch()
    return path


def openai_whisper(path: Path) -> Path:
    """A checkpoint of openai-whisper: `dims` and `model_state_dict`."""
    import torch
    import whisper

    torch.manual_seed(0)
    dims = whisper.model.ModelDimensions(
        n_mels=80, n_audio_ctx=1500, n_audio_state=8, n_audio_head=2, n_audio_layer=1,
        n_vocab=51_865, n_text_ctx=448, n_text_state=8, n_text_head=2, n_text_layer=1,
    )  # fmt: skip
    model = whisper.model.Whisper(dims)
    # Whisper leaves this one unset until weights are loaded.
    torch.nn.init.normal_(model.decoder.positional_embedding)
    torch.save({"dims": vars(dims), "model_state_dict": model.state_dict()}, path)
    return mark(path)


def transformers_whisper(folder: Path) -> Path:
    """A folder as `save_pretrained` writes it; the tokenizer is that of the pinned Whisper base."""
    import torch
    import transformers

    torch.manual_seed(0)
    tokenizer = transformers.WhisperTokenizerFast(
        tokenizer_file=str(store.resolve("whisper-base") / "tokenizer.json"),
        **{f"{kind}_token": "<|endoftext|>" for kind in ("unk", "bos", "eos", "pad")},
    )
    number = tokenizer.convert_tokens_to_ids
    config = transformers.WhisperConfig(
        vocab_size=51_865, d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=8, decoder_ffn_dim=8, num_mel_bins=80,
    )  # fmt: skip
    model = transformers.WhisperForConditionalGeneration(config)
    languages = ("en", "zh", "de")
    model.generation_config = transformers.GenerationConfig(
        bos_token_id=50_257,
        eos_token_id=50_257,
        pad_token_id=50_257,
        decoder_start_token_id=number("<|startoftranscript|>"),
        is_multilingual=True,
        lang_to_id={f"<|{name}|>": number(f"<|{name}|>") for name in languages},
        task_to_id={"transcribe": number("<|transcribe|>"), "translate": number("<|translate|>")},
        no_timestamps_token_id=number("<|notimestamps|>"),
        prev_sot_token_id=number("<|startofprev|>"),
        max_initial_timestamp_index=50,
        max_length=24,
        return_timestamps=False,
    )
    model.save_pretrained(folder)
    transformers.WhisperProcessor(transformers.WhisperFeatureExtractor(), tokenizer).save_pretrained(folder)
    return mark(folder)


SSL_HIDDEN, CONV, INNER = 128, 16, 32


def utmos22_state() -> dict[str, Any]:
    """Weights of UTMOS22 strong by the authors' names, 128 wide instead of 768, two layers instead of twelve."""
    import torch

    torch.manual_seed(0)
    ssl: dict[str, Any] = {"mask_emb": torch.randn(SSL_HIDDEN)}
    for i, kernel in enumerate((10, 3, 3, 3, 3, 2, 2)):
        ssl[f"feature_extractor.conv_layers.{i}.0.weight"] = torch.randn(CONV, 1 if i == 0 else CONV, kernel) / 4
    ssl |= _pair("feature_extractor.conv_layers.0.2", CONV)
    ssl |= (
        _pair("layer_norm", CONV)
        | _linear("post_extract_proj", CONV, SSL_HIDDEN)
        | _pair("encoder.layer_norm", SSL_HIDDEN)
    )
    ssl |= {
        "encoder.pos_conv.0.bias": torch.randn(SSL_HIDDEN) / 4,
        "encoder.pos_conv.0.weight_g": torch.rand(1, 1, 16),
        "encoder.pos_conv.0.weight_v": torch.randn(SSL_HIDDEN, SSL_HIDDEN // 4, 16),
    }
    for i in range(2):
        layer = f"encoder.layers.{i}"
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            ssl |= _linear(f"{layer}.self_attn.{name}", SSL_HIDDEN, SSL_HIDDEN)
        ssl |= _pair(f"{layer}.self_attn_layer_norm", SSL_HIDDEN) | _pair(f"{layer}.final_layer_norm", SSL_HIDDEN)
        ssl |= _linear(f"{layer}.fc1", SSL_HIDDEN, INNER) | _linear(f"{layer}.fc2", INNER, SSL_HIDDEN)
    blstm = torch.nn.LSTM(SSL_HIDDEN + 8 + 8, 12, batch_first=True, bidirectional=True)
    return {
        **{f"feature_extractors.0.ssl_model.{name}": value for name, value in ssl.items()},
        "feature_extractors.1.embedding.weight": torch.randn(3, 8),
        "output_layers.0.judge_embedding.weight": torch.randn(3000, 8),
        **{f"output_layers.0.decoder_rnn.{name}": value for name, value in blstm.state_dict().items()},
        **_linear("output_layers.1.net.0", 24, 20),
        **_linear("output_layers.1.net.3", 20, 1),
    }


def speechmos_state(state: dict[str, Any]) -> dict[str, Any]:
    """The same weights by SpeechMOS's names: one domain, one listener."""
    renamed = {
        "feature_extractors.0.ssl_model.": "wav2vec2.",
        "output_layers.0.decoder_rnn.": "blstm.",
        "output_layers.1.net.0.": "projection.0.",
        "output_layers.1.net.3.": "projection.2.",
    }
    found = {
        "domain_emb": state["feature_extractors.1.embedding.weight"][0:1],
        "judge_emb": state["output_layers.0.judge_embedding.weight"][288:289],
    }
    for name, value in state.items():
        for old, new in renamed.items():
            if name.startswith(old):
                found[new + name.removeprefix(old)] = value
    return found


def _linear(name: str, inputs: int, outputs: int) -> dict[str, Any]:
    import torch

    return {f"{name}.weight": torch.randn(outputs, inputs) / inputs**0.5, f"{name}.bias": torch.randn(outputs) / 4}


def _pair(name: str, width: int) -> dict[str, Any]:
    import torch

    return {f"{name}.weight": 1 + torch.randn(width) / 8, f"{name}.bias": torch.randn(width) / 8}


def emotion2vec(folder: Path, labels: tuple[str, ...] = NINE, classes: int = 0) -> Path:
    """A folder as emotion2vec_plus_large has it, 32 wide instead of 1024, three blocks."""
    import torch
    from funasr.models.emotion2vec.model import Emotion2vec

    torch.manual_seed(0)
    conf = _emotion2vec_conf()
    model = Emotion2vec(model_conf=conf, vocab_size=classes or len(labels))
    folder.mkdir(exist_ok=True)
    state = {name if name.startswith("proj.") else f"d2v_model.{name}": v for name, v in model.state_dict().items()}
    torch.save({"model": state}, folder / "model.pt")
    (folder / "tokens.txt").write_text("\n".join(labels) + "\n", "utf-8")
    config = {
        "model": "Emotion2vec",
        "model_conf": conf,
        "tokenizer": "CharTokenizer",
        "tokenizer_conf": {"unk_symbol": "<unk>", "split_with_space": True},
        "scope_map": ["d2v_model.", "none"],
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    paths = {"init_param": "model.pt", "config": "config.yaml", "tokenizer_conf": {"token_list": "tokens.txt"}}
    (folder / "configuration.json").write_text(
        json.dumps({"framework": "pytorch", "task": "emotion-recognition", "file_path_metas": paths})
    )
    return mark(folder)


def _emotion2vec_conf() -> dict[str, Any]:
    audio = {
        "type": "AUDIO", "prenet_depth": 1, "prenet_layerdrop": 0.05, "prenet_dropout": 0.1,
        "start_drop_path_rate": 0.0, "end_drop_path_rate": 0.0, "num_extra_tokens": 2,
        "init_extra_token_zero": True, "mask_noise_std": 0.01, "mask_prob_min": None, "mask_prob": 0.5,
        "inverse_mask": False, "mask_prob_adjust": 0.05, "keep_masked_pct": 0.0, "mask_length": 5,
        "add_masks": False, "remove_masks": False, "mask_dropout": 0.0, "encoder_zero_mask": True,
        "mask_channel_prob": 0.0, "mask_channel_length": 64, "ema_local_encoder": False, "local_grad_mult": 1.0,
        "use_alibi_encoder": True, "alibi_scale": 1.0, "learned_alibi": False, "alibi_max_pos": None,
        "learned_alibi_scale": True, "learned_alibi_scale_per_head": True,
        "learned_alibi_scale_per_layer": False, "num_alibi_heads": 4, "model_depth": 2, "decoder": None,
        "extractor_mode": "layer_norm",
        "feature_encoder_spec": "[(16, 10, 5)] + [(16, 3, 2)] * 4 + [(16, 2, 2)] + [(16, 2, 2)]",
        "conv_pos_width": 15, "conv_pos_groups": 4, "conv_pos_depth": 2, "conv_pos_pre_ln": False,
    }  # fmt: skip
    return {
        "loss_beta": 0.0, "loss_scale": None, "depth": 2, "start_drop_path_rate": 0.0, "end_drop_path_rate": 0.0,
        "num_heads": 4, "norm_eps": 1e-5, "norm_affine": True, "encoder_dropout": 0.1, "post_mlp_drop": 0.1,
        "attention_dropout": 0.1, "activation_dropout": 0.0, "dropout_input": 0.0, "layerdrop": 0.05, "embed_dim": 32,
        "mlp_ratio": 2.0, "layer_norm_first": False, "average_top_k_layers": 2, "end_of_block_targets": False,
        "clone_batch": 8, "normalize": True, "modalities": {"audio": audio},
    }  # fmt: skip


def paraformer(folder: Path) -> Path:
    """A folder as paraformer-zh has it, 16 wide, with a vocabulary of eight."""
    import funasr.models.paraformer.cif_predictor
    import funasr.models.paraformer.decoder
    import funasr.models.sanm.encoder  # noqa: F401 - its parts register by being imported
    import torch
    from funasr.models.paraformer.model import Paraformer

    config: dict[str, Any] = {
        "model": "Paraformer",
        "model_conf": {
            "ctc_weight": 0.0, "lsm_weight": 0.1, "length_normalized_loss": True, "predictor_weight": 1.0,
            "predictor_bias": 1, "sampling_ratio": 0.75,
        },
        "encoder": "SANMEncoder",
        "encoder_conf": {
            "output_size": 16, "attention_heads": 2, "linear_units": 16, "num_blocks": 2, "input_layer": "pe",
            "pos_enc_class": "SinusoidalPositionEncoder", "normalize_before": True, "kernel_size": 11,
            "sanm_shfit": 0, "selfattention_layer_type": "sanm",
        },
        "decoder": "ParaformerSANMDecoder",
        "decoder_conf": {
            "attention_heads": 2, "linear_units": 16, "num_blocks": 1, "att_layer_num": 1, "kernel_size": 11,
            "sanm_shfit": 0,
        },
        "predictor": "CifPredictorV2",
        "predictor_conf": {"idim": 16, "threshold": 1.0, "l_order": 1, "r_order": 1, "tail_threshold": 0.45},
        "frontend": "WavFrontend",
        "frontend_conf": {
            "fs": 16_000, "window": "hamming", "n_mels": 80, "frame_length": 25, "frame_shift": 10, "lfr_m": 7,
            "lfr_n": 6,
        },
        "tokenizer": "CharTokenizer",
        "tokenizer_conf": {"unk_symbol": "<unk>", "split_with_space": True},
    }  # fmt: skip
    tokens = ["<blank>", "<s>", "</s>", "今", "天", "好", "hello", "<unk>"]
    torch.manual_seed(0)
    network = Paraformer(**config, input_size=560, vocab_size=len(tokens))
    folder.mkdir(exist_ok=True)
    torch.save(network.state_dict(), folder / "model.pt")
    (folder / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    (folder / "tokens.json").write_text(json.dumps(tokens, ensure_ascii=False), "utf-8")
    paths = {"init_param": "model.pt", "config": "config.yaml", "tokenizer_conf": {"token_list": "tokens.json"}}
    (folder / "configuration.json").write_text(json.dumps({"file_path_metas": paths}))
    return mark(folder)
