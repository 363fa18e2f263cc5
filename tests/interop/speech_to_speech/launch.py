"""Hugging Face's speech-to-speech server, without what it would fetch from a hub: `python launch.py PORT BACKEND`.

Everything is theirs but two downloads: Silero's detector comes from its own package, and sentences are split by a
rule. The models are asked for at the URL BACKEND. WebRTC uses the loopback and asks no STUN server.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any

import aioice.ice
import nltk
import nltk.tokenize
import silero_vad
import torch

WARM_UPS = 5
SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")


def sentences(text: str, *_: Any, **__: Any) -> list[str]:
    return [part for part in SENTENCE_END.split(text.strip()) if part]


def detector() -> Any:
    """Silero, past the first calls, in which torch compiles it for seconds."""
    model = silero_vad.load_silero_vad(onnx=False)
    for _ in range(WARM_UPS):
        model(torch.zeros(512), 16_000)
    model.reset_states()
    return model


def options(port: str, backend: str) -> list[str]:
    pairs = {
        "host": "127.0.0.1",
        "port": port,
        "device": "cpu",
        "stt": "openai",
        "openai_stt_base_url": backend,
        "openai_stt_model": "stub",
        "llm_backend": "chat-completions",
        "model_name": "stub",
        "responses_api_base_url": backend,
        "responses_api_api_key": "none",
        "tts": "openai",
        "openai_tts_base_url": backend,
        "openai_tts_model": "stub",
        "openai_tts_sample_rate": "24000",
    }
    return ["serve", *(part for name, value in pairs.items() for part in (f"--{name}", value)), "--no_smart_turn"]


if __name__ == "__main__":
    os.environ["SPEECH_TO_SPEECH_ICE_SERVERS"] = "[]"
    aioice.ice.get_host_addresses = lambda *_, **__: ["127.0.0.1"]
    torch.set_num_threads(1)
    torch.hub.load = lambda *_, **__: (detector(), None)
    nltk.download = lambda *_, **__: True
    nltk.data.find = lambda *_, **__: True
    nltk.sent_tokenize = nltk.tokenize.sent_tokenize = sentences

    from speech_to_speech import cli

    sys.argv = ["speech-to-speech", *options(*sys.argv[1:])]
    sys.exit(cli.main())
