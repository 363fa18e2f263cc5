"""The agent with a local model as its brain: `parrot`, which says back what it heard."""

from __future__ import annotations

import asyncio
import contextlib
import json
from contextlib import AsyncExitStack
from typing import Any, Self
from urllib.parse import urlsplit

import numpy as np
import pytest

from connectors.agent import Knobs, serve
from connectors.agent.brain import OF_RECORDINGS, BrainOptions
from connectors.agent.brain_answer import BrainAnswer
from connectors.agent.knobs import read_knobs
from connectors.agent.plan import Plan
from connectors.codecs.openai_realtime_server import OpenAIEvents
from harness.core.commands import Commit, Configure, CreateResponse
from harness.core.connector import PeerOptions
from harness.core.errors import ConfigError
from harness.core.events import AudioReceived, TextReceived
from tests.connectors.agent.talk import RATE_HZ, Talk, silence, spoken, talking
from tests.connectors.agent.test_agent_process import COMMAND, ROOT, Remote, running
from tests.connectors.test_contract import AGENT, CLOCK, AgentBeside, Mouth
from tests.connectors.test_contract import Talk as Heard

pytestmark = pytest.mark.loopback
PROTOCOLS = [name for name in AGENT if "," not in name and "TLS" not in name]


def parrot(**settings: object) -> BrainOptions:
    given = {"think_ms": 20, **settings}
    return BrainOptions(target="parrot", settings={key: str(value) for key, value in given.items()})


def energy(pcm: bytes) -> float:
    samples = np.frombuffer(pcm, dtype="<i2").astype(np.float64)
    return float(np.square(samples).sum())


def test_turns_of_one_session_are_answered_by_the_model_and_logged() -> None:
    said = spoken(seconds=0.8)

    async def turns() -> Talk:
        async with serve(Knobs(burst_x=0.0), keep_truth=True, brain=parrot()) as agent, talking(agent) as talk:
            await talk.manual()
            for turn in (1, 2):
                await talk.say(said)
                await talk.send("input_audio_buffer.commit")
                await talk.send("response.create")
                await talk.until("response.done")
                async with asyncio.timeout(10):
                    while len(talk.truth("heard")) < turn:  # noqa: ASYNC110 - a listener's time passes
                        await asyncio.sleep(0.02)
            return talk

    talk = asyncio.run(turns())
    ends = [f["response"] for f in talk.frames if f["type"] == "response.done"]
    assert [(end["id"], end["status"]) for end in ends] == [("resp_1", "completed"), ("resp_2", "completed")]
    # What it says back is what was said, but for the silence that it leaves out around it.
    for end in ends:
        pcm = talk.audio(end["id"])
        assert energy(pcm) > 0.98 * energy(said)
        assert pcm.strip(b"\0") in said
        (item,) = end["output"]
        assert item["content"][0]["transcript"].startswith(f"You said {len(pcm) / 2 / RATE_HZ:.2f} seconds")
    begun = talk.truth("response")
    assert [(each["answer"], each["role"], each["rate_hz"]) for each in begun] == [("parrot", "answer", RATE_HZ)] * 2
    writes = [each for each in talk.truth("write") if each["kind"] == "audio"]
    assert sum(each["samples"] for each in writes) == len(talk.audio()) // 2
    assert all(each["before_ns"] <= each["after_ns"] for each in writes)
    assert [each["samples"] for each in talk.truth("heard")] == [len(talk.audio(end["id"])) // 2 for end in ends]


def test_the_user_s_voice_interrupts_the_model() -> None:
    async def turns() -> Talk:
        knobs = Knobs(delivery="paced", chunk_ms=20, endpoint_ms=200)
        # Two seconds of thought a packet: the model is far from done when the user speaks.
        brain = parrot(step_ms=30, delivery="paced")
        async with serve(knobs, keep_truth=True, brain=brain) as agent, talking(agent) as talk:
            await talk.say(spoken(seconds=1.5) + silence(0.6))
            await talk.until("response.output_audio.delta")
            await talk.say(spoken("answer-en-02", seconds=1.0))
            await talk.until("response.done")
            await talk.say(silence(0.6))
            while talk.frames[-1]["type"] != "response.done" or len(talk.truth("done")) < 2:
                await talk.next()
            return talk

    talk = asyncio.run(turns())
    first, second = (f["response"] for f in talk.frames if f["type"] == "response.done")
    assert (first["status"], second["status"]) == ("cancelled", "completed")
    (stop,) = talk.truth("stop")
    assert (stop["response"], stop["reason"]) == ("resp_1", "barge_in")
    # Nothing of the first answer is in the second, which says the second turn back.
    rest = talk.audio("resp_2")
    assert 0.6 * RATE_HZ * 2 < len(rest) < 1.6 * RATE_HZ * 2
    assert energy(rest) > 0.9 * energy(spoken("answer-en-02", seconds=1.0))


@pytest.mark.parametrize("failure", ["raise_after", "crash_after"])
def test_a_model_that_fails_fails_its_answer_and_is_back_for_the_next(failure: str) -> None:
    async def turns() -> Talk:
        async with (
            serve(Knobs(burst_x=0.0), keep_truth=True, brain=parrot(**{failure: 12})) as agent,
            talking(agent) as talk,
        ):
            await talk.manual()
            for _ in range(2):
                # The first answer takes 9 steps, the second would be of more than 12.
                await talk.say(spoken(seconds=0.1) if not talk.truth("done") else spoken(seconds=1.0))
                await talk.send("input_audio_buffer.commit")
                await talk.send("response.create")
                await talk.until("response.done")
            await talk.say(spoken(seconds=0.1))
            await talk.send("input_audio_buffer.commit")
            await talk.send("response.create")
            await talk.until("response.done")
            return talk

    talk = asyncio.run(turns())
    ends = [f["response"] for f in talk.frames if f["type"] == "response.done"]
    assert [end["status"] for end in ends] == ["completed", "failed", "completed"]
    assert "parrot" in json.dumps(ends[1]["status_details"])


class Thinking(AgentBeside):
    """The embedded agent with the brain."""

    async def __aenter__(self) -> Self:
        self._stack = AsyncExitStack()
        agent = await self._stack.enter_async_context(serve(read_knobs(self._knobs), keep_truth=True, brain=parrot()))
        self.agent = agent
        self._peer = self._speaker(urlsplit(agent.url).netloc, self._client)
        await self._stack.enter_async_context(self._peer)
        return self


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_carries_what_the_model_says(protocol: str) -> None:
    async def main() -> tuple[Heard, list[dict[str, Any]]]:
        options = PeerOptions(settings={"protocol": AGENT[protocol].get("protocol", "openai"), "burst_x": "0"})
        async with Thinking(options, CLOCK) as peer:
            talk = Heard()
            manual = "vad" not in peer.profile.turns
            connection = await peer.connect(Configure(turn="manual" if manual else "vad"), talk.sink)
            mouth = Mouth(peer, connection)
            mouth.say(spoken(seconds=1.0))
            speaking = asyncio.ensure_future(mouth.run())
            await mouth.said.wait()
            if manual:
                speaking.cancel()
                for command in (Commit(), CreateResponse()):
                    connection.send(connection.prepare(command))
            await talk.until(lambda: talk.audible() and talk.of(TextReceived))
            await talk.until(lambda: peer.agent.truth.records("heard"))
            speaking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await speaking
            await connection.close()
            return talk, peer.agent.truth.records("response", "heard")

    talk, told = asyncio.run(main())
    assert "".join(event.text for event in talk.of(TextReceived)).startswith("You said ")
    response, heard = told
    assert (response["answer"], response["role"]) == ("parrot", "answer")
    if protocol == "chat":  # the answer is whole, and its connection closed, long before anybody has heard it
        samples = sum(event.samples for event in talk.of(AudioReceived))
        assert 0.8 * response["rate_hz"] < samples < 1.1 * response["rate_hz"]
    else:
        assert 0.8 < heard["samples"] / response["rate_hz"] < 1.6
        assert heard["begin_ns"] < heard["end_ns"]


def test_one_session_at_a_time() -> None:
    async def two() -> str:
        async with serve(brain=parrot()) as agent, talking(agent):
            return await asyncio.wait_for(_refusal(agent.url), 10)

    assert asyncio.run(two()) == "session limit reached"


async def _refusal(url: str) -> str:
    import websockets

    async with websockets.connect(url) as ws:
        with contextlib.suppress(websockets.ConnectionClosed):
            while True:
                await ws.recv()
        return ws.close_reason or ""


@pytest.mark.parametrize("name", OF_RECORDINGS)
def test_knobs_of_recorded_answers_are_refused(name: str) -> None:
    default = getattr(Knobs(), name)
    other = True if default is False else "text" if name == "user_transcript" else 7
    given = {name: other, **({"stall_ms": 5} if name == "stall_at_ms" else {})}

    async def start() -> None:
        async with serve(Knobs(**given), brain=parrot()):
            pass

    with pytest.raises(ConfigError, match=r"shapes recorded answers: it goes with no brain"):
        asyncio.run(start())


def test_the_command_line() -> None:
    async def turn(url: str) -> Talk:
        async with talking(Remote(url)) as talk:
            await talk.manual()
            await talk.ask()
            await talk.until("response.done")
            return talk

    with running("--brain", "parrot", "--brain-set", "think_ms=5") as (_, line):
        assert asyncio.run(turn(line["url"])).text().startswith("You said")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--brain", "parot"], "local:parot is neither package.module:Class nor a model: did you mean parrot?"),
        (["--brain", "parrot", "--brain-set", "thinkms=5"], "Parrot has no setting 'thinkms': did you mean think_ms?"),
        (["--brain", "parrot", "--brain-set", "think_ms"], "--brain-set think_ms: must be KEY=VALUE"),
        (["--brain-set", "think_ms=5"], "--brain-set needs --brain MODEL"),
        (["--brain", "parrot", "--set", "session_limit=3"], "session_limit: an agent with a brain serves one session"),
    ],
)
def test_wrong_options_are_one_line(arguments: list[str], line: str) -> None:
    import subprocess

    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(line)
    assert done.stderr.count("\n") == 1


def test_text_overtakes_sound_that_is_held_back() -> None:
    """A growing plan by hand: sound in real time, text when it comes."""
    now = [1_000_000_000]
    grown: list[Plan] = []
    answer = BrainAnswer(
        Knobs(delivery="paced", chunk_ms=100),
        OpenAIEvents("ga"),
        1,
        brain="b",
        from_ns=now[0],
        previous=None,
        now_ns=lambda: now[0],
        grown=grown.append,
    )
    now[0] += 50_000_000
    answer.text("One")
    answer.sound(np.ones(RATE_HZ // 4, dtype=np.int16), RATE_HZ)
    now[0] += 20_000_000
    answer.text(" two")
    answer.finish()
    steps = [(step.kind, step.at_ns // 1_000_000, step.samples) for step in answer.plan.steps if step.kind != "event"]
    assert steps == [
        ("text", 50, 0),
        ("audio", 50, 2_400),
        ("text", 70, 0),
        ("audio", 150, 2_400),
        ("audio", 250, 1_200),
        ("done", 300, 0),
    ]
    assert (answer.plan.transcript, answer.plan.samples, len(answer.plan.sound)) == ("One two", 6_000, 6_000)
    assert grown == [answer.plan] * 4
