"""The agent's conversational policies over every protocol: what the harness finds against what the agent truly did.

One run of all of them, a few seconds a session; each test looks at one policy over one protocol.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.agent.knobs import PRESETS
from harness.core.events import Note, ScenarioEvent
from harness.run.bench import BenchRequest, run_bench
from scenarios.pack import load_pack
from scenarios.play import ScenarioPlay
from scenarios.scenario_file import read_scenarios
from scoring.duplex.rows import roles
from tests.run.live import hold
from tests.run.policy_run import PROTOCOLS, Case, Said, hold_all, ms

pytestmark = [pytest.mark.loopback, pytest.mark.exact]


def scenario(*events: str, linger_ms: int) -> str:
    return f"id: policy\nlanguage: en\nlinger_ms: {linger_ms}\nevents:\n" + "".join(events)


def say(clip: str, name: str, **keys: object) -> str:
    return f"  - say: {clip}\n" + "".join(f"    {key}: {value}\n" for key, value in {"id": name, **keys}.items())


def then(clip: str, name: str, delay_ms: int, **keys: object) -> str:
    """So long after the question's end: the answer comes 0.7 to 0.8 s after it. No cue rests on what is heard."""
    return say(clip, name, at="user_end", after="question", delay_ms=delay_ms, **keys)


LEAD = "%(lead)d"
QUESTION = say("en-q-02", "question", delay_ms=LEAD)
CUT_IN = scenario(QUESTION, then("en-int-01", "cut-in", 1700), linger_ms=1300)
QUICK: dict[str, object] = {"endpoint_ms": 320}
POLICIES: dict[str, tuple[dict[str, object], str]] = {
    "none": (QUICK, CUT_IN),
    "stubborn": (
        QUICK | {"policy": "stubborn", "think_ms": 700},
        scenario(QUESTION, then("en-int-02", "cut-in", 1900), linger_ms=3900),
    ),
    "hesitant": (QUICK | {"policy": "hesitant"}, CUT_IN),
    "polite": (
        QUICK | {"policy": "polite"},
        scenario(
            QUESTION,
            then("en-bc-01", "mm-hm", 1000, kind="backchannel"),
            then("en-int-01", "cut-in", 3500),
            linger_ms=1300,
        ),
    ),
    "resuming": (
        QUICK | {"policy": "resuming"},
        scenario(QUESTION, then("en-bc-01", "mm-hm", 1500, kind="backchannel"), linger_ms=1700),
    ),
    "eager": (
        {"policy": "eager", "think_ms": 700},
        scenario(say("en-pause-01", "question", delay_ms=LEAD), linger_ms=1300),
    ),
    "chatty": (
        QUICK | {"policy": "chatty"},
        scenario(say("en-long-01", "question", delay_ms=LEAD), linger_ms=1300),
    ),
    "greeter": (
        QUICK | {"policy": "greeter", "greet_ms": 1500, "answer_s": 1.2},
        scenario(say("en-q-02", "question", delay_ms=3500), linger_ms=1300),
    ),
}
Errors = dict[str, float]
"""Found less true, ms."""


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Case]:
    return hold_all(tmp_path_factory.mktemp("policies"), POLICIES)


def answered(case: Case, said: Said, event: str = "question", metric: str = "response_latency_ms") -> Errors:
    return {metric: case.row(event)[metric] - ms(said.begin_ns - case.user(event)[1])}


def interrupted(case: Case) -> Errors:
    """The question is answered, that answer meets the user's interruption, which is answered as well."""
    first, second = case.said
    onset_ns, end_ns = case.user("cut-in")
    row = case.row("cut-in")
    return {
        **answered(case, first),
        "stop_ms": row["stop_ms"] - ms(first.end_ns - onset_ns),
        "talk_over_ms": row["talk_over_ms"] - ms(min(first.end_ns, end_ns) - onset_ns),
        **answered(case, second, "cut-in", "post_interruption_latency_ms"),
    }


def yields(case: Case) -> Errors:
    assert case.row("cut-in")["yielded"] is True
    assert [said.stopped_ns is None for said in case.said] == [False, True]
    return interrupted(case)


def stubborn(case: Case) -> Errors:
    assert case.row("cut-in")["yielded"] is False
    assert not case.told("stop", reason="barge_in")
    return interrupted(case)


def polite(case: Case) -> Errors:
    row = case.row("mm-hm")
    assert (row["kept_talking"], row["false_stop"]) == (True, False)
    assert [record["decision"] for record in case.told("policy")] == ["ignore", "yield"]
    return yields(case)


def resuming(case: Case) -> Errors:
    row, (first, second) = case.row("mm-hm"), case.said
    assert (row["kept_talking"], row["false_stop"], row["resumed"]) == (False, True, True)
    assert (second.role, second.from_sample > 0) == ("resumed", True)
    resume_ms = row["resume_ms"] - ms(second.begin_ns - first.end_ns)
    return {**answered(case, first), "resume_ms": resume_ms}


def eager(case: Case) -> Errors:
    row, (first, second) = case.row("question"), case.said
    assert (row["false_start"], row["agent_interruptions"], row["agent_backchannels"]) == (True, 1, 0)
    (found,) = case.floor.interruptions(0)
    return {
        "agent_interruption onset": ms(found.start_ns - first.begin_ns),
        "overlap_ms": row["overlap_ms"] - ms(first.end_ns - first.begin_ns),
        **answered(case, second),
    }


def chatty(case: Case) -> Errors:
    *nods, answer = case.said
    found = case.floor.backchannels(0)
    assert [said.role for said in case.said] == ["backchannel", "backchannel", "answer"]
    assert case.row("question")["agent_backchannels"] == len(found) == len(nods)
    errors = answered(case, answer)
    for number, (utterance, said) in enumerate(zip(found, nods, strict=True), start=1):
        errors[f"backchannel {number} onset"] = ms(utterance.start_ns - said.begin_ns)
        errors[f"backchannel {number} end"] = ms(utterance.end_ns - said.end_ns)
    return errors


def greeter(case: Case) -> Errors:
    greeting, answer = case.said
    found = case.floor.utterances[0]
    assert greeting.role == "greeting"
    assert roles(case.floor)["greeting"] == 1
    return {
        "greeting onset": ms(found.start_ns - greeting.begin_ns),
        "greeting end": ms(found.end_ns - greeting.end_ns),
        **answered(case, answer),
    }


FIND: dict[str, Callable[[Case], Errors]] = {
    "none": yields,
    "stubborn": stubborn,
    "hesitant": yields,
    "polite": polite,
    "resuming": resuming,
    "eager": eager,
    "chatty": chatty,
    "greeter": greeter,
}


def test_every_policy_is_played() -> None:
    assert set(POLICIES) == set(FIND) == set(PRESETS)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("policy", POLICIES)
def test_the_harness_finds_what_the_agent_did_within_a_frame(
    policy: str, protocol: str, cases: dict[tuple[str, str], Case]
) -> None:
    case = cases[policy, protocol]
    errors = FIND[policy](case)
    assert {name: error for name, error in errors.items() if abs(error) > case.bound_ms} == {}


# --- the agent honours its knobs, by its own log ------------------------------------------------------------------


def stops_after(case: Case) -> float:
    """From the decision to yield to the stop."""
    (decided,) = case.told("policy", decision="yield")
    return ms(case.told("stop", reason="barge_in")[0]["t_ns"] - decided["t_ns"])


def writes_after(case: Case, role: str, decision: str) -> float:
    """From a decision to the first packet of what follows from it."""
    response = case.told("response", role=role)[0]["response"]
    first = next(row for row in case.told("write", kind="audio", response=response) if row["samples"] > 0)
    return ms(first["before_ns"] - case.told("policy", decision=decision)[0]["t_ns"])


NOMINAL: list[tuple[str, Callable[[Case], float], float]] = [
    ("none", stops_after, 0.0),
    ("hesitant", stops_after, 400.0),
    ("polite", stops_after, 0.0),
    ("resuming", stops_after, 0.0),
    ("resuming", lambda case: writes_after(case, "resumed", "resume"), 500.0),
    ("eager", stops_after, 1000.0),
    ("greeter", lambda case: writes_after(case, "greeting", "greet"), 1500.0),
    ("chatty", lambda case: writes_after(case, "backchannel", "backchannel"), 0.0),
]
PACKET_MS = {"openai-live": 100.0, "moshi": 80.0, "openai-webrtc": 20.0, "small-webrtc": 20.0}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_agent_keeps_its_own_times(protocol: str, cases: dict[tuple[str, str], Case]) -> None:
    wrong = []
    for policy, measure, nominal_ms in NOMINAL:
        case = cases[policy, protocol]
        late_ms = measure(case) - nominal_ms
        if not 0 <= late_ms <= PACKET_MS.get(protocol, 0.0) + case.bound_ms:
            wrong.append((policy, nominal_ms, late_ms))
    assert wrong == []


# --- chat has no policies -----------------------------------------------------------------------------------------


def test_chat_is_not_run_and_the_reason_is_told(tmp_path: Path) -> None:
    (asked,) = read_scenarios(CUT_IN % {"lead": 300}, "chat.yaml")
    play: Any = ScenarioPlay(asked, load_pack("duplex-en").clips)
    request = BenchRequest(
        peers=("agent?protocol=chat&policy=polite",), out=tmp_path / "run", duplex=True, show_progress=False
    )
    (directory,) = run_bench(request, "policies", [play], {}).directories
    (session,) = directory.load()
    (note,) = session.of(Note)
    assert note.code == "not_run"
    assert "one upload: a scenario needs a stream in both directions" in note.message
    assert not list(session.of(ScenarioEvent))


@pytest.mark.parametrize("policy", ["greeter", "chatty"])
def test_over_chat_the_agent_only_answers(policy: str, tmp_path: Path) -> None:
    log = tmp_path / "truth.jsonl"
    held = hold(tmp_path / "run", {"protocol": "chat", "policy": policy, "truth": log, "answer_s": 0.3})
    assert held.row["status"] == "ok"
    rows = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert [row["role"] for row in rows if row["type"] == "response"] == ["answer"]
    assert not [row for row in rows if row["type"] == "policy"]
