"""The same run over every protocol that the agent serves, its figures against the agent's own instants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from connectors.agent.speech import BUNDLED
from harness.core.audibility import first_audible_sample
from harness.core.audio import NS_PER_MS, samples_to_ns
from harness.core.events import StreamStarted, TurnStarted
from scoring.timing.recording import Recording
from tests.run.live import Held, hold

pytestmark = [pytest.mark.loopback, pytest.mark.exact]
NOISY_MS = 60.0
"""What a machine that stood still may add; on a quiet one the bound of each test holds."""
ANSWER_S = 1.5


def told(log: Path, kind: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    return [row for row in rows if row["type"] == kind]


def held_over(protocol: str, folder: Path, **settings: object) -> tuple[Held, Path]:
    log = folder / "truth.jsonl"
    knobs = {"protocol": protocol, "truth": log, "think_ms": 200, "answer_s": ANSWER_S, **settings}
    return hold(folder / "run", knobs), log


def bound_ms(held: Held, quiet_ms: float) -> float:
    """The bound on a quiet machine; a noisy one, or a row that owns to an error of its own, is given more."""
    (directory,) = held.outcome.directories
    quiet = directory.read_lines("noise.jsonl")[-1]["quiet"]
    return (quiet_ms if quiet else NOISY_MS) + held.row["own_error_ms"]


def behind_ms(held: Held) -> float:
    """How far the listener's playout was behind the arrival of what was heard first: packets that came late before it,
    silent ones too, moved all that followed."""
    recording = Recording(held.sessions[0])
    heard_ns = speech_end_ns(held) + round(held.row["first_audible_ms"] * NS_PER_MS)
    played = recording.listener.played
    begun = [packet for packet in recording.packets if played[packet.seq].start_ns <= heard_ns]
    return (played[begun[-1].seq].start_ns - begun[-1].t_ns) / NS_PER_MS


def audible_in(answer: str) -> int:
    """Where the first sound of a bundled answer lies, in ns."""
    row = next(
        json.loads(line) for line in (BUNDLED / "manifest.jsonl").read_text("utf-8").splitlines() if answer in line
    )
    samples, rate_hz = soundfile.read(BUNDLED / row["audio"], dtype="int16")
    sample = first_audible_sample(np.asarray(samples[: round(ANSWER_S * rate_hz)]), rate_hz)
    assert sample is not None
    return samples_to_ns(sample, rate_hz)


def heard_ns(log: Path, rate_hz: int, offset_ns: int) -> int:
    """When the sound `offset_ns` into the answer could first be heard, by the agent's own writes: a packet that it
    sent late moves all that follows."""
    end_ns = told_ns = 0
    for row in told(log, "write"):
        if row["kind"] == "audio":
            begin_ns = max(end_ns, row["before_ns"])
            length_ns = samples_to_ns(row["samples"], rate_hz)
            if told_ns + length_ns > offset_ns:
                return begin_ns + offset_ns - told_ns
            end_ns, told_ns = begin_ns + length_ns, told_ns + length_ns
    raise AssertionError("the agent did not send that far")


def speech_end_ns(held: Held) -> int:
    events = list(held.sessions[0].events)
    stream = next(event for event in events if isinstance(event, StreamStarted))
    turn = next(event for event in events if isinstance(event, TurnStarted))
    return stream.t_ns + samples_to_ns(turn.speech_end - stream.sample, stream.rate_hz)


@pytest.mark.parametrize("protocol", ["openai", "gemini"])
def test_first_packet_is_the_agents_own_within_2_ms(protocol: str, tmp_path: Path) -> None:
    held, log = held_over(protocol, tmp_path)
    assert held.row["status"] == "ok"
    first = next(row for row in told(log, "write") if row["kind"] == "audio")
    rate_hz = told(log, "configured")[-1]["input_rate_hz"]
    turn = next(event for event in held.sessions[0].events if isinstance(event, TurnStarted))
    assert rate_hz == held.sessions[0].header.profile.input_rate_hz
    anchor = next(row for row in told(log, "append") if row["end_sample"] >= turn.speech_end)
    true_ms = (first["before_ns"] - anchor["t_ns"]) / NS_PER_MS
    assert abs(held.row["first_packet_ms"] - true_ms) <= bound_ms(held, 2.0)


@pytest.mark.parametrize("protocol", ["openai-webrtc", "small-webrtc", "openai-live", "moshi"])
def test_first_audible_is_the_agents_own_within_a_frame(protocol: str, tmp_path: Path) -> None:
    held, log = held_over(protocol, tmp_path)
    assert held.row["status"] == "ok"
    assert held.row["first_packet_ms"] is None  # undefined where audio never stops
    (answer,) = told(log, "response")
    rate_hz = held.sessions[0].header.agent.rate_hz
    true_ms = (heard_ns(log, rate_hz, audible_in(answer["answer"])) - speech_end_ns(held)) / NS_PER_MS
    assert abs(held.row["first_audible_ms"] - true_ms) <= bound_ms(held, 20.0) + behind_ms(held)


def test_an_upload_is_timed_from_its_last_byte(tmp_path: Path) -> None:
    held, log = held_over("chat", tmp_path)
    assert held.row["status"] == "ok"
    first = next(row for row in told(log, "write") if row["kind"] == "audio")
    received = told(log, "append")[-1]["t_ns"]
    true_ms = (first["before_ns"] - received) / NS_PER_MS
    assert abs(held.row["first_packet_ms"] - true_ms) <= bound_ms(held, 2.0)
    assert held.row["first_audible_ms"] is None
