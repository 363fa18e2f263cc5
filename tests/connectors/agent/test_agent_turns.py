"""Whole turns with the agent over a real socket: manual and server VAD, interruption, cancel, honest errors."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.connectors.agent.talk import (
    MANIFEST,
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
QUICK: dict[str, Any] = {"think_ms": 20, "burst_x": 0.0}
PACED: dict[str, Any] = {"think_ms": 0, "delivery": "paced", "chunk_ms": 20}
TURN = [
    "input_audio_buffer.committed",
    "conversation.item.added",
    "conversation.item.done",
    "response.created",
    "response.output_item.added",
    "conversation.item.added",
    "response.content_part.added",
    "response.output_audio_transcript.delta",
    "response.output_audio.delta",
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
    "response.done",
    "rate_limits.updated",
]


def test_manual_turn() -> None:
    async def turn() -> None:
        async with talk_with(**QUICK) as talk:
            await talk.manual()
            await talk.ask()
            await talk.until("rate_limits.updated")
        assert talk.types() == ["session.created", "session.updated", *TURN]
        (answered,) = talk.truth("response")
        assert talk.audio() == answer_samples(answered["answer"])
        assert talk.text() == MANIFEST[answered["answer"]]["text"]
        done = next(frame["response"] for frame in talk.frames if frame["type"] == "response.done")
        assert (done["status"], done["status_details"]) == ("completed", None)
        assert done["usage"]["total_tokens"] == done["usage"]["input_tokens"] + done["usage"]["output_tokens"]
        ids = [frame["event_id"] for frame in talk.frames]
        assert len(set(ids)) == len(ids)

    asyncio.run(turn())


def test_truth_of_a_manual_turn() -> None:
    async def turn() -> None:
        async with talk_with(**QUICK) as talk:
            await talk.manual()
            await talk.ask()
            await talk.until("response.done")
            await talk.ws.close()
        (endpoint,) = talk.truth("endpoint")
        appends = talk.truth("append")
        assert [a["sample"] for a in appends[1:]] == [a["end_sample"] for a in appends[:-1]]
        assert appends[-1]["end_sample"] == appends[-1]["turn_end_sample"] == endpoint["sample"] == RATE_HZ // 2
        assert (endpoint["source"], endpoint["received_samples"]) == ("commit", RATE_HZ // 2)
        writes = talk.truth("write")
        assert sum(write["samples"] for write in writes) == len(talk.audio()) // 2
        first = next(write for write in writes if write["kind"] == "audio")
        text = next(write for write in writes if write["kind"] == "text")
        (done,) = talk.truth("done")
        stamps = [appends[-1]["t_ns"], endpoint["t_ns"], text["before_ns"], first["before_ns"], first["after_ns"]]
        stamps += [writes[-1]["before_ns"], talk.truth("close")[0]["t_ns"]]
        assert stamps == sorted(stamps)
        assert first["before_ns"] - endpoint["t_ns"] >= 20_000_000
        assert done["status"] == "completed"
        assert [record["by"] for record in talk.truth("close")] == ["client"]
        assert talk.truth("configured")[0]["turn"] == "manual"

    asyncio.run(turn())


def test_server_vad_finds_the_end_of_real_speech() -> None:
    async def turn() -> None:
        speech = spoken()
        async with talk_with(endpoint_ms=500, **QUICK) as talk:
            await talk.say(silence(0.4) + speech + silence(1.2))
            await talk.until("rate_limits.updated")
        heard = ["input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped"]
        assert talk.types() == ["session.created", *heard, *TURN]
        (started,), (endpoint,) = talk.truth("speech_start"), talk.truth("endpoint")
        begin, end = round(0.4 * RATE_HZ), round(0.4 * RATE_HZ) + len(speech) // 2
        assert abs(started["sample"] - begin) < 0.15 * RATE_HZ
        assert abs(endpoint["sample"] - end) < 0.2 * RATE_HZ
        # Decided after the endpointing time, on the grid of Silero's frames (32 ms) and of the chunks (20 ms).
        waited = endpoint["received_samples"] - endpoint["sample"]
        assert 0.5 * RATE_HZ <= waited <= 0.6 * RATE_HZ
        stopped = next(f for f in talk.frames if f["type"] == "input_audio_buffer.speech_stopped")
        assert stopped["audio_end_ms"] == endpoint["received_samples"] * 1000 // RATE_HZ

    asyncio.run(turn())


def test_language_of_the_transcription_chooses_the_answer() -> None:
    async def turn() -> None:
        async with talk_with(answer_s=0.2, language="en", **QUICK) as talk:
            await talk.manual()
            for language in ("zh", "en-GB", "tlh"):
                transcription = {"model": "m", "language": language}
                await talk.send("session.update", session={"audio": {"input": {"transcription": transcription}}})
                await talk.ask()
                await talk.until("response.done")
        assert [record["language"] for record in talk.truth("response")] == ["zh", "en", "en"]

    asyncio.run(turn())


def test_answers_rotate() -> None:
    async def turns() -> list[str]:
        async with agent_with(answer_s=0.1, **QUICK) as agent:
            for _session in range(2):
                async with talking(agent) as talk:
                    await talk.manual()
                    for _turn in range(2):
                        await talk.ask()
                        await talk.until("response.done")
            return [record["answer"] for record in agent.truth.records("response")]

    first = asyncio.run(turns())
    assert first[0] != first[1] == first[2]
    assert asyncio.run(turns()) == first


@pytest.mark.exact
def test_speech_interrupts_the_answer() -> None:
    async def turn() -> None:
        async with talk_with(answer_s=20, text="none", **PACED) as talk:
            await talk.say(silence(0.2) + spoken(seconds=1.0) + silence(0.8))
            await talk.until("response.output_audio.delta")
            await talk.say(spoken(seconds=1.0))
            done = await talk.until("response.done")
            await talk.say(silence(0.8))
            second = await talk.until("response.created")
            await talk.until("response.output_audio.delta")
            await talk.ws.close()
        assert (done["response"]["status"], done["response"]["id"]) == ("cancelled", "resp_1")
        assert done["response"]["status_details"]["reason"] == "turn_detected"
        order = talk.types("speech_started", "response.created", "audio.delta", "response.done")
        assert order == [
            "input_audio_buffer.speech_started",
            "response.created",
            "response.output_audio.delta",
            "input_audio_buffer.speech_started",
            "response.done",
            "response.created",
            "response.output_audio.delta",
        ]
        assert second["response"]["id"] == "resp_2"
        stop = talk.truth("stop")[0]
        assert (stop["reason"], stop["playing"]) == ("barge_in", True)
        assert stop["sent_samples"] == len(talk.audio("resp_1")) // 2 > 0
        assert [record["reason"] for record in talk.truth("stop")] == ["barge_in", "close"]

    asyncio.run(turn())


def test_speech_over_an_answer_that_is_sent_but_still_heard() -> None:
    async def turn() -> None:
        async with talk_with(answer_s=20, text="none", **QUICK) as talk:
            await talk.manual()
            await talk.ask()
            done = await talk.until("response.done")
            detector = {"type": "server_vad"}
            await talk.send("session.update", session={"audio": {"input": {"turn_detection": detector}}})
            await talk.say(spoken(seconds=1.0))
            await talk.until("input_audio_buffer.speech_started")
            await talk.send("input_audio_buffer.clear")
            await talk.until("input_audio_buffer.cleared")
        assert done["response"]["status"] == "completed"
        assert [f["type"] for f in talk.frames].count("response.done") == 1
        (stop,) = talk.truth("stop")
        assert (stop["reason"], stop["playing"], stop["sent_samples"]) == ("barge_in", True, 20 * RATE_HZ)

    asyncio.run(turn())


def test_interrupt_and_answer_only_if_the_client_wants_it() -> None:
    async def turn() -> None:
        async with talk_with(answer_s=1.0, text="none", **PACED) as talk:
            detector = {"type": "server_vad", "create_response": False, "interrupt_response": False}
            await talk.send("session.update", session={"audio": {"input": {"turn_detection": detector}}})
            await talk.say(silence(0.2) + spoken(seconds=1.0) + silence(0.8))
            await talk.until("input_audio_buffer.committed")
            await talk.send("response.create")
            await talk.until("response.output_audio.delta")
            mark = len(talk.frames)
            await talk.say(spoken(seconds=1.0))
            # The answer may end before or after the speech is heard: only that it is whole matters.
            while {"rate_limits.updated", "input_audio_buffer.speech_started"} - {
                f["type"] for f in talk.frames[mark:]
            }:
                await talk.next()
        done = next(frame for frame in talk.frames if frame["type"] == "response.done")
        assert done["response"]["status"] == "completed"
        assert [f["type"] for f in talk.frames].count("response.created") == 1

    asyncio.run(turn())


def test_client_cancels_and_truncates() -> None:
    async def turn() -> None:
        async with talk_with(answer_s=20, text="none", **PACED) as talk:
            await talk.manual()
            await talk.ask()
            delta = await talk.until("response.output_audio.delta")
            await talk.send("response.create", event_id="twice")
            twice = await talk.until("error")
            await talk.send("response.cancel", response_id=delta["response_id"])
            done = await talk.until("response.done")
            await talk.send("conversation.item.truncate", item_id=delta["item_id"], content_index=0, audio_end_ms=20)
            cut = await talk.until("conversation.item.truncated")
            await talk.send(
                "conversation.item.truncate", item_id=delta["item_id"], content_index=0, audio_end_ms=19_999
            )
            too_long = await talk.until("error")
            await talk.send("conversation.item.retrieve", item_id=delta["item_id"])
            item = (await talk.until("conversation.item.retrieved"))["item"]
        assert twice["error"]["code"] == "conversation_already_has_active_response"
        assert twice["error"]["event_id"] == "twice"
        assert done["response"]["status_details"] == {"type": "cancelled", "reason": "client_cancelled"}
        assert cut["audio_end_ms"] == 20
        assert (item["status"], item["content"]) == ("incomplete", [])
        assert too_long["error"]["code"] == "invalid_value"
        assert talk.truth("stop")[0]["reason"] == "cancel"

    asyncio.run(turn())


ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"type": "response.cancel"}, "response_cancel_not_active"),
    ({"type": "response.cancel", "response_id": "resp_9"}, "response_cancel_not_active"),
    ({"type": "input_audio_buffer.commit"}, "input_audio_buffer_commit_empty"),
    ({"type": "conversation.item.truncate", "item_id": "item_9", "audio_end_ms": 1}, "item_not_found"),
    ({"type": "conversation.item.delete", "item_id": "item_9"}, "item_not_found"),
    ({"type": "conversation.item.retrieve", "item_id": "item_9"}, "item_not_found"),
    ({"type": "conversation.item.create", "item": {}}, "missing_required_parameter"),
    ({"type": "session.update", "session": {"output_modalities": ["text", "audio"]}}, "invalid_value"),
    ({"type": "input_audio_buffer.append", "audio": "!"}, "invalid_value"),
    ({"type": "response.whistle"}, "invalid_value"),
]


def test_mistakes_are_answered_and_leave_the_session_open() -> None:
    async def turn() -> None:
        async with talk_with(answer_s=0.2, **QUICK) as talk:
            await talk.manual()
            await talk.say(silence(0.09))
            for number, (frame, code) in enumerate(ERRORS):
                await talk.ws.send(_with_id(frame, f"e{number}"))
                error = (await talk.until("error"))["error"]
                assert (error["code"], error["event_id"], error["type"]) == (
                    code,
                    f"e{number}",
                    "invalid_request_error",
                )
            await talk.ws.send('{"type":')
            assert (await talk.until("error"))["error"]["code"] == "invalid_json"
            await talk.ask()
            assert (await talk.until("response.done"))["response"]["status"] == "completed"
        assert [record["code"] for record in talk.truth("error")] == [code for _, code in ERRORS] + ["invalid_json"]

    asyncio.run(turn())


def _with_id(frame: dict[str, Any], event_id: str) -> str:
    return json.dumps(frame | {"event_id": event_id})


def test_history_items() -> None:
    async def turn() -> None:
        async with talk_with(**QUICK) as talk:
            content = [{"type": "input_text", "text": "Hi."}]
            item = {"id": "mine", "type": "message", "role": "user", "content": content}
            await talk.send("conversation.item.create", item=item)
            added = await talk.until("conversation.item.done")
            await talk.send("conversation.item.retrieve", item_id="mine")
            back = await talk.until("conversation.item.retrieved")
            await talk.send("conversation.item.delete", item_id="mine")
            await talk.until("conversation.item.deleted")
        assert added["item"] == back["item"]
        assert added["item"]["content"] == content

    asyncio.run(turn())


@pytest.mark.parametrize("how", ["header", "knob", "subprotocol"])
def test_beta_clients_get_beta_names(how: str) -> None:
    async def turn() -> None:
        options: dict[str, Any] = {}
        if how == "header":
            options["additional_headers"] = {"OpenAI-Beta": "realtime=v1"}
        if how == "subprotocol":
            options["subprotocols"] = ["realtime", "openai-beta.realtime-v1"]
        knobs = {"dialect": "beta"} if how == "knob" else {}
        async with agent_with(answer_s=0.3, **QUICK, **knobs) as agent, talking(agent, **options) as talk:
            await talk.send("session.update", session={"turn_detection": None})
            await talk.until("session.updated")
            await talk.ask()
            await talk.until("response.done")
        assert "response.audio.delta" in talk.types()
        assert not [name for name in talk.types() if "output_audio" in name or name.endswith("item.added")][1:]
        assert talk.frames[0]["session"]["output_audio_format"] == "pcm16"
        assert len(talk.audio()) // 2 == round(0.3 * RATE_HZ)
        assert talk.truth("open")[0]["dialect"] == "openai/beta"

    asyncio.run(turn())


def test_many_sessions_at_once_do_not_mix() -> None:
    async def one(agent: Any, results: list[Talk]) -> None:
        async with talking(agent) as talk:
            await talk.manual()
            await talk.ask()
            await talk.until("response.done")
            results.append(talk)

    async def turns() -> None:
        results: list[Talk] = []
        async with agent_with(answer_s=0.3, jitter_ms=20, think_ms=20) as agent, asyncio.TaskGroup() as group:
            for _ in range(12):
                group.create_task(one(agent, results))
        by_session = {record["conn"]: record["answer"] for record in agent.truth.records("response")}
        assert len(by_session) == len(results) == 12
        for talk in results:
            session = int(talk.frames[0]["session"]["id"].removeprefix("sess_"))
            assert talk.audio() == answer_samples(by_session[session])[: len(talk.audio())]
            assert len(talk.audio()) == round(0.3 * RATE_HZ) * 2

    asyncio.run(turns())
