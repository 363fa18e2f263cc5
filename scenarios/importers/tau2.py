"""`import tau2 FILE|DIR`: tick trajectories of tau-voice, a session each.

A side speaks in whole ticks: a run of ticks with speech is one interval. A user segment is a backchannel if its first
tick's action says so, else a turn; inserted sounds (tics, words to somebody else, bursts of noise) begin with their
tick and last as many as carry the same one. There is no sound, and no instant is finer than a tick. The session's
config holds the length of a tick, so that the `tau` preset finds the same ticks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.core.audio import NS_PER_S
from harness.core.errors import ConfigError
from harness.core.tick_files import ReadTrajectory, read_trajectories
from harness.core.ticks import BACKCHANNEL, Effect, Tick
from scenarios.importers.sessions import Expect, Imported, Interval, Recording, UserSound, write_run

RATE_HZ = 48_000
MARKS = "tau-voice ticks"
_KINDS = {"vocal_tic": "tic", "non_directed": "non_directed", "burst_noise": "noise"}
"""By kind of effect: the kind of the event. Muffling is no sound."""


def import_tau2(path: Path, out: Path) -> Imported:
    """Write a run directory with a session for each trajectory of a simulation file, a `results.json` or a folder.

    Raises ConfigError, one line with the file, where there is none or one is broken.
    """
    return write_run([_recording(each) for each in read_trajectories(path)], out, form="tau2", source=path)


def _recording(read: ReadTrajectory) -> Recording:
    trajectory, file, results = read
    tick_ns, ticks = trajectory.tick_ns, trajectory.ticks
    tick, rest = divmod(tick_ns * RATE_HZ, NS_PER_S)
    tick_s = tick_ns / NS_PER_S
    if rest:
        raise ConfigError(f"{results or file}: a tick of {tick_s:g} s cannot be placed on a timeline of samples")
    said = "from results.json" if results else "the default: no results.json names it"
    return Recording(
        id=trajectory.name,
        sounds=_sounds(ticks, tick),
        agent=tuple(Interval(first * tick_ns, last * tick_ns) for first, last in _runs([t.agent for t in ticks])),
        end_ns=len(ticks) * tick_ns,
        user_rate_hz=RATE_HZ,
        agent_rate_hz=RATE_HZ,
        files=(file, results) if results and results != file else (file,),
        unknown=(
            f"every instant is a multiple of a tick of {tick_s:g} s ({said})",
            "no sound of either side, no send or arrival stamps",
        ),
        detail={
            "tick_ns": tick_ns,
            "ticks": len(ticks),
            "task": trajectory.task,
            "provider": trajectory.provider,
            "model": trajectory.model,
            "domain": trajectory.domain,
        },
    )


def _sounds(ticks: Sequence[Tick], tick: int) -> tuple[UserSound, ...]:
    """Segments of speech, and the sounds beside them; the same effect in consecutive ticks is one sound."""
    sounds: list[UserSound] = []
    for number, (first, last) in enumerate(_runs([each.user for each in ticks]), start=1):
        kind = "backchannel" if ticks[first].action == BACKCHANNEL else "turn"
        sounds.append(_sound(f"u{number}", first * tick, last * tick, kind))
    for effect in dict.fromkeys(effect for each in ticks for effect in each.effects if effect.kind in _KINDS):
        kind = _KINDS[effect.kind]
        for first, last in _runs([effect in each.effects for each in ticks]):
            name = _name(kind, first, ticks[first], effect)
            sounds.append(_sound(name, first * tick, last * tick, kind, effect.text))
    return tuple(sorted(sounds, key=lambda sound: (sound.start, sound.end)))


def _name(kind: str, index: int, tick: Tick, effect: Effect) -> str:
    """Two effects of one kind in a tick are two events."""
    same = list(dict.fromkeys(each for each in tick.effects if each.kind == effect.kind))
    return f"{kind}-{index}" if same[0] == effect else f"{kind}-{index}-{same.index(effect) + 1}"


def _sound(name: str, start: int, end: int, kind: str, text: str = "") -> UserSound:
    expect: Expect = "keep_talking" if kind == "backchannel" else ""
    return UserSound(id=name, start=start, end=end, kind=kind, expect=expect, text=text, marks=MARKS)


def _runs(speaks: Sequence[bool]) -> list[tuple[int, int]]:
    """[first, last) of each run of ticks with speech."""
    runs: list[tuple[int, int]] = []
    for index, each in enumerate(speaks):
        if not each:
            continue
        if runs and runs[-1][1] == index:
            runs[-1] = (runs[-1][0], index + 1)
        else:
            runs.append((index, index + 1))
    return runs
