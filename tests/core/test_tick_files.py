"""tau-voice's files: where they may lie, what they share, what is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import ConfigError
from harness.core.tick_files import read_trajectories
from harness.core.ticks import Effect, Tick, Trajectory

pytestmark = pytest.mark.unit
MS = 1_000_000


def simulation(name: str, **more: Any) -> dict[str, Any]:
    ticks = [{"user_chunk": {"contains_speech": u}, "agent_chunk": {"contains_speech": a}} for u, a in ((1, 0), (0, 1))]
    for tick in ticks:
        for chunk in tick.values():
            chunk["contains_speech"] = bool(chunk["contains_speech"])
    return {"id": name, "ticks": ticks, **more}


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def read(path: Path) -> list[Trajectory]:
    return [each.trajectory for each in read_trajectories(path)]


def test_a_file_a_folder_and_results_with_their_simulations(tmp_path: Path) -> None:
    whole = simulation("", task_id=4)
    whole["ticks"][1]["user_chunk"]["source_effects"] = {"speech_insert": {"type": "vocal_tic", "text": "hm"}}
    whole["ticks"][1]["user_chunk"]["speech_effects"] = {"speech_insert": {"type": "other", "text": "hi"}}
    whole["ticks"][0]["agent_chunk"] = None
    for name in ("a", "b"):
        write(tmp_path / name / "simulations" / "x.json", {**whole, "id": name})
    info = {"audio_native_config": {"tick_duration_seconds": 0.1, "provider": "p"}}
    write(tmp_path / "a" / "results.json", {"info": info})
    write(tmp_path / "b" / "results.json", {"simulations": [{**whole, "id": "c"}, {**whole, "ticks": None}]})
    first, second, third = read(tmp_path)
    assert [first.name, second.name, third.name] == ["a", "b", "c"]
    assert (first.tick_ns, second.tick_ns, first.provider, first.task) == (100 * MS, 200 * MS, "p", "4")
    assert first.ticks[1] == Tick(agent=True, effects=(Effect("vocal_tic", "hm"), Effect("non_directed", "hi")))
    assert read(tmp_path / "a" / "simulations" / "x.json") == [first]
    assert read(tmp_path / "a" / "simulations") == [first]
    assert read(tmp_path / "b" / "results.json") == [second, third]


def test_one_that_stands_in_results_and_beside_them_is_read_once(tmp_path: Path) -> None:
    write(tmp_path / "results.json", {"simulations": [simulation("a"), simulation("b")]})
    write(tmp_path / "simulations" / "a.json", simulation("a"))
    assert [each.file.name for each in read_trajectories(tmp_path)] == ["a.json", "results.json"]
    assert [each.name for each in read(tmp_path)] == ["a", "b"]


def test_a_file_without_an_id_is_called_after_itself(tmp_path: Path) -> None:
    assert read(write(tmp_path / "x.json", simulation("")))[0].name == "x"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"id": "x", "ticks": []}', "no ticks"),
        ("[" * 100_000, "no tau-voice trajectory"),
        ("{}", "no trajectories"),
    ],
)
def test_what_is_no_trajectory_says_so(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(ConfigError, match=said):
        read_trajectories(tmp_path / "x.json")


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        read_trajectories(tmp_path / "none")
    with pytest.raises(ConfigError, match="no trajectories"):
        read_trajectories(tmp_path)


@pytest.mark.parametrize("tick_s", [0, 0.009, 61])
def test_a_tick_has_bounds(tmp_path: Path, tick_s: float) -> None:
    write(tmp_path / "results.json", {"info": {"audio_native_config": {"tick_duration_seconds": tick_s}}})
    write(tmp_path / "simulations" / "a.json", simulation("a"))
    with pytest.raises(ConfigError, match=r"results\.json: a tick cannot last"):
        read_trajectories(tmp_path)
