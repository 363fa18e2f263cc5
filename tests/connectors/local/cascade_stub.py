"""A server with the real API of an LLM and a voice behind HTTP, whose answers are by rule; and engines made by hand."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from contextlib import contextmanager

import numpy as np
from aiohttp import web

ENGLISH = ["Yes", ", I", " can. Good", "bye."]
CHINESE = ["好", "的。"]


class Stub:
    """Chat completions over SSE and `/audio/speech` as PCM. refuse: a status with an error instead. token_s: between
    two tokens. rate_hz: of the sound; wav: with a header that says so. tone_s: of every clause."""

    def __init__(self):
        self.asked = []
        self.spoken = []
        self.headers = []
        self.left_early = threading.Event()
        self.refuse = 0
        self.break_after = None
        self.token_s = 0.0
        self.rate_hz = 24_000
        self.wav = False
        self.tone_s = 0.3
        self.url = ""

    async def chat(self, request):
        body = await request.json()
        self.asked.append(body)
        self.headers.append(dict(request.headers))
        if self.refuse:
            message = f"no, {request.headers.get('Authorization', 'stranger')}"
            return web.json_response({"error": {"message": message, "code": "no"}}, status=self.refuse)
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        question = body["messages"][-1]["content"]
        tokens = CHINESE if any("\u4e00" <= char <= "\u9fff" for char in question) else ENGLISH
        try:
            for count, token in enumerate(tokens):
                if count == self.break_after:
                    await answer.write(b'data: {"error": {"message": "out of memory"}}\n\n')
                    return answer
                data = json.dumps({"choices": [{"delta": {"content": token}}]}, ensure_ascii=False)
                await answer.write(f"data: {data}\n\n".encode())
                await asyncio.sleep(self.token_s)
            await answer.write(b"data: [DONE]\n\n")
        except (ConnectionError, asyncio.CancelledError):
            self.left_early.set()
            raise
        return answer

    async def speech(self, request):
        body = await request.json()
        self.spoken.append(body)
        answer = web.StreamResponse()
        await answer.prepare(request)
        sound = tone(self.tone_s, self.rate_hz).tobytes()
        header = wav_head(self.rate_hz) if self.wav else b""
        whole = header + sound
        for start in range(0, len(whole), 4001):  # odd: samples are cut in the middle
            await answer.write(whole[start : start + 4001])
        return answer


@contextmanager
def stub_server():
    stub, loop, ready = Stub(), asyncio.new_event_loop(), threading.Event()

    async def serve():
        app = web.Application()
        app.router.add_post("/v1/chat/completions", stub.chat)
        app.router.add_post("/v1/audio/speech", stub.speech)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        stub.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/v1"
        stub.over = asyncio.Event()
        ready.set()
        await stub.over.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(10)
    try:
        yield stub
    finally:
        loop.call_soon_threadsafe(stub.over.set)
        thread.join(10)
        loop.close()


def tone(seconds, rate_hz, hz=440.0):
    """A sine at half scale, int16."""
    n = round(seconds * rate_hz)
    return (16_384 * np.sin(2 * np.pi * hz * np.arange(n) / rate_hz)).astype(np.int16)


def wav_head(rate_hz):
    from connectors.codecs.wav import wav_header

    return wav_header(rate_hz, 0xFFFFFF00)


class FakeLlm:
    """Gives `tokens`; `hold` blocks it before the token of that number until `release` is set."""

    def __init__(self, tokens, hold=None):
        self.facts = {"llm": "fake"}
        self.tokens = tokens
        self.hold = hold
        self.release = threading.Event()
        self.messages = []
        self.given = 0

    def load(self):
        pass

    def stream(self, messages, stop):
        self.messages.append(list(messages))
        for number, token in enumerate(self.tokens):
            if number == self.hold:
                self.release.wait(10)
            if stop.is_set():
                return
            self.given += 1
            yield token


class FakeVoice:
    """One packet of 0.1 s a clause; `slow_s` is what it takes."""

    def __init__(self, slow_s=0.0):
        self.facts = {"tts": "fake"}
        self.slow_s = slow_s
        self.said = []

    def load(self):
        pass

    def speak(self, text, language, voice, stop):
        time.sleep(self.slow_s)
        self.said.append((text, language))
        yield np.zeros(2_400, dtype=np.float32)
