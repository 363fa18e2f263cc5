"""tau-voice trajectories as sessions: segments on their ticks, sounds beside them, the published panel from them."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.errors import ConfigError
from harness.core.events import AudioReceived, Note, ScenarioEvent, TurnStarted
from harness.core.run_directory import RunDirectory
from harness.core.tick_files import read_trajectories
from scenarios.importers.tau2 import import_tau2
from scoring.duplex.hearing import hear
from scoring.duplex.presets import tau
from scoring.duplex.presets.definitions import material_of
from scoring.duplex.presets.tau_panel import panel_of
from scoring.duplex.presets.tau_ticks import quantised
from scoring.duplex.spans import Span
from scoring.timing.scorer import TimingScorer
from tests.scenarios.recorded import only

pytestmark = pytest.mark.unit

TICK_NS = 200_000_000


def chunk(speaks: bool = False, action: str | None = None, insert: tuple[str, str] | None = None) -> dict[str, Any]:
    effects = None if insert is None else {"speech_insert": {"type": insert[0], "text": insert[1]}}
    said = None if action is None else {"action": action}
    return {"contains_speech": speaks, "turn_taking_action": said, "source_effects": effects, "speech_effects": None}


def simulation(name: str = "sim") -> dict[str, Any]:
    """20 ticks: the user in 2-4 and (backchannel) 9-10, a cough in 6, an aside in 12-13; the agent in 5-11 and 15."""
    ticks = []
    for index in range(20):
        user = chunk(index in (2, 3, 4, 9, 10))
        if index == 2:
            user = chunk(True, "generate_message")
        if index == 9:
            user = chunk(True, "backchannel")
        if index == 6:
            user = chunk(insert=("vocal_tic", "[cough]"))
        if index in (12, 13):
            user = chunk(insert=("non_directed_phrase", "One moment."))
        ticks.append({"tick_id": index, "user_chunk": user, "agent_chunk": chunk(5 <= index <= 11 or index == 15)})
    return {"id": name, "task_id": "7", "ticks": ticks}


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def test_segments_stand_on_their_ticks(tmp_path: Path) -> None:
    import_tau2(write(tmp_path / "sim.json", simulation()), tmp_path / "run")
    session = only(tmp_path / "run")
    tick = 48_000 // 5
    found = [(e.kind, e.expect, e.speech_start // tick, e.speech_end // tick) for e in session.of(ScenarioEvent)]
    assert found == [
        ("turn", "", 2, 5),
        ("tic", "", 6, 7),
        ("backchannel", "keep_talking", 9, 11),
        ("non_directed", "", 12, 14),
    ]
    assert len(list(session.of(TurnStarted))) == 1
    assert [(e.t_ns, e.samples * 1_000_000_000 // e.rate_hz) for e in session.of(AudioReceived)] == [
        (5 * TICK_NS, 7 * TICK_NS),
        (15 * TICK_NS, TICK_NS),
    ]
    conversation = hear(session).conversation
    assert conversation.agent == (Span(5 * TICK_NS, 12 * TICK_NS), Span(15 * TICK_NS, 16 * TICK_NS))
    assert (conversation.begin_ns, conversation.end_ns) == (0, 20 * TICK_NS)
    assert conversation.wire is None
    assert conversation.utterances is None


def test_what_cannot_be_known_is_said(tmp_path: Path) -> None:
    import_tau2(write(tmp_path / "sim.json", simulation()), tmp_path / "run")
    session = only(tmp_path / "run")
    assert session.header.imported == "tau2"
    assert session.header.agent.samples == 0
    assert session.header.config["tick_ns"] == TICK_NS
    notes = " ".join(note.message for note in session.of(Note))
    assert "multiple of a tick of 0.2 s (the default" in notes
    assert "no sound of either side" in notes
    (row,) = TimingScorer().score(RunDirectory(tmp_path / "run")).rows
    assert (row["first_packet_ms"], row["first_audible_ms"], row["ttft_ms"]) == (None, None, None)
    assert row["reasons"]["first_packet_ms"] == "no sends were recorded"


def test_the_length_of_a_tick_comes_from_the_results(tmp_path: Path) -> None:
    write(tmp_path / "results.json", {"info": {"audio_native_config": {"tick_duration_seconds": 0.05}}})
    write(tmp_path / "simulations" / "b.json", simulation("b"))
    write(tmp_path / "simulations" / "a.json", simulation("a"))
    made = import_tau2(tmp_path, tmp_path / "run")
    assert made.sessions == ("a", "b")
    for session in RunDirectory(tmp_path / "run").load():
        assert hear(session).conversation.end_ns == 20 * 50_000_000


def test_simulations_inside_one_file(tmp_path: Path) -> None:
    file = write(tmp_path / "all.json", {"simulations": [simulation("a"), {"id": "half-duplex"}, simulation("b")]})
    assert import_tau2(file, tmp_path / "run").sessions == ("a", "b")


def pattern(draw: st.DrawFn, letters: str, length: int) -> str:
    return draw(st.text(alphabet=letters, min_size=length, max_size=length))


@st.composite
def simulations(draw: st.DrawFn) -> dict[str, Any]:
    """Any ticks: speech on both sides, backchannels, tics and asides that last a tick or several."""
    length = draw(st.integers(3, 60))
    users, agents, extra, second = (
        pattern(draw, letters, length) for letters in ("..#b", ".#", "....ttan", ".....taA")
    )
    inserts = {"t": ("vocal_tic", "[cough]"), "a": ("non_directed_phrase", "hold on")}
    ticks = []
    for user, agent, first, other in zip(users, agents, extra, second, strict=True):
        said = chunk(user != ".", "backchannel" if user == "b" else "generate_message", inserts.get(first))
        if first == "n":
            said["source_effects"] = {"burst_noise_file": "sounds/dog.wav"}
        if other != ".":
            kind, text = inserts[other.lower()]
            said["speech_effects"] = {"speech_insert": {"type": kind, "text": text if other.islower() else "ahem"}}
        ticks.append({"user_chunk": said, "agent_chunk": chunk(agent == "#")})
    return {"id": "sim", "ticks": ticks}


@settings(max_examples=40, deadline=None)
@given(simulations(), st.sampled_from([0.2, 0.05]))
def test_the_session_and_the_file_give_one_panel(content: dict[str, Any], tick_s: float) -> None:
    with TemporaryDirectory() as folder:
        write(Path(folder) / "results.json", {"info": {"audio_native_config": {"tick_duration_seconds": tick_s}}})
        write(Path(folder) / "simulations" / "a.json", content)
        (read,) = read_trajectories(Path(folder))
        import_tau2(Path(folder), Path(folder) / "run")
        material = material_of(only(Path(folder) / "run"))
    assert material.conversation is not None
    again = quantised(material.conversation, "sim", read.trajectory.tick_ns)
    assert [(t.user, t.agent) for t in again.ticks] == [(t.user, t.agent) for t in read.trajectory.ticks]
    assert panel_of([again]) == panel_of([read.trajectory])
    measured = tau.PRESET.measure(material)
    assert measured.figures == panel_of([read.trajectory]).shown()
    assert measured.n == panel_of([read.trajectory]).n()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "no tau-voice trajectory"),
        ("[]", "no tau-voice trajectory"),
        ('{"ticks": 3}', "no tau-voice trajectory"),
        ('{"ticks": []}', "no ticks"),
        ('{"other": 1}', "no trajectories"),
    ],
)
def test_what_is_no_trajectory(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(content)
    with pytest.raises(ConfigError, match=said) as caught:
        import_tau2(file, tmp_path / "run")
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_tick_that_no_sample_meets_and_a_missing_file(tmp_path: Path) -> None:
    write(tmp_path / "results.json", {"info": {"audio_native_config": {"tick_duration_seconds": 0.0333}}})
    write(tmp_path / "simulations" / "a.json", simulation())
    with pytest.raises(ConfigError, match=r"a tick of 0\.0333 s"):
        import_tau2(tmp_path, tmp_path / "run")
    with pytest.raises(ConfigError, match="no such file or folder"):
        import_tau2(tmp_path / "nowhere", tmp_path / "run")
