"""The agent and OpenAI's own Python client understand each other."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from openai import AsyncOpenAI

from tests.connectors.agent.talk import RATE_HZ, agent_with, silence, spoken

pytestmark = pytest.mark.interop
CHUNK = RATE_HZ // 10 * 2


@asynccontextmanager
async def connected(knobs: dict[str, Any]) -> AsyncIterator[Any]:
    """An agent, OpenAI's client, and one connection between them."""
    async with agent_with(**knobs) as agent:
        url = agent.url.removesuffix("/realtime")
        async with (
            AsyncOpenAI(api_key="x", websocket_base_url=url) as client,
            client.realtime.connect(model="gpt-realtime") as connection,
        ):
            yield connection


async def say(connection: Any, pcm: bytes) -> None:
    for at in range(0, len(pcm), CHUNK):
        await connection.input_audio_buffer.append(audio=base64.b64encode(pcm[at : at + CHUNK]).decode())


async def until(connection: Any, seen: list[Any], name: str) -> Any:
    async with asyncio.timeout(30):
        while True:
            event = await connection.recv()
            seen.append(event)
            if event.type == name:
                return event


def names(seen: list[Any]) -> list[str]:
    return [event.type for index, event in enumerate(seen) if index == 0 or seen[index - 1].type != event.type]


def test_manual_turn_errors_and_cancel() -> None:
    async def turn() -> None:
        seen: list[Any] = []
        knobs: dict[str, Any] = {"think_ms": 10, "burst_x": 0.0, "answer_s": 0.5}
        async with connected(knobs) as connection:
            created = await until(connection, seen, "session.created")
            assert created.session.model == "gpt-realtime"
            session: Any = {"type": "realtime", "audio": {"input": {"turn_detection": None}}}
            await connection.session.update(session=session)
            updated = await until(connection, seen, "session.updated")
            assert updated.session.audio.input.turn_detection is None
            await connection.input_audio_buffer.commit()
            error = await until(connection, seen, "error")
            assert error.error.code == "input_audio_buffer_commit_empty"
            await say(connection, spoken(seconds=0.5))
            await connection.input_audio_buffer.commit()
            await connection.response.create()
            done = await until(connection, seen, "response.done")
            await connection.response.cancel()
            error = await until(connection, seen, "error")
            assert error.error.code == "response_cancel_not_active"
        assert done.response.status == "completed"
        assert done.response.usage.output_tokens > 0
        audio = b"".join(base64.b64decode(e.delta) for e in seen if e.type == "response.output_audio.delta")
        assert len(audio) == RATE_HZ  # half a second of two bytes a sample
        transcript = "".join(e.delta for e in seen if e.type == "response.output_audio_transcript.delta")
        assert done.response.output[0].content[0].transcript == transcript

    asyncio.run(turn())


def test_server_vad_turn_and_interruption() -> None:
    async def turn() -> None:
        seen: list[Any] = []
        knobs: dict[str, Any] = {"think_ms": 0, "delivery": "paced", "chunk_ms": 20, "answer_s": 20, "text": "none"}
        async with connected(knobs) as connection:
            await say(connection, silence(0.2) + spoken(seconds=1.0) + silence(0.8))
            await until(connection, seen, "response.output_audio.delta")
            await say(connection, spoken(seconds=1.0))
            done = await until(connection, seen, "response.done")
        assert done.response.status == "cancelled"
        assert done.response.status_details.reason == "turn_detected"
        kept = [name for name in names(seen) if "speech" in name or "committed" in name or "audio.delta" in name]
        assert kept == [
            "input_audio_buffer.speech_started",
            "input_audio_buffer.speech_stopped",
            "input_audio_buffer.committed",
            "response.output_audio.delta",
            "input_audio_buffer.speech_started",
        ]

    asyncio.run(turn())
