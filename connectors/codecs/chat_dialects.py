"""Chat-completions services as rows of data: where they are and what they want in a request.

What they answer is told from each chunk's own shape, whatever the dialect. Source: protocol sheet, section 12.
"""

from __future__ import annotations

from typing import Literal

import msgspec

DialectName = Literal["openai", "dashscope", "vllm-omni"]


class ChatDialect(msgspec.Struct, frozen=True, kw_only=True):
    """One service. url: base, empty where everybody runs their own; key_env: environment variable of its key.

    audio_format: what is asked for in `audio.format`. input_prefix: stands before the base64 of the user's audio.
    input_rate_hz: of the user's WAV.
    """

    name: DialectName
    url: str = ""
    key_env: str | None = None
    model: str | None = None
    voice: str | None = None
    audio_format: str = "pcm16"
    input_prefix: str = ""
    input_rate_hz: int = 24_000


DIALECTS: dict[str, ChatDialect] = {
    row.name: row
    for row in (
        ChatDialect(
            name="openai",
            url="https://api.openai.com/v1",
            key_env="OPENAI_API_KEY",
            model="gpt-audio-1.5",
            voice="alloy",
        ),
        ChatDialect(
            name="dashscope",
            url="https://dashscope.aliyuncs.com/compatible-mode/v1",
            key_env="DASHSCOPE_API_KEY",
            model="qwen3-omni-flash",
            voice="Cherry",
            audio_format="wav",
            input_prefix="data:;base64,",
            input_rate_hz=16_000,
        ),
        ChatDialect(name="vllm-omni", audio_format="wav", input_rate_hz=16_000),
    )
}
