"""One recording under every definition, and the registry that they come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.core.errors import ConfigError, ScoringError
from harness.core.scorer import Unscored
from scoring.duplex.presets import registry
from scoring.duplex.presets.definitions import definitions, material_of
from scoring.duplex.presets.livekit import PRESET as LIVEKIT
from scoring.duplex.presets.registry import all_presets, preset
from tests.scoring.duplex.sessions import Talk
from tests.scoring.timing.recordings import Script, header, tone, vad_turn

pytestmark = pytest.mark.unit


def test_the_presets_in_their_order() -> None:
    assert [each.name for each in all_presets()] == ["fdb", "tau", "coval", "pipecat", "livekit", "aiewf", "eva"]
    for each in all_presets():
        assert each.says.endswith(".")
        assert ". " not in each.says
        assert each.source
        assert each.figures


def test_a_preset_by_name() -> None:
    assert preset("livekit") is LIVEKIT
    with pytest.raises(ConfigError, match="did you mean pipecat"):
        preset("pipcat")


def test_two_presets_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.plugins, "names", lambda _group: ["eva"])
    monkeypatch.setattr(registry.plugins, "load", lambda _group, _name: registry.BUILT_IN[-1])
    all_presets.cache_clear()
    with pytest.raises(ScoringError, match="two presets are called eva"):
        all_presets()
    all_presets.cache_clear()


def test_one_recording_side_by_side(tmp_path: Path) -> None:
    table = definitions(material_of(vad_turn().write(tmp_path)))
    assert table.sessions == ("s0",)
    assert [row.name for row in table.rows] == [each.name for each in all_presets()]
    cells = {(row.name, cell.figure): cell for row in table.rows for cell in row.cells}
    assert (cells["livekit", "ttft_ms"].value, cells["livekit", "ttft_ms"].n) == (199.0, 1)
    assert cells["eva", "latency_ms"].value == 400.0
    # Silence from the user, a tone from the agent: Silero hears no speech, and the figures say so.
    assert cells["aiewf", "voice_to_voice_ms"].value == Unscored(reason="Silero hears no user speech in this turn")
    assert cells["aiewf", "voice_to_voice_ms"].reasons == {"Silero hears no user speech in this turn": 1}
    assert cells["fdb", "v1_turn_tor"].value == Unscored(reason="no words: the agent was not transcribed")
    assert all(row.says and row.source for row in table.rows)


def test_a_scenario_has_its_events_for_turns(tmp_path: Path) -> None:
    """Two questions with a noise between them; the second one interrupts nothing. By hand, ms: speech ends at 1000 and
    3000, responses are created at 1401 and 3401, first packets come at 1600 and 3700, a tone from their start on."""
    talk = Talk()
    talk.stream().event("q1", 300, 1000).send(0, 1400).begin(1401, "r1").audio(1600, tone(200), "r1").done(1601, "r1")
    talk.event("cough", 2000, 2100, kind="noise", expect="stay_silent").send(1400, 2300)
    talk.event("q2", 2300, 3000).send(2300, 3600).begin(3401, "r2").audio(3700, tone(200), "r2").done(3701, "r2")
    table = definitions(material_of(talk.until(4000).write(tmp_path)))
    cells = {(row.name, cell.figure): cell for row in table.rows for cell in row.cells}
    assert (cells["livekit", "ttft_ms"].value, cells["livekit", "ttft_ms"].n) == ((199 + 299) / 2, 2)
    assert (cells["eva", "latency_ms"].value, cells["eva", "latency_ms"].n) == ((600 + 700) / 2, 2)
    # Chunks of 20 ms are written 0.15 ms after their last sample: the last of the clips at 1000.15 and 3000.15.
    assert cells["coval", "latency_ms"].value == pytest.approx((600 - 0.15 + 700 - 0.15) / 2)
    assert cells["coval", "latency_ms"].n == 2


def test_an_upload_has_a_table_too(tmp_path: Path) -> None:
    script = Script().turn(0, 300, 1000, t_ms=0, clip_ms=(0, 1200)).send(0, 1200, chunk_ms=1200)
    table = definitions(material_of(script.write(tmp_path, header(mode="upload"))))
    assert all(isinstance(cell.value, Unscored) for row in table.rows for cell in row.cells)
