"""A plain WebSocket user of the agent: sends JSON, collects what comes. Knows no codec of ours."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import websockets
from websockets.asyncio.client import ClientConnection

from connectors.agent import Agent, Knobs, serve
from connectors.agent.speech import BUNDLED

PATIENCE_S = 30.0
"""Longest wait for one frame on a busy machine; what is asserted is order, not time."""
RATE_HZ = 24_000
MANIFEST = {row["id"]: row for row in map(json.loads, (BUNDLED / "manifest.jsonl").read_text("utf-8").splitlines())}


def spoken(name: str = "answer-en-04", *, seconds: float | None = None) -> bytes:
    """Real speech for the user's mouth (the agent's own answers serve), as PCM16 at 24 kHz, from its first word."""
    row = MANIFEST[name]
    samples, rate_hz = soundfile.read(BUNDLED / row["audio"], dtype="int16")
    assert rate_hz == RATE_HZ
    speech = samples[row["speech_start"] : row["speech_end"]]
    return speech[: None if seconds is None else round(seconds * RATE_HZ)].astype("<i2").tobytes()


def silence(seconds: float) -> bytes:
    return b"\0\0" * round(seconds * RATE_HZ)


class Talk:
    """One connection. frames: everything received, in order."""

    def __init__(self, ws: ClientConnection, agent: Agent) -> None:
        self.ws = ws
        self.agent = agent
        self.frames: list[dict[str, Any]] = []

    async def send(self, name: str, **body: Any) -> None:
        await self.ws.send(json.dumps({"type": name, **body}))

    async def say(self, pcm: bytes, chunk_ms: int = 20) -> None:
        """Append audio in chunks, faster than real time."""
        step = RATE_HZ * chunk_ms // 1000 * 2
        for at in range(0, len(pcm), step):
            await self.send("input_audio_buffer.append", audio=base64.b64encode(pcm[at : at + step]).decode())

    async def manual(self, **session: Any) -> None:
        await self.send("session.update", session={"type": "realtime", "audio": {"input": {"turn_detection": None}}})
        await self.until("session.updated")

    async def ask(self) -> None:
        """A whole manual turn's input."""
        await self.say(spoken(seconds=0.5))
        await self.send("input_audio_buffer.commit")
        await self.send("response.create")

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            data = await self.ws.recv()
        try:
            frame = json.loads(data)
        except json.JSONDecodeError:
            frame = {"type": "broken", "data": data}
        self.frames.append(frame)
        return frame

    async def until(self, name: str) -> dict[str, Any]:
        while True:
            frame = await self.next()
            if frame["type"] == name:
                return frame

    async def until_closed(self) -> websockets.ConnectionClosed:
        try:
            while True:
                await self.next()
        except websockets.ConnectionClosed as closed:
            return closed

    def types(self, *kept: str) -> list[str]:
        """Types in order, runs of one type once; only those that contain one of `kept`, if any are given."""
        names = [frame["type"] for frame in self.frames]
        names = [name for name in names if not kept or any(part in name for part in kept)]
        return [name for index, name in enumerate(names) if index == 0 or names[index - 1] != name]

    def audio(self, response: str | None = None) -> bytes:
        deltas = [f for f in self.frames if f["type"] in ("response.output_audio.delta", "response.audio.delta")]
        return b"".join(base64.b64decode(f["delta"]) for f in deltas if response in (None, f["response_id"]))

    def text(self) -> str:
        return "".join(f["delta"] for f in self.frames if f["type"].endswith("audio_transcript.delta"))

    def truth(self, *kinds: str) -> list[dict[str, Any]]:
        return self.agent.truth.records(*kinds)


@asynccontextmanager
async def agent_with(answers: Path = BUNDLED, **knobs: Any) -> AsyncIterator[Agent]:
    async with serve(Knobs(**knobs), keep_truth=True, answers=answers) as agent:
        yield agent


@asynccontextmanager
async def talking(agent: Agent, **options: Any) -> AsyncIterator[Talk]:
    options = {"compression": None, "max_size": None, "ping_interval": None} | options
    async with websockets.connect(agent.url + "?model=test", **options) as ws:
        talk = Talk(ws, agent)
        await talk.until("session.created")
        yield talk


@asynccontextmanager
async def talk_with(**knobs: Any) -> AsyncIterator[Talk]:
    """An agent with these knobs and one connection to it, past `session.created`."""
    async with agent_with(**knobs) as agent, talking(agent) as talk:
        yield talk


def answer_samples(name: str) -> bytes:
    samples, _ = soundfile.read(BUNDLED / MANIFEST[name]["audio"], dtype="int16")
    return np.asarray(samples).astype("<i2").tobytes()
