"""Each way of misbehaving that a knob can ask for, seen from the client's side and in the truth log."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from typing import Any

import pytest
import websockets

from connectors.agent.plan import make_plan
from connectors.codecs.openai_realtime import OpenAIRealtimeClient
from harness.core.events import AudioReceived, PeerError
from tests.connectors.agent.talk import (
    RATE_HZ,
    Talk,
    agent_with,
    answer_samples,
    silence,
    spoken,
    talk_with,
    talking,
)

pytestmark = pytest.mark.loopback
QUICK: dict[str, Any] = {"think_ms": 10, "burst_x": 0.0, "answer_s": 0.5}


def manual_turn(**knobs: Any) -> Talk:
    """One manual turn with an agent of these knobs, up to the rate limits that follow `response.done`."""

    async def turn() -> Talk:
        async with talk_with(**(QUICK | knobs)) as talk:
            await talk.manual()
            await talk.ask()
            await talk.until("rate_limits.updated")
            if "late_delta_ms" in knobs:
                await talk.until("response.output_audio.delta")
            await talk.ws.close()
        return talk

    return asyncio.run(turn())


def deltas(talk: Talk) -> list[bytes]:
    return [base64.b64decode(f["delta"]) for f in talk.frames if f["type"] == "response.output_audio.delta"]


def decoded(talk: Talk) -> list[AudioReceived]:
    codec = OpenAIRealtimeClient()
    events = [event for frame in talk.frames for event in codec.decode(json.dumps(frame), 1, 1)]
    return [event for event in events if isinstance(event, AudioReceived)]


def plain(talk: Talk) -> bytes:
    (answered,) = talk.truth("response")
    return answer_samples(answered["answer"])[: RATE_HZ // 2 * 2]


@pytest.mark.parametrize("chunk_ms", [10, 100, 333])
def test_odd_bytes(chunk_ms: int) -> None:
    talk = manual_turn(odd_bytes=True, chunk_ms=chunk_ms)
    assert all(len(delta) % 2 for delta in deltas(talk)[:-1])
    assert b"".join(deltas(talk)) == b"".join(event.pcm for event in decoded(talk)) == plain(talk)
    written = [write["samples"] for write in talk.truth("write") if write["kind"] == "audio"]
    assert written == [event.samples for event in decoded(talk)]


def test_wav_headers_and_packets_without_samples() -> None:
    talk = manual_turn(wav_headers=True, empty_packets=2, odd_bytes=True)
    assert all(delta[:4] == b"RIFF" for delta in deltas(talk))
    assert [event.samples for event in decoded(talk)][:3] == [0, 0, 2400]
    assert b"".join(event.pcm for event in decoded(talk)) == plain(talk)


def test_silence_first_last_and_only() -> None:
    talk = manual_turn(leading_silence_ms=250, tail_s=0.1)
    assert talk.audio() == silence(0.25) + plain(talk) + silence(0.1)
    assert not any(manual_turn(silent_answer=True).audio())


def test_rates() -> None:
    talk = manual_turn(audio_rate_hz=16_000)
    assert len(talk.audio()) // 2 == 8_000
    assert {event.rate_hz for event in decoded(talk)} == {16_000}
    lying = manual_turn(declare_rate_hz=44_100)
    assert len(lying.audio()) // 2 == 12_000
    assert {event.rate_hz for event in decoded(lying)} == {44_100}
    assert lying.truth("response")[0]["rate_hz"] == 24_000


def test_late_delta() -> None:
    talk = manual_turn(late_delta_ms=5)
    assert talk.types("audio.delta", "response.done") == [
        "response.output_audio.delta",
        "response.done",
        "response.output_audio.delta",
    ]
    late = talk.truth("write")[-1]
    assert late["kind"] == "late"
    assert late["before_ns"] > talk.truth("done")[0]["before_ns"]
    assert deltas(talk)[-1] == plain(talk)[-4800:]


def test_a_cancelled_answer_goes_on_sounding() -> None:
    async def turn() -> None:
        knobs = {"late_delta_ms": 5, "delivery": "paced", "think_ms": 0, "answer_s": 20, "text": "none"}
        async with talk_with(**knobs) as talk:
            await talk.manual()
            await talk.ask()
            await talk.until("response.output_audio.delta")
            await talk.send("response.cancel")
            done = await talk.until("response.done")
            late = await talk.until("response.output_audio.delta")
        assert done["response"]["status"] == "cancelled"
        assert late["response_id"] == done["response"]["id"]
        assert talk.truth("write")[-1]["kind"] == "late"

    asyncio.run(turn())


def test_text_after_or_none() -> None:
    after = manual_turn(text="after").types("_transcript.delta", "audio.delta")
    assert after == ["response.output_audio.delta", "response.output_audio_transcript.delta"]
    none = manual_turn(text="none")
    assert none.text() == ""
    assert not none.types("transcript.delta")


def test_noise_on_the_wire() -> None:
    talk = manual_turn(flood=20, broken_json=True, usage=False, user_transcript="what")
    names = talk.types("agent.flood", "broken", "audio.delta", "input_audio_transcription")
    assert names == [
        "conversation.item.input_audio_transcription.delta",
        "conversation.item.input_audio_transcription.completed",
        "agent.flood",
        "broken",
        "response.output_audio.delta",
    ]
    broken = next(frame for frame in talk.frames if frame["type"] == "broken")
    (event,) = OpenAIRealtimeClient().decode(broken["data"], 1, 1)
    assert isinstance(event, PeerError)
    assert next(f for f in talk.frames if f["type"] == "response.done")["response"]["usage"] is None


def test_failures_instead_of_an_answer() -> None:
    async def turn(error: str, name: str) -> dict[str, Any]:
        async with talk_with(error=error) as talk:
            await talk.manual()
            await talk.ask()
            frame = await talk.until(name)
            assert not talk.audio()
            return frame

    done = asyncio.run(turn("rate_limit", "response.done"))["response"]
    assert (done["status"], done["status_details"]["error"]["code"]) == ("failed", "rate_limit_exceeded")
    assert asyncio.run(turn("server_error", "error"))["error"]["type"] == "server_error"


def test_never_answer() -> None:
    async def turn() -> None:
        async with talk_with(never_answer=True) as talk:
            await talk.manual()
            await talk.ask()
            await talk.send("response.cancel")
            await talk.until("error")
        assert not talk.types("response.")
        assert talk.types()[-1] == "error"
        assert not talk.truth("response")

    asyncio.run(turn())


@pytest.mark.parametrize("status", [401, 429, 503])
def test_refused_upgrade(status: int) -> None:
    async def turn() -> None:
        async with agent_with(refuse_with=status) as agent:
            with pytest.raises(websockets.InvalidStatus) as refused:
                await websockets.connect(agent.url)
            assert refused.value.response.status_code == status

    asyncio.run(turn())


def test_wrong_path_is_not_found() -> None:
    async def turn() -> None:
        async with agent_with() as agent:
            with pytest.raises(websockets.InvalidStatus) as refused:
                await websockets.connect(agent.url.replace("realtime", "chat"))
            assert refused.value.response.status_code == 404

    asyncio.run(turn())


@pytest.mark.parametrize(("code", "seen"), [(1011, 1011), (4000, 4000), (0, None)])
def test_close_in_mid_answer(code: int, seen: int | None) -> None:
    async def turn() -> None:
        knobs = {"delivery": "paced", "think_ms": 0, "answer_s": 20, "close_after_ms": 40, "close_code": code}
        async with talk_with(**knobs, chunk_ms=20) as talk:
            await talk.manual()
            await talk.ask()
            closed = await talk.until_closed()
        assert (closed.rcvd.code if closed.rcvd else None) == seen
        assert 0 < len(talk.audio()) < 20 * RATE_HZ
        assert not talk.types("response.done")
        (stop,) = talk.truth("stop")
        assert (stop["reason"], stop["sent_samples"]) == ("close", len(talk.audio()) // 2)
        assert talk.truth("close")[0]["by"] == ("agent" if seen else "network")

    asyncio.run(turn())


def test_go_away() -> None:
    async def turn() -> None:
        async with talk_with(goaway_ms=50) as talk:
            closed = await talk.until_closed()
        assert closed.rcvd is not None
        assert closed.rcvd.code == 1001
        assert talk.frames[-1]["error"]["code"] == "session_expired"

    asyncio.run(turn())


def test_session_limit() -> None:
    async def turn() -> None:
        async with agent_with(session_limit=1) as agent, talking(agent):
            async with websockets.connect(agent.url) as ws:
                second = Talk(ws, agent)
                closed = await second.until_closed()
            assert closed.rcvd is not None
            assert closed.rcvd.code == 1008
            assert [frame["error"]["code"] for frame in second.frames] == ["session_limit_reached"]

    asyncio.run(turn())


def test_slow_ready_keeps_what_was_said_before() -> None:
    async def turn() -> None:
        async with agent_with(slow_ready_ms=60, **QUICK) as agent, websockets.connect(agent.url) as ws:
            talk = Talk(ws, agent)
            await talk.send("session.update", session={"audio": {"input": {"turn_detection": None}}})
            await talk.ask()
            await talk.until("response.done")
        assert talk.types()[:3] == ["session.created", "session.updated", "input_audio_buffer.committed"]
        (opened,), (ready,) = talk.truth("open"), talk.truth("ready")
        assert ready["before_ns"] - opened["t_ns"] >= 55_000_000

    asyncio.run(turn())


def test_pings() -> None:
    async def turn() -> None:
        async with talk_with() as talk:
            async with asyncio.timeout(20):
                await (await talk.ws.ping())
        async with talk_with(ping_delay_ms=80) as talk:
            async with asyncio.timeout(20):
                assert await (await talk.ws.ping()) >= 0.07
        async with talk_with(no_pong=True) as talk:
            pong = await talk.ws.ping()
            await talk.send("response.cancel")
            await talk.until("error")
            assert not pong.done()

    asyncio.run(turn())


def test_reading_stalls_once() -> None:
    async def turn() -> None:
        async with talk_with(stall_read_ms=150, stall_read_at_ms=100) as talk:
            await talk.manual()
            await talk.say(silence(0.1))
            # Only what is sent after the stall has begun is sure to wait for its end.
            for _ in range(1000):
                if len(talk.truth("append")) == 5:
                    break
                await asyncio.sleep(0.005)
            await talk.say(silence(0.1))
            await talk.send("response.cancel")
            await talk.until("error")
        stamps = [record["t_ns"] for record in talk.truth("append")]
        gaps = [after - before for before, after in itertools.pairwise(stamps)]
        assert gaps[4] >= 140_000_000

    asyncio.run(turn())


def test_early_answer_is_cut_off_by_the_rest() -> None:
    async def turn() -> None:
        async with talk_with(early_answer_ms=600, think_ms=5000, delivery="paced", chunk_ms=20, answer_s=5) as talk:
            await talk.say(silence(0.2) + spoken(seconds=0.85))
            await talk.until("response.output_audio.delta")
            await talk.say(spoken()[2 * round(0.85 * RATE_HZ) :])
            await talk.until("response.done")
            await talk.say(silence(0.8))
            await talk.until("response.created")
        order = talk.types("speech_st", "response.created", "audio.delta", "response.done")
        heard = ["input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped"]
        early = ["response.created", "response.output_audio.delta"]
        assert order == [*heard, *early, heard[0], "response.done", heard[1], "response.created"]
        assert [record["source"] for record in talk.truth("endpoint")] == ["early", "silero"]
        begun = talk.truth("speech_start")[0]["sample"] + round(0.6 * RATE_HZ)
        assert 0 <= talk.truth("endpoint")[0]["sample"] - begun < RATE_HZ // 50

    asyncio.run(turn())


def test_pause_is_taken_for_the_end() -> None:
    async def turn() -> None:
        async with talk_with(pause_answer=True, think_ms=5000) as talk:
            await talk.say(silence(0.2) + spoken("answer-en-05") + silence(0.3))
            await talk.until("response.done")
        assert talk.types("speech_st", "response.created", "response.done")[:5] == [
            "input_audio_buffer.speech_started",
            "input_audio_buffer.speech_stopped",
            "response.created",
            "input_audio_buffer.speech_started",
            "response.done",
        ]

    asyncio.run(turn())


@pytest.mark.parametrize("chunk_ms", [20, 100, 200])
def test_scripted_endpoint_is_exact_and_its_frames_were_ready(chunk_ms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def counted(*arguments: Any, **named: Any) -> Any:
        made.append(1)
        return make_plan(*arguments, **named)

    monkeypatch.setattr("connectors.agent.plan.make_plan", counted)

    async def turn() -> None:
        sample = 30_001
        knobs = QUICK | {"endpointer": "scripted", "endpoint_sample": sample, "scripted_turns": 2, "think_ms": 0}
        async with talk_with(**knobs) as talk:
            prepared = len(made)
            assert prepared == 2 * 2 * 10  # dialects, turns, bundled answers
            await talk.say(silence(2.0), chunk_ms)
            await talk.until("response.done")
            await talk.say(silence(2.0), chunk_ms)
            await talk.until("response.done")
            assert len(made) == prepared
        first, second = talk.truth("endpoint")
        holder = next(a for a in talk.truth("append") if a["sample"] < sample <= a["end_sample"])
        assert (first["sample"], first["source"]) == (sample, "scripted")
        assert first["received_samples"] == holder["end_sample"]
        assert second["sample"] == 2 * sample
        write = next(w for w in talk.truth("write") if w["kind"] == "audio")
        assert holder["t_ns"] <= first["t_ns"] <= write["before_ns"] <= write["after_ns"]

    asyncio.run(turn())
