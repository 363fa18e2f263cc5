"""The three models behind Hugging Face's server, as small as can be: recogniser, language model and voice over HTTP.

`python backend.py PORT HEARD SAID SPEECH`: the recogniser understands HEARD, the model writes SAID word by word, the
voice streams the file SPEECH (PCM16 at 24 kHz), in OpenAI's shapes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from aiohttp import web

WORD_S = 0.06
BLOCK = 4800
"""100 ms of speech a write."""
USAGE = {"prompt_tokens": 10, "completion_tokens": 12, "total_tokens": 22}


class Backend:
    """Answers every request alike."""

    def __init__(self, heard: str, said: str, speech: bytes) -> None:
        self._heard, self._said, self._speech = heard, said, speech

    async def transcribe(self, request: web.Request) -> web.Response:
        await request.post()
        return web.json_response({"text": self._heard})

    async def complete(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        base: dict[str, Any] = {"id": "chat_1", "created": 0, "model": asked["model"]}
        if not asked.get("stream"):
            message = {"role": "assistant", "content": self._said}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            return web.json_response({**base, "object": "chat.completion", "choices": [choice], "usage": USAGE})
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for delta, reason in [*((word, None) for word in _words(self._said)), ("", "stop")]:
            choice = {"index": 0, "delta": {"role": "assistant", "content": delta}, "finish_reason": reason}
            await response.write(_event({**base, "object": "chat.completion.chunk", "choices": [choice]}))
            await asyncio.sleep(WORD_S)
        await response.write(_event({**base, "object": "chat.completion.chunk", "choices": [], "usage": USAGE}))
        await response.write(b"data: [DONE]\n\n")
        return response

    async def speak(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "audio/pcm"})
        await response.prepare(request)
        for at in range(0, len(self._speech), BLOCK):
            await response.write(self._speech[at : at + BLOCK])
        return response


def _words(text: str) -> list[str]:
    first, *rest = text.split()
    return [first, *(f" {word}" for word in rest)]


def _event(payload: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def main(port: str, heard: str, said: str, speech: str) -> None:
    backend = Backend(heard, said, Path(speech).read_bytes())
    app = web.Application(client_max_size=2**27)
    app.router.add_post("/v1/audio/transcriptions", backend.transcribe)
    app.router.add_post("/v1/chat/completions", backend.complete)
    app.router.add_post("/v1/audio/speech", backend.speak)
    web.run_app(app, host="127.0.0.1", port=int(port), print=None)


if __name__ == "__main__":
    main(*sys.argv[1:])
