"""`import tau2 FILE|DIR`: tick trajectories of tau-voice, a session each.

A side speaks in whole ticks (0.2 s, or what `results.json` says): a run of ticks with speech is one interval. A user
segment is a backchannel if its first tick's action says so, else a turn; inserted sounds (tics, words to somebody else,
bursts of noise) begin with their tick. There is no sound, and no instant is finer than a tick.
Source of the format: sierra-research/tau2-bench, full-duplex simulations (MIT).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.core.audio import NS_PER_S
from harness.core.errors import ConfigError
from scenarios.importers.sessions import Expect, Imported, Interval, Recording, UserSound, write_run

RESULTS = "results.json"
TICK_S = 0.2
"""tau-voice's default, where no `results.json` says otherwise."""
RATE_HZ = 48_000
MARKS = "tau-voice ticks"
_INSERTS = {"vocal_tic": "tic", "non_directed_phrase": "non_directed"}


class _Insert(msgspec.Struct, frozen=True):
    text: str | None = None
    type: str | None = None


class _Effects(msgspec.Struct, frozen=True):
    speech_insert: _Insert | None = None
    burst_noise_file: str | None = None


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
    ticks: tuple[_Tick, ...]
    id: str = ""
    task_id: str | int | None = None


class _Native(msgspec.Struct, frozen=True):
    tick_duration_seconds: float = TICK_S
    provider: str | None = None
    model: str | None = None


class _Info(msgspec.Struct, frozen=True):
    audio_native_config: _Native | None = None
    environment_info: dict[str, Any] | None = None


class _Results(msgspec.Struct, frozen=True):
    info: _Info = _Info()
    simulations: tuple[msgspec.Raw, ...] | None = None


class _Found(msgspec.Struct, frozen=True):
    simulation: _Simulation
    results: Path | None
    file: Path


def import_tau2(path: Path, out: Path) -> Imported:
    """Write a run directory with a session for each trajectory of a simulation file, a `results.json` or a folder.

    Raises ConfigError, one line with the file, where there is none or one is broken.
    """
    found = _found(path)
    if not found:
        raise ConfigError(f"{path}: no trajectories (files with `ticks`) here")
    return write_run([_recording(each) for each in found], out, form="tau2", source=path)


def _found(path: Path) -> list[_Found]:
    if path.is_file():
        return _of_file(path)
    if not path.is_dir():
        raise ConfigError(f"{path}: no such file or folder")
    files = sorted(file for file in path.rglob("*.json") if file.name == RESULTS or file.parent.name == "simulations")
    return [each for file in files or sorted(path.glob("*.json")) for each in _of_file(file)]


def _of_file(file: Path) -> list[_Found]:
    """The trajectories in a file; a `results.json` holds them itself, or the folder beside it does."""
    raw = _decoded(file, dict[str, Any])
    if "ticks" in raw:
        beside = [folder / RESULTS for folder in (file.parent, file.parent.parent)]
        results = next((each for each in beside if each.is_file()), None)
        return [_Found(_decoded(file, _Simulation), results, file)]
    inline = _decoded(file, _Results).simulations or ()
    return [_Found(_convert(file, raw), file, file) for raw in inline if b'"ticks"' in bytes(raw)]


def _decoded(file: Path, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except OSError as exc:
        raise ConfigError(f"{file}: cannot be read ({exc.strerror or exc})") from exc
    except (msgspec.DecodeError, RecursionError) as exc:
        raise ConfigError(f"{file}: no tau-voice trajectory: {exc}") from exc


def _convert(file: Path, raw: msgspec.Raw) -> _Simulation:
    try:
        return msgspec.json.decode(raw, type=_Simulation)
    except (msgspec.DecodeError, RecursionError) as exc:
        raise ConfigError(f"{file}: no tau-voice trajectory: {exc}") from exc


def _recording(found: _Found) -> Recording:
    simulation, file = found.simulation, found.file
    info = _decoded(found.results, _Results).info if found.results else _Info()
    native = info.audio_native_config or _Native()
    tick_s = native.tick_duration_seconds
    tick = round(tick_s * RATE_HZ)
    if not 0.01 <= tick_s <= 60 or abs(tick - tick_s * RATE_HZ) > 1e-6:
        raise ConfigError(f"{found.results or file}: a tick of {tick_s} s cannot be placed on a timeline of samples")
    if not simulation.ticks:
        raise ConfigError(f"{file}: no ticks: only full-duplex simulations have them")
    tick_ns = tick * NS_PER_S // RATE_HZ
    agent = [tick.agent_chunk or _Chunk() for tick in simulation.ticks]
    said = "from results.json" if found.results else "the default: no results.json names it"
    return Recording(
        id=simulation.id or file.stem,
        sounds=_sounds([each.user_chunk or _Chunk() for each in simulation.ticks], tick),
        agent=tuple(Interval(first * tick_ns, last * tick_ns) for first, last in _runs(agent)),
        end_ns=len(simulation.ticks) * tick_ns,
        user_rate_hz=RATE_HZ,
        agent_rate_hz=RATE_HZ,
        files=(file, found.results) if found.results and found.results != file else (file,),
        unknown=(
            f"every instant is a multiple of a tick of {tick_s:g} s ({said})",
            "no sound of either side, no send or arrival stamps",
        ),
        detail={
            "tick_ns": tick_ns,
            "ticks": len(simulation.ticks),
            "task": "" if simulation.task_id is None else str(simulation.task_id),
            "provider": native.provider or "",
            "model": native.model or "",
            "domain": str((info.environment_info or {}).get("domain_name") or ""),
        },
    )


def _sounds(user: Sequence[_Chunk], tick: int) -> tuple[UserSound, ...]:
    """Segments of speech, and the sounds beside them; the same insert in consecutive ticks is one sound."""
    sounds: list[UserSound] = []
    for number, (first, last) in enumerate(_runs(user), start=1):
        action = user[first].turn_taking_action
        back = action is not None and action.action == "backchannel"
        sounds.append(_sound(f"u{number}", first * tick, last * tick, "backchannel" if back else "turn"))
    for index, chunk in enumerate(user):
        before = _inserts(user[index - 1]) if index else []
        for kind, text in _inserts(chunk):
            if (kind, text) not in before:
                last = index + 1
                while last < len(user) and (kind, text) in _inserts(user[last]):
                    last += 1
                sounds.append(_sound(f"{kind}-{index}", index * tick, last * tick, kind, text))
    return tuple(sorted(sounds, key=lambda sound: (sound.start, sound.end)))


def _sound(name: str, start: int, end: int, kind: str, text: str = "") -> UserSound:
    expect: Expect = "keep_talking" if kind == "backchannel" else ""
    return UserSound(id=name, start=start, end=end, kind=kind, expect=expect, text=text, marks=MARKS)


def _inserts(chunk: _Chunk) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for effects in (chunk.source_effects, chunk.speech_effects):
        if effects is not None and effects.speech_insert is not None:
            kind = _INSERTS.get(effects.speech_insert.type or "vocal_tic", "non_directed")
            found.append((kind, effects.speech_insert.text or ""))
        if effects is not None and effects.burst_noise_file:
            found.append(("noise", effects.burst_noise_file.replace("\\", "/").rpartition("/")[2]))
    return found


def _runs(chunks: Sequence[_Chunk]) -> list[tuple[int, int]]:
    """[first, last) of each run of ticks with speech."""
    runs: list[tuple[int, int]] = []
    for index, chunk in enumerate(chunks):
        if not chunk.contains_speech:
            continue
        if runs and runs[-1][1] == index:
            runs[-1] = (runs[-1][0], index + 1)
        else:
            runs.append((index, index + 1))
    return runs
