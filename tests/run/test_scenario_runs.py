"""Scenarios held with the embedded agent, through the director: alone and among others, and where barge-ins are hard.

The agent keeps a truth log of what it sent; figures are compared with that, never with how fast the machine is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from harness.core.audio import NS_PER_MS, samples_to_ns
from harness.core.connector import PeerOptions
from harness.core.events import AudioReceived, LoopLag, ScenarioEvent, StreamStarted
from harness.core.session.reader import Session
from harness.run.bench import BenchRequest, run_bench
from harness.run.cue_report import CueReport, cue_report
from harness.run.suite import SuiteOptions
from scenarios.compiler import compile_script
from scenarios.pack import load_pack
from scenarios.play import ScenarioPlay
from scenarios.scenario_file import read_scenarios
from scoring.duplex.scorer import DuplexScorer

pytestmark = [pytest.mark.loopback, pytest.mark.exact]
RATE = 24_000
FRAME_MS = 20.0
AGENT = {"answer_s": 4, "leading_silence_ms": 1_000, "stall_at_ms": 3_000, "stall_ms": 4_500, "burst_x": 20}
"""In an answer: a second of silence, 2 s of speech, a stall, 2 s of speech. In bursts of twenty times real time the gap
in the delivery lasts from 0.15 to 4.65 s after the first packet; what had come is played by 3.0, so playout is dry from
2.0 to 3.65 s after the speech began. Starts are known a second ahead of playout, ends nearly two."""
EVENT = "  - say: en-q-01\n  - say: en-int-01\n    at: {at}\n    delay_ms: {delay}\n    expect: {expect}\n"


def scenario(name: str, at: str, delay: int, expect: str = "stop") -> str:
    return f"id: {name}\nlanguage: en\nlinger_ms: 4000\nevents:\n{EVENT.format(at=at, delay=delay, expect=expect)}"


SUBJECT = scenario("subject", "agent_start", 1_200)
OTHERS = (
    scenario("first-packet", "agent_start", 30),
    scenario("stall", "agent_start", 2_300),
    scenario("last-sample", "agent_end", -30),
    scenario("after-the-end", "agent_end", 300, "respond"),
    scenario("cut-2", "agent_start", 700),
    scenario("cut-3", "agent_start", 1_700),
    "id: turn-1\nlanguage: en\nlinger_ms: 8000\nevents:\n  - say: en-q-02\n",
    "id: turn-2\nlanguage: en\nlinger_ms: 8000\nevents:\n  - say: en-q-03\n",
    "id: door\nlanguage: en\nlinger_ms: 8000\nevents:\n  - say: en-q-04\n"
    "  - noise: en-noise-01\n    at: user_end\n    delay_ms: -400\n    expect: stay_silent\n",
)


class Held(NamedTuple):
    """One session: its rows by event, and what the agent wrote of it."""

    session: Session
    rows: dict[str, dict[str, Any]]
    truth: list[dict[str, Any]]

    def placed(self, event: str) -> ScenarioEvent:
        return next(each for each in self.session.of(ScenarioEvent) if each.event == event)

    def instant(self, sample: int) -> int:
        stream = next(self.session.of(StreamStarted))
        return stream.t_ns + samples_to_ns(sample - stream.sample, stream.rate_hz)

    @property
    def own_error_ms(self) -> float:
        return max((lag.max_lag_ns for lag in self.session.of(LoopLag)), default=0) / NS_PER_MS

    def told(self, kind: str) -> list[dict[str, Any]]:
        return [row for row in self.truth if row["type"] == kind]


class Run(NamedTuple):
    sessions: dict[str, Held]
    cues: CueReport


def hold(out: Path, texts: tuple[str, ...]) -> Run:
    clips = load_pack("duplex-en").clips
    plays = [ScenarioPlay(each, clips) for text in texts for each in read_scenarios(text, "test.yaml")]
    truth = out.with_suffix(".truth.jsonl")
    settings = {key: str(value) for key, value in AGENT.items()} | {"realtime": "true", "truth": str(truth)}
    request = BenchRequest(
        options=PeerOptions(settings=settings),
        suite=SuiteOptions(concurrency=10),
        out=out,
        show_progress=False,
        priority="realtime",
        duplex=True,
    )
    (directory,) = run_bench(request, "test", plays, {}).directories
    rows = DuplexScorer().score(directory).rows
    records = [json.loads(line) for line in truth.read_text().splitlines()]
    found = {}
    for session in directory.load():
        name = session.header.session
        own = {row["event"]: row for row in rows if row["session"] == name}
        found[session.header.config["scenario"]] = Held(session, own, of(session, records))
    return Run(found, cue_report(directory.load()))


def of(session: Session, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The agent's records of this session: those of the connection that wrote what it received, when it did."""
    came = np.array([event.t_ns for event in session.of(AudioReceived)])
    best, chosen = None, []
    for conn in sorted({row["conn"] for row in records}):
        own = [row for row in records if row["conn"] == conn]
        sent = np.array([row["before_ns"] for row in own if row["type"] == "write" and row["kind"] == "audio"])
        if len(sent) >= len(came) and (sent[: len(came)] <= came).all():  # some may be on their way at the end
            delay = int((came - sent[: len(came)]).max())
            if best is None or delay < best:
                best, chosen = delay, own
    assert chosen, "no connection of the agent sent what this session received"
    return chosen


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return hold(tmp_path_factory.mktemp("alone") / "run", (SUBJECT,))


@pytest.fixture(scope="module")
def among(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return hold(tmp_path_factory.mktemp("among") / "run", (*OTHERS[:5], SUBJECT, *OTHERS[5:]))


OUTCOMES = ("demand", "agent_speaking", "agent_ended", "yielded", "missed_response", "false_start", "offset_exact")
OUTCOMES += ("agent_backchannels", "agent_interruptions", "timed_out")


def bound_ms(held: Held) -> float:
    """A frame, and what the machine itself may have held up: the loop's lag, on the way there and back."""
    return FRAME_MS + 2 * held.own_error_ms


def said(held: Held, number: int, end: str) -> float:
    """When the agent's answer `number` truly began or ended to be heard, in ms as the rows count."""
    return float(held.told("heard")[number][end] - held.instant(0)) / NS_PER_MS


def stopped(held: Held) -> float:
    (stop,) = (row for row in held.told("stop") if row["reason"] == "barge_in")
    return float(stop["t_ns"] - held.instant(0)) / NS_PER_MS


@pytest.mark.parametrize("which", ["alone", "among"])
def test_cues_fall_where_they_were_planned(which: str, request: pytest.FixtureRequest) -> None:
    """From the true start or end of the agent's speech, to 10 ms; from the anchor as recorded, to the sample."""
    run: Run = request.getfixturevalue(which)
    cues = {"alone": 1, "among": 7}[which]
    assert (run.cues.agent_cues, run.cues.exact, list(run.cues.lines)) == (cues, cues, [])
    for name, held in run.sessions.items():
        for event in held.session.of(ScenarioEvent):
            if not event.anchor.startswith("agent"):
                continue
            begins_ns = held.instant(event.speech_start)
            assert abs(begins_ns - event.anchor_ns - event.planned_delay_ns) <= samples_to_ns(1, RATE), name
            end = "begin_ns" if event.anchor == "agent_start" else "end_ns"
            true_ns = held.told("heard")[0][end]
            assert abs(event.anchor_ns - true_ns) <= (10 + 2 * held.own_error_ms) * NS_PER_MS, name
            assert event.anchor_rule == ("speech" if end == "begin_ns" else "response_done")


def test_a_scenario_among_nine_others_is_what_it_is_alone(alone: Run, among: Run) -> None:
    pair = (alone.sessions["subject"], among.sessions["subject"])
    for event in ("e1", "e2"):
        first, second = ({name: held.rows[event][name] for name in OUTCOMES} for held in pair)
        assert first == second
        lengths = [held.rows[event]["end_ms"] - held.rows[event]["start_ms"] for held in pair]
        assert lengths[0] == pytest.approx(lengths[1], abs=0.05)
    assert pair[0].rows["e2"]["yielded"] is True
    for held in pair:
        asked, cut_in = held.rows["e1"], held.rows["e2"]
        bound = bound_ms(held)
        assert asked["response_latency_ms"] == pytest.approx(said(held, 0, "begin_ns") - asked["end_ms"], abs=bound)
        assert cut_in["stop_ms"] == pytest.approx(stopped(held) - cut_in["start_ms"], abs=bound)
        again = said(held, 1, "begin_ns") - cut_in["end_ms"]
        assert cut_in["post_interruption_latency_ms"] == pytest.approx(again, abs=bound)


def test_what_each_peer_heard_is_bit_for_bit_what_was_compiled(alone: Run, among: Run) -> None:
    texts = {each.id: each for text in (SUBJECT, *OTHERS) for each in read_scenarios(text, "test.yaml")}
    clips = load_pack("duplex-en").clips
    for name, held in [*alone.sessions.items(), *among.sessions.items()]:
        script = compile_script(texts[name], clips, rate_hz=RATE)
        mixed = np.zeros(len(held.session.user), dtype=np.int32)
        for planned in script.events:
            event = held.placed(planned.plan.id)
            samples = planned.clip.samples[len(planned.clip.samples) - event.clip_samples :]
            mixed[event.clip_sample : event.clip_sample + len(samples)] += samples
            if planned.speech_at is not None:
                assert event.speech_start == planned.speech_at
        assert np.array_equal(np.clip(mixed, -32768, 32767).astype(np.int16), held.session.user), name


def test_a_barge_in_at_the_first_packet(among: Run) -> None:
    held = among.sessions["first-packet"]
    row = held.rows["e2"]
    assert (row["agent_speaking"], row["agent_ended"], row["yielded"]) == (True, "broken_off", True)
    assert row["start_ms"] == pytest.approx(said(held, 0, "begin_ns") + 30, abs=10 + 2 * held.own_error_ms)
    assert row["stop_ms"] == pytest.approx(stopped(held) - row["start_ms"], abs=bound_ms(held))


def test_a_barge_in_during_a_stall(among: Run) -> None:
    """Playout had run dry 0.3 s before, and what came after the agent had stopped was never heard: the agent is not
    heard at the onset, and the user's words are answered."""
    held = among.sessions["stall"]
    row = held.rows["e2"]
    assert said(held, 0, "end_ns") < row["start_ms"] < stopped(held)
    assert (row["agent_speaking"], row["stop_ms"], row["yielded"]) == (False, None, None)
    assert row["reasons"]["stop_ms"] == "the agent was not heard at the onset"
    answered = said(held, 1, "begin_ns") - row["end_ms"]
    assert row["response_latency_ms"] == pytest.approx(answered, abs=bound_ms(held))


def test_a_barge_in_at_the_last_sample(among: Run) -> None:
    """30 ms before the last sound: the agent ends by itself before it can have heard anybody."""
    held = among.sessions["last-sample"]
    row = held.rows["e2"]
    assert (row["agent_speaking"], row["agent_ended"], row["yielded"]) == (True, "by_itself", None)
    assert row["stop_ms"] == pytest.approx(30, abs=10)
    assert row["stop_ms"] == pytest.approx(said(held, 0, "end_ns") - row["start_ms"], abs=10 + 2 * held.own_error_ms)
    assert held.told("heard")[0]["cut"] is False


def test_after_the_natural_end_there_is_no_barge_in(among: Run) -> None:
    held = among.sessions["after-the-end"]
    row = held.rows["e2"]
    assert (row["agent_speaking"], row["stop_ms"], row["yielded"]) == (False, None, None)
    assert row["start_ms"] == pytest.approx(said(held, 0, "end_ns") + 300, abs=10 + 2 * held.own_error_ms)
    answered = said(held, 1, "begin_ns") - row["end_ms"]
    assert row["response_latency_ms"] == pytest.approx(answered, abs=bound_ms(held))
