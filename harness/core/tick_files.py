"""Files of tau-voice: `simulations/*.json` with the ticks, `results.json` beside them with what they share.

Source of the format: sierra-research/tau2-bench, full-duplex simulations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from harness.core.audio import NS_PER_S
from harness.core.errors import ConfigError
from harness.core.ticks import TICK_NS, Effect, Tick, Trajectory

RESULTS, SIMULATIONS = "results.json", "simulations"
SHORTEST_S, LONGEST_S = 0.01, 60.0
"""Bounds of a tick, in seconds."""
T = TypeVar("T")


class ReadTrajectory(NamedTuple):
    """A trajectory with the file that it stands in, and the `results.json` that was read for it, if there is one."""

    trajectory: Trajectory
    file: Path
    results: Path | None


class _Insert(msgspec.Struct, frozen=True):
    text: str | None = None
    type: str | None = None


class _Effects(msgspec.Struct, frozen=True):
    """`source_effects` and `speech_effects` in one: both may insert speech; the same in both is one sound."""

    speech_insert: _Insert | None = None
    burst_noise_file: str | None = None
    dynamic_muffling_enabled: bool | None = False


class _Action(msgspec.Struct, frozen=True):
    action: str | None = None


class _Chunk(msgspec.Struct, frozen=True):
    contains_speech: bool | None = False
    turn_taking_action: _Action | None = None
    source_effects: _Effects | None = None
    speech_effects: _Effects | None = None


class _Tick(msgspec.Struct, frozen=True):
    user_chunk: _Chunk | None = None
    agent_chunk: _Chunk | None = None


class _Simulation(msgspec.Struct, frozen=True):
    id: str = ""
    task_id: str | int | None = None
    ticks: tuple[_Tick, ...] | None = None


class _Audio(msgspec.Struct, frozen=True):
    tick_duration_seconds: float = TICK_NS / NS_PER_S
    provider: str | None = None
    model: str | None = None


class _Environment(msgspec.Struct, frozen=True):
    domain_name: str | None = None


class _Info(msgspec.Struct, frozen=True):
    audio_native_config: _Audio | None = None
    environment_info: _Environment | None = None


class _Results(msgspec.Struct, frozen=True):
    info: _Info = _Info()
    simulations: tuple[_Simulation, ...] | None = None


def read_trajectories(path: Path) -> list[ReadTrajectory]:
    """The trajectories of a simulation file, of a `results.json` (its own and those of the folder beside it), or of a
    folder that holds any of these, in order of their files. One that stands in both places is read once.

    Raises ConfigError, one line with the file, where there is none or one is broken.
    """
    if path.is_file():
        found = _of_file(path)
    elif path.is_dir():
        files = sorted(file for file in path.rglob("*.json") if file.name == RESULTS or file.parent.name == SIMULATIONS)
        found = [each for file in files or sorted(path.glob("*.json")) for each in _of_file(file)]
    else:
        raise ConfigError(f"{path}: no such file or folder")
    alone = {each.file: each for each in found if each.file != each.results}
    known = {(each.results, each.trajectory.name) for each in alone.values()}
    inside = [each for each in found if each.file == each.results and (each.file, each.trajectory.name) not in known]
    if not alone and not inside:
        raise ConfigError(f"{path}: no trajectories (simulations with `ticks`) here")
    return [*alone.values(), *inside]


def _of_file(file: Path) -> list[ReadTrajectory]:
    raw = _decoded(file, dict[str, Any])
    if "ticks" in raw:
        beside = [folder / RESULTS for folder in (file.parent, file.parent.parent)]
        results = next((each for each in beside if each.is_file()), None)
        info = _decoded(results, _Results).info if results else _Info()
        return [_read(_decoded(file, _Simulation), info, file, results)]
    whole = _decoded(file, _Results)
    inline = [_read(each, whole.info, file, file) for each in whole.simulations or () if each.ticks]
    beside = sorted((file.parent / SIMULATIONS).glob("*.json")) if file.name == RESULTS else []
    return inline + [_read(_decoded(each, _Simulation), whole.info, each, file) for each in beside]


def _decoded(file: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except OSError as exc:
        raise ConfigError(f"{file}: cannot be read ({exc.strerror or exc})") from exc
    except (msgspec.DecodeError, RecursionError) as exc:
        raise ConfigError(f"{file}: no tau-voice trajectory: {exc}") from exc


def _read(simulation: _Simulation, info: _Info, file: Path, results: Path | None) -> ReadTrajectory:
    audio = info.audio_native_config or _Audio()
    if not SHORTEST_S <= audio.tick_duration_seconds <= LONGEST_S:
        raise ConfigError(f"{results or file}: a tick cannot last {audio.tick_duration_seconds} s")
    if not simulation.ticks:
        raise ConfigError(f"{file}: no ticks: only full-duplex simulations have them")
    trajectory = Trajectory(
        name=simulation.id or file.stem,
        ticks=tuple(_tick(tick) for tick in simulation.ticks),
        tick_ns=round(audio.tick_duration_seconds * NS_PER_S),
        task="" if simulation.task_id is None else str(simulation.task_id),
        domain=(info.environment_info or _Environment()).domain_name or "",
        provider=audio.provider or "",
        model=audio.model or "",
    )
    return ReadTrajectory(trajectory, file, results)


def _tick(tick: _Tick) -> Tick:
    user, agent = tick.user_chunk or _Chunk(), tick.agent_chunk or _Chunk()
    action = user.turn_taking_action or _Action()
    effects = [*_effects(user.source_effects), *_effects(user.speech_effects)]
    return Tick(
        user=bool(user.contains_speech),
        agent=bool(agent.contains_speech),
        action=action.action or "",
        effects=tuple(dict.fromkeys(effects)),
    )


def _effects(effects: _Effects | None) -> list[Effect]:
    if effects is None:
        return []
    found: list[Effect] = []
    if effects.burst_noise_file:
        found.append(Effect("burst_noise", effects.burst_noise_file.replace("\\", "/").rpartition("/")[2]))
    if effects.dynamic_muffling_enabled:
        found.append(Effect("muffling"))
    if effects.speech_insert is not None:
        tic = (effects.speech_insert.type or "vocal_tic") == "vocal_tic"
        found.append(Effect("vocal_tic" if tic else "non_directed", effects.speech_insert.text or ""))
    return found
