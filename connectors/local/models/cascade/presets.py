"""Named choices of engines: `--set preset=NAME`; what is set beside it wins."""

from __future__ import annotations

from harness.core.errors import ConfigError, nearest

PRESETS: dict[str, dict[str, str]] = {
    "small": {"asr": "faster-whisper:whisper-base", "llm": "llama.cpp", "tts": "kokoro"},
    "vocalbench-zh": {
        "asr": "transformers:openai/whisper-large-v3",
        "llm": "transformers:Qwen/Qwen3-8B",
        "tts": "http://127.0.0.1:50000/v1",
        "tts_model": "CosyVoice2-0.5B",
    },
}
"""small: on any CPU, from packages. vocalbench-zh: the reference cascade of VocalBench-zh; its CosyVoice2 is behind an
OpenAI-compatible speech server, or in this process with `tts=cosyvoice2:FOLDER`."""


def preset(name: str) -> dict[str, str]:
    """The settings that `name` stands for. Raises ConfigError."""
    if name not in PRESETS:
        raise ConfigError(f"preset={name}: no such preset; {nearest(name, PRESETS)}")
    return PRESETS[name]
