"""Ticks: who sounds in each 200 ms, the form that tau-voice keeps its conversations in.

Holds the structure, the reader of its trajectories (`results.json` beside `simulations/*.json`) and the quantisation of
a `Conversation`. What is computed from ticks lives in `tau_panel`.
Source of the format: sierra-research/tau2-bench, full-duplex simulations.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from harness.core.audio import NS_PER_MS, NS_PER_S
from harness.core.errors import ConfigError, SessionFormatError
from scoring.duplex.spans import Conversation, Span

TICK_NS = 200 * NS_PER_MS
"""Length of a tick where the trajectory names none (tau-voice's default)."""
BACKCHANNEL = "backchannel"
T = TypeVar("T")
EffectKind = Literal["vocal_tic", "non_directed", "burst_noise", "muffling"]
_SPEECH_KINDS = {"turn": "generate_message", "backchannel": BACKCHANNEL}
"""Kinds of user spans that are speech to tau-voice, with the action that their first tick carries."""
_EFFECT_KINDS: dict[str, EffectKind] = {
    "tic": "vocal_tic",
    "non_directed": "non_directed",
    "other_speaker": "non_directed",
}
"""Kinds that are effects to it; any other sound counts as `burst_noise`, which no figure looks at."""


class Effect(msgspec.Struct, frozen=True):
    """A sound on the user's channel beside the user's turns."""

    kind: EffectKind
    text: str = ""


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """user, agent: whether the side has speech in this tick. action: what the simulated user decided in it."""

    user: bool = False
    agent: bool = False
    action: str = ""
    effects: tuple[Effect, ...] = ()


class Trajectory(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation in ticks of `tick_ns`, all of one length, from its start on."""

    name: str
    ticks: tuple[Tick, ...]
    tick_ns: int = TICK_NS
    task: str = ""
    domain: str = ""
    provider: str = ""
    model: str = ""


def quantised(conversation: Conversation, name: str = "", tick_ns: int = TICK_NS) -> Trajectory:
    """A conversation in ticks: a side speaks in every tick that one of its spans touches, be it by a nanosecond.

    User spans of kind `turn` and `backchannel` are speech; the others are effects, marked on the tick in which they
    begin, as trajectories do.
    """
    origin_ns = conversation.begin_ns
    count = -(-(conversation.end_ns - origin_ns) // tick_ns)
    user, agent = [False] * count, [False] * count
    actions = [""] * count
    effects: list[tuple[Effect, ...]] = [()] * count

    def touched(span: Span) -> range:
        first = max(0, (span.start_ns - origin_ns) // tick_ns)
        return range(first, min(count, max(first, -(-(span.end_ns - origin_ns) // tick_ns))))

    for span in conversation.agent:
        for index in touched(span):
            agent[index] = True
    for sound in conversation.user:
        ticks = touched(sound)
        if not ticks:
            continue
        if sound.kind in _SPEECH_KINDS:
            actions[ticks[0]] = actions[ticks[0]] or _SPEECH_KINDS[sound.kind]
            for index in ticks:
                user[index] = True
        else:
            effects[ticks[0]] += (Effect(_EFFECT_KINDS.get(sound.kind, "burst_noise"), sound.event),)
    made = zip(user, agent, actions, effects, strict=True)
    return Trajectory(
        name=name, tick_ns=tick_ns, ticks=tuple(Tick(user=u, agent=a, action=d, effects=e) for u, a, d, e in made)
    )


# --- trajectories of tau-voice ------------------------------------------------------------------------------------


class _Insert(msgspec.Struct, frozen=True):
    text: str | None = None
    type: str | None = None


class _Effects(msgspec.Struct, frozen=True):
    """`source_effects` and `speech_effects` in one: both may insert speech."""

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
    id: str
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


def read_trajectories(path: Path) -> list[Trajectory]:
    """The trajectories of a simulation file, of a `results.json`, or of a folder that holds either, in order of names.

    Raises ConfigError where there is none, SessionFormatError for a file that is no trajectory.
    """
    if path.is_file():
        if path.name == "results.json":
            return _of_results(path)
        beside = path.parent.parent / "results.json"
        return [_trajectory(_read(path, _Simulation), _info(beside), path)]
    if not path.is_dir():
        raise ConfigError(f"{path}: no such file or folder")
    results = sorted(path.rglob("results.json"))
    if results:
        found = [trajectory for file in results for trajectory in _of_results(file)]
    else:
        found = [trajectory for file in sorted(path.glob("*.json")) for trajectory in read_trajectories(file)]
    if not found:
        raise ConfigError(f"{path}: neither results.json with simulations nor simulation files with ticks")
    return found


def _of_results(path: Path) -> list[Trajectory]:
    results = _read(path, _Results)
    inline = [(simulation, path) for simulation in results.simulations or () if simulation.ticks]
    files = [(_read(file, _Simulation), file) for file in sorted((path.parent / "simulations").glob("*.json"))]
    known = {simulation.id for simulation, _ in files}
    every = files + [(simulation, file) for simulation, file in inline if simulation.id not in known]
    return [_trajectory(simulation, results.info, file) for simulation, file in every if simulation.ticks]


def _info(path: Path) -> _Info:
    return _read(path, _Results).info if path.is_file() else _Info()


def _read(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError, RecursionError) as exc:
        raise SessionFormatError(f"{path}: no tau-voice trajectory: {exc}") from exc


def _trajectory(simulation: _Simulation, info: _Info, path: Path) -> Trajectory:
    audio = info.audio_native_config or _Audio()
    if not 0 < audio.tick_duration_seconds <= 60:
        raise SessionFormatError(f"{path}: a tick cannot last {audio.tick_duration_seconds} s")
    if not simulation.ticks:
        raise SessionFormatError(f"{path}: no ticks: only full-duplex simulations have them")
    return Trajectory(
        name=simulation.id,
        ticks=tuple(_tick(tick) for tick in simulation.ticks),
        tick_ns=round(audio.tick_duration_seconds * NS_PER_S),
        task="" if simulation.task_id is None else str(simulation.task_id),
        domain=(info.environment_info or _Environment()).domain_name or "",
        provider=audio.provider or "",
        model=audio.model or "",
    )


def _tick(tick: _Tick) -> Tick:
    user, agent = tick.user_chunk or _Chunk(), tick.agent_chunk or _Chunk()
    action = user.turn_taking_action or _Action()
    effects = [*_effects(user.source_effects), *_effects(user.speech_effects)]
    return Tick(
        user=bool(user.contains_speech),
        agent=bool(agent.contains_speech),
        action=action.action or "",
        effects=tuple(effects),
    )


def _effects(effects: _Effects | None) -> Sequence[Effect]:
    if effects is None:
        return ()
    found: list[Effect] = []
    if effects.burst_noise_file:
        found.append(Effect("burst_noise", effects.burst_noise_file.replace("\\", "/").rpartition("/")[2]))
    if effects.dynamic_muffling_enabled:
        found.append(Effect("muffling"))
    if effects.speech_insert is not None:
        tic = (effects.speech_insert.type or "vocal_tic") == "vocal_tic"
        found.append(Effect("vocal_tic" if tic else "non_directed", effects.speech_insert.text or ""))
    return found
