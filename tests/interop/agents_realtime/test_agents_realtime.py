"""OpenAI's agents SDK (Node) against the agent over WebSocket: spoken turns, barge-in, interrupt, a written turn."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.connectors.agent.talk import agent_with, spoken
from tests.interop.answers import errors, texts, written
from tests.interop.environments import node, node_environment
from tests.interop.processes import drive

pytestmark = [pytest.mark.loopback, pytest.mark.interop, pytest.mark.timeout(900)]
SCRIPT = Path(__file__).with_name("drive.mjs")


def test_turns_and_interruptions(tmp_path: Path) -> None:
    folder = node_environment("agents_realtime")
    speech = tmp_path / "speech.pcm"
    speech.write_bytes(spoken(seconds=1.0))
    knobs: dict[str, Any] = {"think_ms": 50, "delivery": "paced", "chunk_ms": 40, "answer_s": 2.0, "endpoint_ms": 300}

    async def talk() -> None:
        async with agent_with(**knobs) as agent:
            seen = await drive([node(), SCRIPT, folder, agent.url, speech])
            stops = agent.truth.records("stop")
            assert [(stop["response"], stop["reason"]) for stop in stops] == [
                ("resp_2", "barge_in"),
                ("resp_3", "cancel"),
            ]
            assert seen["errors"] == errors(agent) == []
            assert seen["failures"] == []
            first, second, third, fourth = seen["responses"]
            assert [first["status"], fourth["status"]] == ["completed", "completed"]
            assert [second["status"], third["status"]] == ["cancelled", "cancelled"]
            assert (second["reason"], third["reason"]) == ("turn_detected", "client_cancelled")
            assert first["audio_bytes"] == fourth["audio_bytes"] == 2 * 48_000
            assert [each["audio_bytes"] for each in seen["responses"]] == [2 * samples for samples in written(agent)]
            assert first["usage"]["output_tokens"] > 0
            assert all(0 <= ms <= 2_000 for ms in seen["truncated"])
            told = [item["text"] for item in seen["history"] if item["role"] == "assistant"]
            assert [told[0], told[-1]] == [texts(agent)[0], texts(agent)[3]]
            assert seen["moments"].count("audio_interrupted") >= 2

    asyncio.run(talk())
