"""DashScope's own realtime client against the agent in its beta names."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.connectors.agent.talk import agent_with, spoken
from tests.interop.answers import ends, errors, texts, written
from tests.interop.environments import environment
from tests.interop.processes import drive

pytestmark = [pytest.mark.loopback, pytest.mark.interop, pytest.mark.timeout(900)]
SCRIPT = Path(__file__).with_name("drive.py")


def test_a_detected_a_manual_and_a_cancelled_turn(tmp_path: Path) -> None:
    python = environment("dashscope")
    speech = tmp_path / "speech.pcm"
    speech.write_bytes(spoken(seconds=1.0))
    knobs: dict[str, Any] = {"dialect": "beta", "think_ms": 50, "delivery": "paced", "chunk_ms": 40, "answer_s": 1.0}

    async def talk() -> None:
        async with agent_with(**knobs) as agent:
            seen = await drive([python, SCRIPT, agent.url, speech])
            detected, manual, cancelled = seen["turns"]
            assert detected["types"][:3] == [
                "input_audio_buffer.speech_started",
                "input_audio_buffer.speech_stopped",
                "input_audio_buffer.committed",
            ]
            assert not any("speech" in name for name in manual["types"])
            for turn, text, samples in zip((detected, manual), texts(agent), written(agent), strict=False):
                assert (turn["status"], turn["transcript"]) == ("completed", text)
                assert turn["audio_bytes"] == 2 * samples == 2 * 24_000
                assert turn["usage"]["output_tokens"] > 0
            assert cancelled["status"] == "cancelled"
            assert 0 < cancelled["audio_bytes"] < 2 * 24_000
            assert [end["status"] for end in ends(agent)] == ["completed", "completed", "cancelled"]
            assert (seen["id"], seen["last_response"]) == ("sess_1", "resp_3")
            assert seen["first_audio_ms"] > 0
            assert seen["errors"] == errors(agent) == []

    asyncio.run(talk())
