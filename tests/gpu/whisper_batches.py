"""Whisper's shape with random weights, in batches: `python -m tests.gpu.whisper_batches JSON` prints its figures.

Greedy steps with a cache over whole 30 s windows; a real answer ends sooner or later, here each has `tokens` tokens.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

from connectors.local.device import cpu_threads, place, synchronize
from connectors.local.facts import model_facts
from connectors.local.models.qwen_steps import cache_argument
from connectors.local.random_weights import build

WINDOW_S = 30
MEL_RATE_HZ = 16_000
SHAPES = {
    # https://huggingface.co/openai/whisper-large-v3/blob/main/config.json
    "large-v3": {"d_model": 1280, "layers": 32, "heads": 20, "ffn": 5120, "vocab": 51_866, "mels": 128},
    "tiny": {"d_model": 64, "layers": 1, "heads": 2, "ffn": 128, "vocab": 1000, "mels": 80},
}


def measure(*, size: str, device: str, batch: int, tokens: int, rounds: int) -> dict[str, Any]:
    """Seconds of sound a second, the best of `rounds` after one to warm up, and where the time went."""
    import torch
    import transformers

    at = place(device)
    if at.device.type == "cpu":
        torch.set_num_threads(cpu_threads())
    dtype = str(at.dtype).removeprefix("torch.")
    config = _config(transformers, SHAPES[size])
    kind = transformers.WhisperForConditionalGeneration
    model = build(lambda: kind(config), device=str(at.device), dtype=dtype)
    extractor = transformers.WhisperFeatureExtractor(feature_size=config.num_mel_bins)
    noise = np.random.default_rng(0).standard_normal(WINDOW_S * MEL_RATE_HZ).astype(np.float32)
    begin = time.monotonic()
    mels = extractor([noise] * batch, sampling_rate=MEL_RATE_HZ, return_tensors="pt").input_features
    features_s = time.monotonic() - begin
    mels = mels.to(device=at.device, dtype=at.dtype)
    encoded_s, decoded_s = [], []
    with torch.inference_mode():
        for _ in range(rounds + 1):
            begin = time.monotonic()
            heard = model.model.encoder(mels)
            synchronize(at.device)
            middle = time.monotonic()
            _decode(torch, transformers, model, heard, tokens)
            synchronize(at.device)
            encoded_s.append(middle - begin)
            decoded_s.append(time.monotonic() - middle)
    total_s = min(sum(pair) for pair in zip(encoded_s[1:], decoded_s[1:], strict=True))
    return {
        "batch": batch,
        "tokens": tokens,
        "sound_s_per_s": round(batch * WINDOW_S / total_s, 2),
        "encoder_ms": round(min(encoded_s[1:]) * 1e3, 2),
        "step_ms": round(min(decoded_s[1:]) / tokens * 1e3, 3),
        "features_ms_a_window": round(features_s / batch * 1e3, 2),
        "facts": model_facts(at, weights="random", model=model, size=size),
    }


def _decode(torch: Any, transformers: Any, model: Any, heard: Any, tokens: int) -> None:
    ids = torch.ones((heard.last_hidden_state.shape[0], 1), dtype=torch.long, device=heard.last_hidden_state.device)
    cache = transformers.EncoderDecoderCache(transformers.DynamicCache(), transformers.DynamicCache())
    for _ in range(tokens):
        out = model(decoder_input_ids=ids, encoder_outputs=heard, use_cache=True, **{cache_argument(model): cache})
        ids = out.logits[:, -1:].argmax(dim=-1)
        # The token is looked at on the host after each step, as any decoder that can stop does.
        ids.cpu()


def _config(transformers: Any, shape: dict[str, int]) -> Any:
    return transformers.WhisperConfig(
        d_model=shape["d_model"],
        encoder_layers=shape["layers"],
        decoder_layers=shape["layers"],
        encoder_attention_heads=shape["heads"],
        decoder_attention_heads=shape["heads"],
        encoder_ffn_dim=shape["ffn"],
        decoder_ffn_dim=shape["ffn"],
        vocab_size=shape["vocab"],
        num_mel_bins=shape["mels"],
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=0,
        decoder_start_token_id=0,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
