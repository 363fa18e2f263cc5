"""Recordings of others: an imported trajectory has its own panel under `tau`, and the rest says what it lacks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.core.scorer import Unscored
from harness.core.session.reader import load_session
from harness.core.tick_files import read_trajectories
from scenarios.importers.tau2 import import_tau2
from scoring.duplex.presets.definitions import definitions, material_of
from scoring.duplex.presets.material import Material
from scoring.duplex.presets.tau_panel import panel_of
from scoring.duplex.presets.tau_ticks import quantised
from tests.scoring.duplex.presets.test_tau import VECTOR

pytestmark = pytest.mark.unit


def imported(source: Path, tmp: Path) -> Material:
    run = import_tau2(source, tmp / "run").run
    (session,) = sorted((run / "sessions").iterdir())
    return material_of(load_session(session))


def trajectory(tmp: Path) -> Path:
    """The user 0-1 and 6-7 (a backchannel under the agent), a cough at 4; the agent 3-5 and 7-9."""
    user, agent = "##....##..", "...###.###"
    ticks = [
        {"user_chunk": {"contains_speech": u == "#"}, "agent_chunk": {"contains_speech": a == "#"}}
        for u, a in zip(user, agent, strict=True)
    ]
    ticks[0]["user_chunk"]["turn_taking_action"] = {"action": "generate_message"}
    ticks[6]["user_chunk"]["turn_taking_action"] = {"action": "backchannel"}
    ticks[4]["user_chunk"]["source_effects"] = {"speech_insert": {"type": "vocal_tic", "text": "[cough]"}}
    path = tmp / "one.json"
    path.write_text(json.dumps({"id": "one", "ticks": ticks}))
    return path


def test_an_imported_trajectory_has_its_own_panel(tmp_path: Path) -> None:
    source = trajectory(tmp_path)
    material = imported(source, tmp_path)
    assert material.conversation is not None
    found = panel_of([quantised(material.conversation)])
    assert found == panel_of([each.trajectory for each in read_trajectories(source)])
    assert (found.response_latency_mean, found.counts.vocal_tic_total) == (pytest.approx(0.2), 1)
    assert found.counts.agent_interrupts_count == 1


@pytest.mark.skipif(not VECTOR.is_dir(), reason="shared data is not here: tau-voice")
def test_the_published_trajectory_survives_its_import(tmp_path: Path) -> None:
    material = imported(VECTOR, tmp_path)
    assert material.conversation is not None
    published = [each.trajectory for each in read_trajectories(VECTOR)]
    assert panel_of([quantised(material.conversation)]) == panel_of(published)


def test_what_nobody_stamped_is_not_measured(tmp_path: Path) -> None:
    table = definitions(imported(trajectory(tmp_path), tmp_path))
    cells = {(row.name, cell.figure): cell.value for row in table.rows for cell in row.cells}
    for name, figure in (("coval", "latency_ms"), ("pipecat", "latency_ms"), ("livekit", "ttft_ms")):
        assert cells[name, figure] == Unscored(reason="imported: nobody stamped its packets")
    assert cells["aiewf", "voice_to_voice_ms"] == 200.0
    notes = {row.name: row.notes for row in table.rows}
    assert notes["aiewf"] == ("spans: spans of the conversation",)
    assert cells["fdb", "v1_turn_tor"] == Unscored(reason="no words: the agent was not transcribed")
