"""One run of every conversational policy over every protocol of the agent, with the truth that the agent wrote."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from connectors.agent.speech import BUNDLED
from connectors.embedded import FIFO_LEVEL, PATHS
from harness.core.audio import NS_PER_MS, samples_to_ns
from harness.core.clock import SystemClock
from harness.core.connector import PeerOptions
from harness.core.events import LoopLag, ScenarioEvent, StreamStarted
from harness.core.run_directory import RunDirectory
from harness.core.session.reader import Session
from harness.run.bench import run_async
from harness.run.peers import make_peer
from harness.run.plan import plan_sessions
from harness.run.rig import Rig
from harness.run.scenario_session import ScenarioRunner
from harness.run.suite import PeerRun, Suite, SuiteOptions, prepare_directory
from scenarios.pack import load_pack
from scenarios.play import ScenarioPlay
from scenarios.scenario_file import read_scenarios
from scoring.duplex.floor import Floor
from scoring.duplex.hearing import hear
from scoring.duplex.rows import session_rows

ANSWER = "answer-en-03"
"""The one answer of all agents: 4.0 s, its only pause 0.35 s long at 2.15 s."""
WAVES = (("openai", "openai-live", "gemini", "moshi", "generic"), ("openai-webrtc",), ("small-webrtc",))
"""Protocols whose sessions run at once. WebRTC apart: to set a call up holds the loop up for tens of ms, and calls take
ten times as much of a core as sockets do."""
LEADS_MS = (300, 1500, 1500)
"""From the beginning to the first word, by wave: all calls are set up by then, and listeners have caught up."""
SETTLED_NS = 500 * NS_PER_MS
"""So long before the first word a stall is over for a listener who catches up."""
PROTOCOLS = tuple(protocol for wave in WAVES for protocol in wave)
CONCURRENCY = 20
QUIET_MS = 20.0
"""One frame."""
STALLS = 3
"""A machine that stood still delays what comes, and may hide the little that was heard before: the bound grows by so
many times as long."""
MAP = """
title = "generic"
[input]
rate_hz = 24000
[output]
rate_hz = 24000
[send]
start = { type = "session.update", session = { type = "realtime" } }
audio = { type = "input_audio_buffer.append", audio = "$audio" }
[[receive]]
event = "ready"
when = { type = "session.created" }
[[receive]]
event = "configured"
when = { type = "session.updated" }
[[receive]]
event = "user_speech_started"
when = { type = "input_audio_buffer.speech_started" }
[[receive]]
event = "response_started"
when = { type = "response.created" }
response = "response.id"
[[receive]]
event = "audio"
when = { type = "response.output_audio.delta" }
audio = "delta"
response = "response_id"
[[receive]]
event = "response_done"
when = { type = "response.done" }
response = "response.id"
status = "response.status"
"""


class Said(NamedTuple):
    """One thing that the agent said, by its own log. end_ns: its last sound, or the stop where that silences a
    listener."""

    role: str
    begin_ns: int
    end_ns: int
    stopped_ns: int | None
    from_sample: int


class Case(NamedTuple):
    """One session: what the harness found, and what is true. truth: the session's records."""

    policy: str
    protocol: str
    session: Session
    floor: Floor
    rows: list[dict[str, Any]]
    truth: list[dict[str, Any]]
    bound_ms: float

    def row(self, event: str) -> dict[str, Any]:
        return next(row for row in self.rows if row["event"] == event)

    def told(self, record: str, **fields: object) -> list[dict[str, Any]]:
        return [row for row in self.truth if row["type"] == record and fields.items() <= row.items()]

    @property
    def said(self) -> list[Said]:
        found = []
        for response in self.told("response"):
            named = {"response": response["response"]}
            heard = next(iter(self.told("heard", **named)), None)
            if heard is None or heard["begin_ns"] is None:
                continue
            stops = [row["t_ns"] for row in self.told("stop", reason="barge_in", **named)]
            falls_silent = stops and not self.session.header.profile.continuous
            found.append(
                Said(
                    role=response["role"],
                    begin_ns=heard["begin_ns"],
                    end_ns=stops[0] if falls_silent else heard["end_ns"],
                    stopped_ns=stops[0] if stops else None,
                    from_sample=response["from_sample"],
                )
            )
        return found

    def user(self, event: str) -> tuple[int, int]:
        """When the user's speech of this event began and ended."""
        stream = next(self.session.of(StreamStarted))
        placed = next(each for each in self.session.of(ScenarioEvent) if each.event == event)
        ends = (placed.speech_start - stream.sample, placed.speech_end - stream.sample)
        begin_ns, end_ns = (stream.t_ns + samples_to_ns(at, stream.rate_hz) for at in ends)
        return begin_ns, end_ns


def hold_all(folder: Path, policies: dict[str, tuple[dict[str, object], str]]) -> dict[tuple[str, str], Case]:
    """Play each policy's scenario over every protocol. policies: to the agent's knobs and the scenario's YAML,
    where `%(lead)d` stands for the time before the first word."""
    answers = _one_answer(folder / "answers")
    (folder / "map.toml").write_text(MAP, "utf-8")
    clips = load_pack("duplex-en").clips
    with ExitStack() as stack:
        agents = _serving({policy: knobs for policy, (knobs, _) in policies.items()}, answers, folder)
        places = stack.enter_context(agents)
        runs: dict[tuple[str, str], PeerRun] = {}
        for policy, place in places.items():
            for protocol in PROTOCOLS:
                lead_ms = next(lead for lead, wave in zip(LEADS_MS, WAVES, strict=True) if protocol in wave)
                (scenario,) = read_scenarios(policies[policy][1] % {"lead": lead_ms}, f"{policy}.yaml")
                peer = _peer(protocol, place, folder / "map.toml")
                play = ScenarioPlay(scenario, clips).at_rate(peer.profile.input_rate_hz)
                runs[policy, protocol] = PeerRun(
                    peer=peer,
                    directory=RunDirectory(folder / policy / protocol),
                    queries=(play,),
                    suite="policies",
                    runner=ScenarioRunner,
                )
        for wave in WAVES:
            run_async(partial(_hold, [run for (_, protocol), run in runs.items() if protocol in wave]))
    truths = {policy: _truth(folder / f"{policy}.jsonl") for policy in policies}
    return {key: _case(*key, run.directory, truths[key[0]]) for key, run in runs.items()}


async def _hold(runs: list[PeerRun]) -> None:
    options = SuiteOptions(concurrency=CONCURRENCY)
    plan = plan_sessions([run.queries for run in runs], options.plan)
    for index, run in enumerate(runs):
        planned = [session.id for peer, session in plan if peer == index]
        prepare_directory(run.directory, run.peer, run.suite, {}, planned, resume=False)
    async with AsyncExitStack() as stack:
        rig = await stack.enter_async_context(Rig(asked="realtime"))
        for run in runs:
            await stack.enter_async_context(run.peer)
        await Suite(rig, runs, options, lambda result, done, total: None).run()


@contextmanager
def _serving(policies: dict[str, dict[str, object]], answers: Path, folder: Path) -> Iterator[dict[str, str]]:
    """An agent for each policy in a process of its own; yields host and port of each."""
    command = [sys.executable, "-m", "connectors.agent", "--exit-with-stdin", "--answers", str(answers)]
    started: dict[str, subprocess.Popen[str]] = {}
    try:
        for policy, knobs in policies.items():
            told = [part for name, value in knobs.items() for part in ("--set", f"{name}={value}")]
            told += ["--truth", str(folder / f"{policy}.jsonl")]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            started[policy] = subprocess.Popen([*command, *told], text=True, **pipes)
        yield {policy: _listening(process) for policy, process in started.items()}
    finally:
        for process in started.values():
            process.communicate(timeout=20)


def _listening(process: subprocess.Popen[str]) -> str:
    """Host and port of an agent, which is scheduled as the run is: nobody measures a machine that is busy otherwise."""
    assert process.stdout is not None
    place = urlsplit(json.loads(process.stdout.readline())["url"]).netloc
    if hasattr(os, "sched_setscheduler"):
        with suppress(PermissionError):
            os.sched_setscheduler(process.pid, os.SCHED_FIFO, os.sched_param(FIFO_LEVEL))
    return str(place)


def _peer(protocol: str, place: str, described: Path) -> Any:
    scheme, path = PATHS["openai" if protocol == "generic" else protocol]
    query = "?by=generic" if protocol == "generic" else ""
    settings = {"map": str(described)} if protocol == "generic" else {}
    options = PeerOptions(settings=settings, timeout_s=20.0)
    return make_peer(f"{protocol}:{scheme}://{place}{path}{query}", options, SystemClock())


def _one_answer(folder: Path) -> Path:
    folder.mkdir()
    rows = (BUNDLED / "manifest.jsonl").read_text("utf-8").splitlines()
    (folder / "manifest.jsonl").write_text(next(row for row in rows if ANSWER in row), "utf-8")
    shutil.copy(BUNDLED / f"{ANSWER}.flac", folder)
    return folder


def _truth(log: Path) -> dict[str, list[dict[str, Any]]]:
    """The records of each session, by protocol."""
    rows = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["type"] == "open":
            path = urlsplit(row["path"])
            protocol = next(name for name, (_, known) in PATHS.items() if known == path.path)
            protocol = "generic" if "by=generic" in path.query else protocol
            found[protocol] = [each for each in rows if each["conn"] == row["conn"]]
    return found


def _case(policy: str, protocol: str, directory: RunDirectory, truth: dict[str, list[dict[str, Any]]]) -> Case:
    (session,) = directory.load()
    heard = hear(session)
    floor = Floor(heard.conversation)
    rows = session_rows(session, heard, floor)
    from_ns = heard.conversation.user[0].start_ns - SETTLED_NS if session.header.profile.rtp else 0
    lag_ns = max((lag.max_lag_ns for lag in session.of(LoopLag) if lag.t_ns >= from_ns), default=0)
    return Case(policy, protocol, session, floor, rows, truth[protocol], QUIET_MS + STALLS * ms(lag_ns))


def ms(ns: int) -> float:
    return ns / NS_PER_MS
