"""A client of Google's own package: Gemini Live turns with whatever listens at a URL; prints what it saw as JSON.

Arguments: the https base URL, a file of PCM16 at 16 kHz that is said. Needs nothing of this project; the server's
certificate authority is named by SSL_CERT_FILE.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from google import genai
from google.genai import types

MODEL = "gemini-2.5-flash-native-audio-preview-12-2025"
PATIENCE_S = 30
CHUNK = 1280
"""40 ms."""
SILENCE = bytes(16_000 * 2)


class Turn:
    """What one turn brought."""

    def __init__(self) -> None:
        self.audio = b""
        self.mimes: set[str] = set()
        self.said = ""
        self.heard = ""
        self.flags: list[str] = []
        self.usage: dict[str, Any] | None = None
        self.handle: str | None = None

    def take(self, message: Any) -> None:
        content = message.server_content
        if message.usage_metadata is not None:
            self.usage = message.usage_metadata.model_dump(exclude_none=True)
        if message.session_resumption_update is not None:
            self.handle = message.session_resumption_update.new_handle
        if content is None:
            return
        for part in content.model_turn.parts if content.model_turn else ():
            self.audio += part.inline_data.data
            self.mimes.add(part.inline_data.mime_type)
        self.said += content.output_transcription.text if content.output_transcription else ""
        self.heard += content.input_transcription.text if content.input_transcription else ""
        self.flags += [
            name for name in ("interrupted", "generation_complete", "turn_complete") if getattr(content, name)
        ]

    def seen(self) -> dict[str, Any]:
        return {
            "audio_bytes": len(self.audio),
            "mimes": sorted(self.mimes),
            "said": self.said,
            "heard": self.heard,
            "flags": self.flags,
            "usage": self.usage,
            "handle": self.handle,
        }


async def say(session: Any, pcm: bytes) -> None:
    for at in range(0, len(pcm), CHUNK):
        blob = types.Blob(data=pcm[at : at + CHUNK], mime_type="audio/pcm;rate=16000")
        await session.send_realtime_input(audio=blob)


async def answer(session: Any, interruption: bytes = b"") -> dict[str, Any]:
    """One turn of the model; `interruption` is said when its first audio arrives."""
    turn = Turn()
    async with asyncio.timeout(PATIENCE_S):
        async for message in session.receive():
            turn.take(message)
            if turn.audio and interruption:
                await say(session, interruption)
                interruption = b""
    return turn.seen()


def settings(**more: Any) -> types.LiveConnectConfig:
    return types.LiveConnectConfig(
        response_modalities=[types.Modality.AUDIO],
        input_audio_transcription=types.AudioTranscriptionConfig(),
        output_audio_transcription=types.AudioTranscriptionConfig(),
        **more,
    )


async def main(url: str, speech: bytes) -> dict[str, Any]:
    client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=url))
    resuming = settings(session_resumption=types.SessionResumptionConfig())
    async with client.aio.live.connect(model=MODEL, config=resuming) as session:
        await say(session, speech + SILENCE)
        detected = await answer(session)
        await say(session, speech + SILENCE)
        interrupted = await answer(session, interruption=speech + SILENCE)
        after = await answer(session)
    manual_turns = types.RealtimeInputConfig(
        automatic_activity_detection=types.AutomaticActivityDetection(disabled=True)
    )
    async with client.aio.live.connect(model=MODEL, config=settings(realtime_input_config=manual_turns)) as session:
        await session.send_realtime_input(activity_start=types.ActivityStart())
        await say(session, speech)
        await session.send_realtime_input(activity_end=types.ActivityEnd())
        manual = await answer(session)
        content = types.Content(role="user", parts=[types.Part(text="And in writing?")])
        await session.send_client_content(turns=content, turn_complete=True)
        written = await answer(session)
    return {
        "detected": detected,
        "interrupted": interrupted,
        "after": after,
        "manual": manual,
        "written": written,
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1], Path(sys.argv[2]).read_bytes()))))
