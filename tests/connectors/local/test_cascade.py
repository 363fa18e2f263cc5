"""The cascade as a local peer, with the real Whisper base and Kokoro in its worker; its language model is a stub's."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr

import scenarios
from connectors.local.model import Session, Text, UserSpeechStarted, UserSpeechStopped
from connectors.local.models.cascade.answer import STAGES
from connectors.local.models.cascade.ears import LEAD_MS, RATE_HZ, TAIL_MS, Ears
from connectors.local.models.cascade.model import Cascade
from harness.core.audio import int16_to_float
from harness.core.events import (
    AudioReceived,
    Interrupted,
    RawReceived,
    ResponseDone,
    ResponseStarted,
    TextReceived,
    UserTranscript,
)
from harness.engines.store import is_cached
from tests.connectors.local.cascade_stub import CHINESE, ENGLISH, FakeLlm, FakeVoice, stub_server
from tests.connectors.local.local_driver import local, silence, talking

QUERIES = Path(scenarios.__file__).parent / "packs" / "queries"
CASCADE = "connectors.local.models.cascade.model:Cascade"


def query(name: str) -> np.ndarray:
    """A bundled query at 16 kHz, int16, without the silence at its end."""
    samples, rate_hz = soundfile.read(QUERIES / f"{name}.flac", dtype="int16")
    return soxr.resample(samples, rate_hz, RATE_HZ)


def words(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()


def test_ears_keep_the_turn_and_little_around_it() -> None:
    speech = query("en-04")
    stream = np.concatenate([silence(2_000, RATE_HZ), speech, silence(1_000, RATE_HZ)])
    ears = Ears(ends_turns=True, silence_ms=500)
    heard, at = [], []
    for start in range(0, len(stream), 160):
        for output in ears.push(stream[start : start + 160]):
            heard.append(type(output))
            at.append(output.audio_ms)  # type: ignore[union-attr]
            if isinstance(output, UserSpeechStopped):
                turn = ears.take()
    # The manifest has speech from 200 to 2571 ms of this clip; Silero's frames are 32 ms.
    assert heard == [UserSpeechStarted, UserSpeechStopped]
    assert abs(at[0] - 2_200) <= 100
    assert abs(at[1] - 4_571) <= 150
    length_ms = len(turn) * 1000 / RATE_HZ
    assert at[1] - at[0] + TAIL_MS <= length_ms <= at[1] - at[0] + TAIL_MS + LEAD_MS + 64
    begin = round((at[1] + TAIL_MS) * RATE_HZ / 1000) - len(turn)
    assert np.array_equal(turn, int16_to_float(stream[begin : begin + len(turn)]))
    assert len(ears.take()) == 0


def test_ears_give_all_that_was_said_when_told_that_the_turn_is_over() -> None:
    speech = query("en-04")
    ears = Ears(ends_turns=False, silence_ms=500)
    assert ears.push(np.concatenate([silence(3_000, RATE_HZ), speech[: RATE_HZ * 2]])) == []
    assert abs(len(ears.take()) / RATE_HZ - 2.0) < 0.2
    assert ears.push(silence(2_000, RATE_HZ)) == []
    assert len(ears.take()) == 0


def test_what_was_written_before_an_interruption_belongs_to_the_conversation() -> None:
    model = Cascade(llm="http://127.0.0.1:1/v1", llm_model="m", tts="http://127.0.0.1:1/v1", tts_model="m", history=1)
    llm = model._llm = FakeLlm(["It is", " sunny.", " Bye."])
    model._voice = FakeVoice()
    heard = iter(["One?", "Two?", "Three?"])
    model._transcript = lambda turn: next(heard)  # type: ignore[method-assign]
    model.start(Session(turn="manual", instructions="Be short."))
    answer = model.end_turn()
    while not any(isinstance(output, Text) for output in [next(answer)]):
        pass
    answer.close()  # type: ignore[attr-defined]
    model.interrupt()
    list(model.end_turn())
    list(model.end_turn())
    contents = [[message["content"] for message in messages] for messages in llm.messages]
    assert contents[0] == ["Be short.", "One?"]
    assert contents[1][:2] == ["Be short.", "One?"]
    assert "It is sunny. Bye.".startswith(contents[1][2])
    assert contents[1][2:] == [contents[1][2], "Two?"]
    assert contents[2] == ["Be short.", "Two?", "It is sunny. Bye.", "Three?"]
    model.start(Session(turn="manual"))
    assert model._conversation == []


@pytest.mark.models
@pytest.mark.timeout(300)
def test_it_hears_answers_and_is_interrupted_in_two_languages() -> None:
    for model in ("whisper-base", "kokoro-82m-int8"):
        if not is_cached(model):
            pytest.skip(f"weights not cached: {model}")

    async def main(stub) -> None:
        peer = local(CASCADE, llm=stub.url, llm_model="stub", threads=2)
        async with peer:
            facts = peer.config["facts"]
            assert "whisper-base" in facts["asr"]
            assert facts["llm"] == f"stub at {stub.url}"
            assert facts["tts"].startswith("kokoro-82m-int8")
            async with talking(peer, language="en") as talk:
                await talk.play(np.concatenate([query("en-14"), silence(800, RATE_HZ)]))
                done = await talk.until(ResponseDone, limit_s=60)
                assert done.status == "completed"
                assert words(talk.of(UserTranscript)[0].text) == "turnoffthelightsinthekitchen"
                assert [e.text for e in talk.of(TextReceived)] == ENGLISH
                assert [e.name for e in talk.of(RawReceived)] == [f"stage.{stage}" for stage in STAGES]
                assert sum(e.samples for e in talk.of(AudioReceived)) > 12_000
                # The next turn is cut off by the user's voice while the language model writes.
                stub.token_s = 30.0
                await talk.play(np.concatenate([query("en-04"), silence(800, RATE_HZ)]))
                await talk.until(TextReceived, len(ENGLISH) + 1, limit_s=60)
                await talk.play(query("en-14")[: RATE_HZ * 2])
                await talk.until(Interrupted)
                assert (await talk.until(ResponseDone, 2)).status == "cancelled"
                stub.token_s = 0.0
                assert [m["content"] for m in stub.asked[-1]["messages"][2:3]] == ["".join(ENGLISH)]
            assert stub.left_early.is_set()
            async with talking(peer, turn="manual", language="zh") as talk:
                await talk.play(query("zh-09"), speed=4.0)
                talk.end_turn()
                await talk.until(ResponseDone, limit_s=60)
                assert words(talk.of(UserTranscript)[0].text) == "为什么白天的天空是蓝色的"
                assert "".join(e.text for e in talk.of(TextReceived)) == "".join(CHINESE)
                assert len(talk.of(ResponseStarted)) == 1
                assert sum(e.samples for e in talk.of(AudioReceived)) > 12_000
            # A new session is a new conversation.
            assert [m["role"] for m in stub.asked[-1]["messages"]] == ["system", "user"]

    with stub_server() as stub:
        asyncio.run(main(stub))
