"""Google's own client against the agent's Gemini Live: detected, interrupted, manual and written turns, over TLS."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import soxr

from connectors.agent import Knobs, serve
from harness.core.audio import int16_to_pcm16, pcm16_to_int16
from tests.connectors.agent.talk import RATE_HZ, spoken
from tests.interop.answers import ends, errors, texts, written
from tests.interop.environments import environment
from tests.interop.processes import drive

pytestmark = [pytest.mark.loopback, pytest.mark.interop, pytest.mark.timeout(900)]
SCRIPT = Path(__file__).with_name("drive.py")
HEARD = "hello there"
ANSWER_S = 1.0


def test_turns_of_every_kind(tmp_path: Path) -> None:
    python = environment("google_genai")
    speech = tmp_path / "speech.pcm"
    samples = soxr.resample(pcm16_to_int16(spoken(seconds=1.0)), RATE_HZ, 16_000)
    speech.write_bytes(int16_to_pcm16(samples))
    knobs = Knobs(think_ms=50, delivery="paced", chunk_ms=40, answer_s=ANSWER_S, user_transcript=HEARD)

    async def talk() -> None:
        async with serve(knobs, tls=True, keep_truth=True) as agent:
            url = f"https://{urlsplit(agent.url).netloc}"
            seen = await drive([python, SCRIPT, url, speech], env={"SSL_CERT_FILE": str(agent.ca)})
            told, sizes = texts(agent), written(agent)
            for number, (name, turn) in enumerate(seen.items()):
                assert turn["audio_bytes"] == 2 * sizes[number], name
                assert turn["mimes"] == [f"audio/pcm;rate={RATE_HZ}"], name
                assert turn["heard"] == ("" if name == "written" else HEARD), name
                if name != "interrupted":
                    assert turn["said"] == told[number], name
                    assert turn["audio_bytes"] == 2 * RATE_HZ * ANSWER_S, name
                    assert turn["flags"] == ["generation_complete", "turn_complete"], name
                    assert turn["usage"]["response_token_count"] > 0, name
            assert seen["interrupted"]["flags"] == ["interrupted", "turn_complete"]
            assert 0 < seen["interrupted"]["audio_bytes"] < 2 * RATE_HZ * ANSWER_S
            assert seen["detected"]["handle"]
            assert [record["dialect"].split("/")[0] for record in agent.truth.records("open")] == ["gemini"] * 2
            assert [end["status"] for end in ends(agent)] == [
                "cancelled" if name == "interrupted" else "completed" for name in seen
            ]
            assert errors(agent) == []

    asyncio.run(talk())
