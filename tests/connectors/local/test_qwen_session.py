"""Qwen3-Omni, tiny and random, in a worker: a spoken query in both turn modes, an interruption."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr

import scenarios
from connectors.local.models.qwen_hearing import RATE_HZ
from harness.core.audio import int16_to_pcm16
from harness.core.commands import AppendAudio, Cancel
from harness.core.events import AudioReceived, Note, ResponseDone, TextReceived, UserSpeechStarted, UserSpeechStopped
from tests.connectors.local.local_driver import CLOCK, local, silence, talking

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = [pytest.mark.loopback, pytest.mark.timeout(300)]

QWEN3 = "connectors.local.models.qwen:Qwen3Omni"
TINY = {"weights": "random", "size": "tiny", "device": "cpu", "threads": 1, "sampling": "greedy"}
LIMIT_S = 120.0


def query(name="en-04"):
    samples, rate_hz = soundfile.read(
        Path(scenarios.__file__).parent / "packs" / "queries" / f"{name}.flac", dtype="int16"
    )
    return soxr.resample(samples, rate_hz, RATE_HZ)


def text(talk, response):
    return "".join(event.text for event in talk.of(TextReceived) if event.response == response)


def test_a_conversation_with_turns_by_voice_activity_told_turns_and_a_cancellation():
    async def scenario():
        async with local(QWEN3, timeout_s=LIMIT_S, text_tokens=60, audio_s=1.6, **TINY) as peer:
            async with talking(peer, "vad", silence_ms=300) as heard:
                await heard.play(np.concatenate((query(), silence(1_000, RATE_HZ))), speed=4)
                spoken = await heard.until(ResponseDone, 1, LIMIT_S)
            async with talking(peer, "manual") as told:
                told.do(AppendAudio(pcm=int16_to_pcm16(query())))
                told.end_turn()
                first = await told.until(ResponseDone, 1, LIMIT_S)
                told.end_turn()
                await told.until(TextReceived, 63, LIMIT_S)
                told.do(Cancel())
                cancelled_ns = CLOCK.now_ns()
                second = await told.until(ResponseDone, 2, LIMIT_S)
            return peer, heard, spoken, told, first, second, cancelled_ns

    peer, heard, spoken, told, first, second, cancelled_ns = asyncio.run(scenario())
    assert spoken.status == first.status == "completed"
    assert len(heard.of(UserSpeechStarted)) == len(heard.of(UserSpeechStopped)) == 1
    assert len(text(heard, spoken.response).split()) == len(text(told, first.response).split()) == 60
    packets = [event for event in told.of(AudioReceived) if event.response == first.response]
    tokens = [event for event in told.of(TextReceived) if event.response == first.response]
    assert packets[0].produced_ns < tokens[-1].produced_ns
    # 20 frames of which the last is never known; 555 samples need the frame after them.
    assert sum(packet.samples for packet in packets) == 19 * 1_920 - 555
    assert (second.status, second.reason) == ("cancelled", "client_cancelled")
    late = [event for event in told.of(TextReceived) if event.produced_ns > cancelled_ns]
    assert len(late) <= 1
    assert peer.config["facts"]["weights"] == "random"
    assert peer.config["facts"]["blocks_change_sound_by"] < 0.02
    assert [note.code for note in heard.of(Note)] == ["model_loaded"]
