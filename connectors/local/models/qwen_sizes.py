"""Configurations of Qwen's Omni models for random weights: the published shapes, and tiny ones for tests.

The published shapes are transformers' defaults but for what the checkpoints' `config.json` overrides, given here;
sources: Qwen/Qwen2.5-Omni-7B, Qwen/Qwen2.5-Omni-3B, Qwen/Qwen3-Omni-30B-A3B-Instruct. Pictures are not used: the
vision tower is built as small as it can be, and says so in the facts.
"""

from __future__ import annotations

from typing import Any

from harness.engines.extras import require

TEXT_VOCABULARY = 152_064
ROPE = {"rope_type": "default", "rope_theta": 1_000_000.0}
SECTIONS = [16, 24, 24]
TINY_SECTIONS = [2, 3, 3]
QWEN25_TALKER = {
    "hidden_size": 896,
    "intermediate_size": 18_944,
    "num_hidden_layers": 24,
    "num_attention_heads": 12,
    "num_key_value_heads": 4,
    "head_dim": 128,
}
QWEN3_CODES = {
    "codec_bos_id": 2_149,
    "codec_eos_token_id": 2_150,
    "codec_pad_id": 2_148,
    "codec_nothink_id": 2_155,
    "codec_think_bos_id": 2_156,
    "codec_think_eos_id": 2_157,
    "speaker_id": {"chelsie": 2_301, "ethan": 2_302, "aiden": 2_303},
}
PICTURES = {"vision_start_token_id": 151_652, "vision_end_token_id": 151_653}
"""In the checkpoints' `thinker_config`, though no class has them; `generate` reads them."""
QWEN3_MARKS = {"audio_token_id": 151_675, "audio_start_token_id": 151_669}


def _rope(sections: list[int], **more: Any) -> dict[str, Any]:
    return {**ROPE, "mrope_section": sections, **more}


def qwen25(size: str) -> Any:
    """A `Qwen2_5OmniConfig`. size: `7b`, `3b` or `tiny`."""
    vision = {"depth": 1, "hidden_size": 32, "intermediate_size": 32, "num_heads": 2, "fullatt_block_indexes": [0]}
    if size == "tiny":
        return _qwen25_tiny(vision)
    text: dict[str, Any] = {"rope_parameters": _rope(SECTIONS), "tie_word_embeddings": False}
    width = 3_584
    if size == "3b":
        width = 2_048
        text |= {"vocab_size": 151_936, "hidden_size": width, "intermediate_size": 11_008, "num_hidden_layers": 36}
        text |= {"num_attention_heads": 16, "num_key_value_heads": 2}
    talker = {**QWEN25_TALKER, "embedding_size": width, "rope_parameters": _rope(SECTIONS)}
    thinker = {
        "text_config": text,
        "audio_config": {"output_dim": width},
        "vision_config": {**vision, "out_hidden_size": width},
        **PICTURES,
    }
    return require("transformers", "local").Qwen2_5OmniConfig(thinker_config=thinker, talker_config=talker)


def _qwen25_tiny(vision: dict[str, Any]) -> Any:
    layers: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    layers |= {"num_key_value_heads": 1, "rope_parameters": _rope(TINY_SECTIONS)}
    audio = {"encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 32, "d_model": 16, "output_dim": 32}
    dit = {
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "head_dim": 16,
        "emb_dim": 16,
        "look_ahead_layers": [1],
        "look_backward_layers": [0, 2],
        "enc_channels": [16, 16, 16, 16, 48],
        "enc_emb_dim": 12,
        "enc_dim": 8,
        "enc_attention_channels": 8,
        "enc_se_channels": 8,
        "enc_res2net_scale": 2,
    }
    vocoder = {"upsample_initial_channel": 64, "resblock_kernel_sizes": [3], "resblock_dilation_sizes": [[1, 3, 5]]}
    return require("transformers", "local").Qwen2_5OmniConfig(
        thinker_config={
            "text_config": {**layers, "vocab_size": TEXT_VOCABULARY, "tie_word_embeddings": False},
            "audio_config": audio,
            "vision_config": {**vision, "out_hidden_size": 32},
            **PICTURES,
        },
        talker_config={**layers, "head_dim": 16, "embedding_size": 32},
        token2wav_config={"dit_config": dit, "bigvgan_config": vocoder},
    )


def qwen3(size: str) -> Any:
    """A `Qwen3OmniMoeConfig`. size: `30b` (30B-A3B) or `tiny`."""
    vision = {"depth": 1, "hidden_size": 32, "intermediate_size": 32, "num_heads": 2, "deepstack_visual_indexes": [0]}
    if size == "tiny":
        return _qwen3_tiny(vision)
    text = {
        "vocab_size": TEXT_VOCABULARY,
        "hidden_size": 2_048,
        "num_hidden_layers": 48,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "moe_intermediate_size": 768,
        "rope_parameters": _rope(SECTIONS, mrope_interleaved=True),
    }
    talker = {
        "hidden_size": 1_024,
        "num_hidden_layers": 20,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 128,
        "moe_intermediate_size": 384,
        "shared_expert_intermediate_size": 768,
        "num_experts_per_tok": 6,
        "norm_topk_prob": True,
        "rope_parameters": _rope(SECTIONS, mrope_interleaved=True),
    }
    return _qwen3(
        text, {"output_dim": 2_048}, {**vision, "out_hidden_size": 2_048}, talker, {"num_code_groups": 16}, {}, 24
    )


def _qwen3_tiny(vision: dict[str, Any]) -> Any:
    layers: dict[str, Any] = {
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "num_hidden_layers": 3,
    }
    experts: dict[str, Any] = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
    rope = _rope(TINY_SECTIONS, mrope_interleaved=True)
    text = {**layers, **experts, "vocab_size": TEXT_VOCABULARY, "hidden_size": 32, "intermediate_size": 32}
    audio = {"encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 32, "d_model": 16, "output_dim": 32}
    audio["downsample_hidden_size"] = 4
    talker = {**layers, **experts, "hidden_size": 24, "intermediate_size": 32, "shared_expert_intermediate_size": 16}
    predictor = {**layers, "hidden_size": 24, "intermediate_size": 32, "num_code_groups": 4, "num_hidden_layers": 1}
    wave = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "num_quantizers": 4,
        "sliding_window": 6,
        "decoder_dim": 32,
    }
    text |= {"rope_parameters": rope}
    talker |= {"rope_parameters": rope}
    return _qwen3(text, audio, {**vision, "out_hidden_size": 32}, talker, predictor, wave, 1)


def _qwen3(
    text: dict[str, Any],
    audio: dict[str, Any],
    vision: dict[str, Any],
    talker: dict[str, Any],
    predictor: dict[str, Any],
    wave: dict[str, Any],
    heard_layer: int,
) -> Any:
    return require("transformers", "local").Qwen3OmniMoeConfig(
        thinker_config={
            "text_config": text,
            "audio_config": audio,
            "vision_config": vision,
            **PICTURES,
            **QWEN3_MARKS,
        },
        talker_config={
            "text_config": talker,
            "code_predictor_config": predictor,
            "num_code_groups": predictor["num_code_groups"],
            "thinker_hidden_size": text["hidden_size"],
            "accept_hidden_layer": heard_layer,
            "spatial_merge_size": 2,
            **QWEN3_MARKS,
            **QWEN3_CODES,
        },
        code2wav_config=wave,
    )
