"""Policies as knobs, what a listener hears of the agent, and decisions over a real socket without anybody's clock."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import numpy as np
import pytest

from connectors.agent.heard import Heard
from connectors.agent.knobs import PRESETS, Knobs, check_knobs, read_knobs
from connectors.agent.mouth import Mouth
from connectors.agent.plan import Plans, make_plan
from connectors.agent.speech import Answer, Library
from connectors.codecs.openai_realtime_server import OpenAIEvents
from harness.core.clock import SystemClock
from harness.core.connector import PeerOptions
from harness.core.errors import ConfigError
from harness.run.peers import make_peer
from tests.connectors.agent.talk import RATE_HZ, silence, spoken, talk_with

MS = 1_000_000


# --- knobs --------------------------------------------------------------------------------------------------------


def test_a_policy_sets_knobs_and_what_is_given_beside_it_wins() -> None:
    assert read_knobs({"policy": "polite"}) == Knobs(min_interruption_ms=800)
    assert read_knobs({"policy": "eager", "stop_delay_ms": "0"}) == Knobs(pause_answer=True, think_ms=100)
    assert read_knobs({"policy": "none", "yields": "false"}) == Knobs(yields=False)
    assert check_knobs(Knobs(policy="resuming", resume_ms=90)) == Knobs(min_interruption_ms=800, resume_ms=90)
    for policy, preset in PRESETS.items():
        assert check_knobs(Knobs(**preset)) == read_knobs({"policy": policy})


@pytest.mark.parametrize(
    ("pairs", "line"),
    [
        (
            {"policy": "polit"},
            "policy=polit: known: none, stubborn, hesitant, polite, ",
        ),
        ({"policy": "stubborn", "stop_delay_ms": "1"}, "stop_delay_ms has nothing to delay"),
        ({"policy": "stubborn", "min_interruption_ms": "1"}, "takes nothing for an interruption"),
        ({"resume_ms": "500"}, "resume_ms needs min_interruption_ms"),
        ({"backchannel_every_ms": "500"}, "needs backchannel_after_ms"),
        ({"policy": "chatty", "backchannel_every_ms": "10"}, "must lie between 200 and"),
        ({"policy": "chatty", "endpointer": "scripted", "endpoint_sample": "9"}, "needs endpointer=silero"),
    ],
)
def test_what_cannot_be_is_one_clear_line(pairs: dict[str, str], line: str) -> None:
    with pytest.raises(ConfigError, match=line):
        read_knobs(pairs)


def test_the_embedded_agent_takes_a_policy_as_any_knob() -> None:
    peer = make_peer("agent?policy=polite&protocol=moshi", PeerOptions(), SystemClock())
    assert (peer.config["policy"], peer.config["protocol"]) == ("polite", "moshi")


def test_a_backchannel_is_read_only_where_one_is_said_and_at_the_answers_rate() -> None:
    said = Library.load(read_knobs({"policy": "chatty", "audio_rate_hz": "16000"}))
    english, chinese = said.backchannel("en-US"), said.backchannel("zh")
    assert (english.text, english.rate_hz, chinese.text) == ("Mm-hm.", 16_000, "嗯。")
    assert 0.2 < len(chinese.samples) / 16_000 < len(english.samples) / 16_000 < 0.6
    with pytest.raises(StopIteration):
        Library.load(Knobs()).backchannel("en")


# --- what is heard ------------------------------------------------------------------------------------------------


def plan_of(samples: np.ndarray) -> Any:
    answer = Answer(id="a", text="One two three four.", language="en", rate_hz=8_000, samples=samples.astype(np.int16))
    return make_plan(Knobs(), OpenAIEvents("ga"), 1, answer)


TONE = np.where(np.arange(800) % 16 < 8, 3277, -3277)
SOUND = np.concatenate([np.zeros(800), TONE, TONE, np.zeros(800)])
"""100 ms of silence, 200 ms of sound, 100 ms of silence, at 8 kHz. A window of 10 ms is loud with 1 ms of the sound in
it, so its edges lie 9 ms outside: 91 and 309 ms."""


def heard_of(*packets: tuple[str, int, int, int]) -> tuple[Heard, list[tuple[Any, ...]]]:
    records: list[tuple[Any, ...]] = []
    heard = Heard(7, records.append)
    heard.begins(plan_of(SOUND))
    for response, samples, length_ms, at_ms in packets:
        heard.said(response, samples, length_ms * MS, at_ms * MS)
    return heard, records


def test_packets_are_heard_in_a_row_and_after_a_wait_when_they_come() -> None:
    heard, records = heard_of(("resp_1", 1600, 200, 1000), ("resp_1", 1600, 200, 1050))
    assert heard.samples_at("resp_1", 1300 * MS) == 2400
    heard.over("resp_1")
    ((kind, session, response, begin_ns, end_ns, samples, cut),) = records
    assert (kind, session, response, samples, cut) == ("heard", 7, "resp_1", 3200, False)
    assert begin_ns == 1091 * MS
    assert end_ns == pytest.approx(1309 * MS, abs=MS // 8)
    heard, records = heard_of(("resp_1", 1600, 200, 1000), ("resp_1", 1600, 200, 1250))
    heard.over("resp_1")
    assert records[0][4] == pytest.approx(1359 * MS, abs=MS // 8)


def test_a_listener_who_falls_silent_has_heard_what_was_played_by_then() -> None:
    heard, records = heard_of(("resp_1", 3200, 400, 1000))
    heard.over("resp_1", cut_ns=1250 * MS)
    assert records[0][3] == 1091 * MS
    assert records[0][4] == pytest.approx(1250 * MS, abs=MS // 8)
    assert records[0][5:] == (2000, True)
    heard.over("resp_1")
    assert len(records) == 1
    heard, records = heard_of(("resp_1", 3200, 400, 1000))
    heard.over("resp_1", cut_ns=1050 * MS)
    assert records[0][3:] == (None, None, 400, True)


def test_of_an_answer_that_was_planned_to_break_off_only_what_was_sent_is_heard() -> None:
    heard, records = heard_of(("resp_1", 1600, 200, 1000))
    heard.begins(msgspec.structs.replace(plan_of(SOUND), samples=1600))
    heard.said("resp_1", 1600, 200 * MS, 1000 * MS)
    heard.over("resp_1", cut_ns=9000 * MS)
    assert records[-1][3] == (1200 + 91) * MS
    assert records[-1][4] == pytest.approx(1400 * MS, abs=MS // 8)
    assert records[-1][5:] == (1600, False)


def test_silence_that_is_behind_delays_the_sound_after_it() -> None:
    heard, records = heard_of(("", 0, 100, 1000), ("", 0, 100, 1130), ("resp_1", 3200, 400, 1200))
    heard.over("resp_1")
    assert records[0][3] == (1230 + 91) * MS
    # A listener who leaves silence out is busy with it for no time.
    heard, records = heard_of(("", 0, 0, 1000), ("", 0, 0, 1130), ("resp_1", 3200, 400, 1200))
    heard.close(2000 * MS)
    assert records[0][3] == 1291 * MS


def test_a_mouth_tells_when_its_sound_leaves_and_what_a_listener_who_is_behind_leaves_out() -> None:
    told: list[tuple[str, int, int, int]] = []

    def mouth(**options: Any) -> Mouth:
        made = Mouth(
            1,
            lambda pcm: (5 * MS, 6 * MS, 0),
            rate_hz=8_000,
            packet_ms=20,
            now_ns=int,
            record=lambda r: None,
            **options,
        )
        made.on_said = lambda *about: told.append(about)
        return made

    sound, silence = TONE[:160].astype("<i2").tobytes(), bytes(320)
    for speaks in (mouth(lookahead_ns=2 * MS), mouth(catches_up=True)):
        for pcm in (sound, silence, sound[:160]):
            speaks.play("r", pcm)
        for _ in range(4):
            speaks.step()
    always = [("r", 160, 20 * MS), ("r", 160, 20 * MS), ("r", 80, 20 * MS), ("", 0, 20 * MS)]
    assert told[:4] == [(*about, 7 * MS) for about in always]
    assert [about[2] for about in told[4:]] == [20 * MS, 0, 20 * MS, 0]


def test_the_rest_of_an_answer_begins_where_it_was_cut() -> None:
    events = OpenAIEvents("ga")
    whole = plan_of(SOUND)
    library = Library([Answer(id="a", text="x", language="en", rate_hz=8_000, samples=SOUND.astype(np.int16))])
    rest = Plans(Knobs(), library).rest(events, 2, whole, 1600, previous="item_u1")
    assert (rest.response, rest.answer, rest.from_sample, rest.samples) == ("resp_2", "a", 1600, 1600)
    assert rest.transcript == "three four."
    assert np.array_equal(rest.sound, SOUND[1600:])
    assert Plans(Knobs(), library).rest(events, 3, rest, 800, previous=None).from_sample == 2400
    opened = [msgspec.json.decode(step.frame[step.frame.index(b"{") :]) for step in rest.steps[:3]]
    assert opened[2]["previous_item_id"] == "item_u1"


# --- decisions ----------------------------------------------------------------------------------------------------

LONG: dict[str, Any] = {"think_ms": 0, "answer_s": 20, "text": "none", "delivery": "paced", "chunk_ms": 20}


async def answering(talk: Any) -> None:
    """A turn, and its answer has begun to sound."""
    await talk.say(silence(0.2) + spoken(seconds=1.0) + silence(0.8))
    await talk.until("response.output_audio.delta")


@pytest.mark.loopback
def test_short_speech_is_ignored_and_no_word_of_it_reaches_the_client() -> None:
    async def turn() -> None:
        async with talk_with(policy="polite", **LONG) as talk:
            await answering(talk)
            mark = len(talk.frames)
            await talk.say(silence(0.3) + spoken(seconds=0.5) + silence(1.0))
            while not talk.truth("policy"):
                await talk.next()
            assert [row["decision"] for row in talk.truth("policy")] == ["ignore"]
            assert {frame["type"] for frame in talk.frames[mark:]} == {"response.output_audio.delta"}
            await talk.say(spoken(seconds=2.0))
            await talk.until("input_audio_buffer.speech_started")
            done = await talk.until("response.done")
        ignored, yields = talk.truth("policy")
        assert yields["decision"] == "yield"
        assert yields["received_samples"] - yields["sample"] >= 0.8 * RATE_HZ
        assert done["response"]["status"] == "cancelled"
        assert talk.truth("heard")[0]["cut"]
        # What was ignored is in no turn.
        last = talk.truth("append")[-1]
        assert last["sample"] - last["turn_sample"] == ignored["received_samples"]

    asyncio.run(turn())


@pytest.mark.loopback
def test_a_stubborn_agent_answers_when_it_has_finished() -> None:
    async def turn() -> None:
        async with talk_with(policy="stubborn", **LONG | {"answer_s": 3.0}) as talk:
            await answering(talk)
            await talk.say(silence(0.1) + spoken(seconds=1.0) + silence(0.8))
            first = await talk.until("response.done")
            second = await talk.until("response.created")
        assert first["response"]["status"] == "completed"
        assert second["response"]["id"] == "resp_2"
        assert [row["decision"] for row in talk.truth("policy")] == ["hold"]
        assert [f["type"] for f in talk.frames].count("input_audio_buffer.speech_started") == 1
        assert not talk.truth("heard")[0]["cut"]

    asyncio.run(turn())
