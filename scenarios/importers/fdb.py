"""`import fdb DIR`: samples of Full-Duplex-Bench, one folder each, with what a model answered to them.

`input.wav` is the user, `output.wav` the agent on the same clock. What the user does is told by the annotation:

- `turn_taking.json`: each `timestamp` begins where a turn of the user ends (category smooth_turn_taking).
- `pause.json`: silences inside one turn (pause_in_turn); they go into the session's config.
- `interrupt.json`: the interruption, after a context turn (user_interruption).
- `metadata.json` (v1.5): `timestamps` of the overlapping speech; the task is in a parent folder's name, and
  `clean_input.wav` with `clean_output.wav` becomes a session of its own (`-clean`).
- none of these (v1's ICC backchannels): speech that nobody must answer.

Boundaries that the annotation does not give come from annotator v1 on the sound, never from word times. A folder that
`export fdb` wrote has exact marks in `firstpacket.json`, and those win.
Source of the layout: Full-Duplex-Bench, dataset documentation of v1 and v1.5 (arXiv 2503.04721, 2507.23159).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.core.audio import samples_to_ns
from harness.core.errors import ConfigError
from scenarios.annotator import annotator_name
from scenarios.importers.marks import Stretch, stretches
from scenarios.importers.sessions import Expect, Imported, Recording, Track, UserSound, write_run
from scenarios.importers.sound import load_mono

INPUT, OUTPUT = "input.wav", "output.wav"
CLEAN_INPUT, CLEAN_OUTPUT = "clean_input.wav", "clean_output.wav"
TURN_TAKING, PAUSE, INTERRUPT, METADATA = "turn_taking.json", "pause.json", "interrupt.json", "metadata.json"
SIDECAR = "firstpacket.json"
SIDECAR_SCHEMA = 1
MARKS = "fdb annotation"
SLACK_S = 0.1
"""How far a rounded time may lie beyond the end of its sound."""
UNKNOWN = ("no send or arrival stamps: the agent stands where output.wav has it",)


_TASK_LEVELS = 3
"""Folders above an annotation that may name its task."""


class Overlap(msgspec.Struct, frozen=True):
    """What a v1.5 task puts over the agent's speech. word: part of the task's folder name."""

    word: str
    category: str
    kind: str
    expect: Expect


OVERLAPS = (
    Overlap("interrupt", "user_interruption", "turn", "stop"),
    Overlap("backchannel", "user_backchannel", "backchannel", "keep_talking"),
    Overlap("other", "talking_to_other", "non_directed", "keep_talking"),
    Overlap("background", "background_speech", "other_speaker", "keep_talking"),
)


class Sidecar(msgspec.Struct, frozen=True, kw_only=True):
    """`firstpacket.json` beside an exported sample: the user's side with exact marks, in samples of `input.wav`."""

    schema: int = SIDECAR_SCHEMA
    session: str
    rate_hz: int
    language: str = ""
    sounds: tuple[UserSound, ...] = ()


class _Entry(msgspec.Struct, frozen=True):
    timestamp: tuple[float, float]
    text: str = ""
    interrupt: str = ""
    context: str = ""


class _Metadata(msgspec.Struct, frozen=True):
    timestamps: tuple[float, float]
    context_text: str = ""
    current_turn_text: str = ""


def import_fdb(folder: Path, out: Path, *, language: str = "") -> Imported:
    """Write a run directory with a session for each sample folder at or below `folder`; those without `output.wav` are
    skipped and named. Raises ConfigError, one line with the file, for what is wrong."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder")
    homes = sorted(path.parent for path in folder.rglob(INPUT))
    if not homes:
        raise ConfigError(f"{folder}: no {INPUT} in it or below it")
    recordings: list[Recording] = []
    skipped: list[str] = []
    for home in homes:
        name = "-".join(home.relative_to(folder).parts) or folder.resolve().name
        if not (home / OUTPUT).is_file():
            skipped.append(f"{name}: no {OUTPUT}")
            continue
        recordings += _recordings(home, name, language)
    if not recordings:
        raise ConfigError(f"{folder}: none of {len(homes)} samples has an {OUTPUT}: run a model on them first")
    return write_run(recordings, out, form="fdb", source=folder, skipped=skipped)


def _recordings(home: Path, name: str, language: str) -> list[Recording]:
    user = load_mono(home / INPUT)
    files = [home / INPUT, home / OUTPUT]
    detail: dict[str, Any] = {}
    annotation = next((each for each in (SIDECAR, INTERRUPT, PAUSE, TURN_TAKING, METADATA) if _has(home, each)), None)
    if annotation is not None:
        files.append(home / annotation)
    if annotation == SIDECAR:
        sidecar = _read(home / SIDECAR, Sidecar)
        sounds, language = _exact(home / SIDECAR, sidecar, user), sidecar.language or language
    elif annotation == INTERRUPT:
        sounds = _interruptions(home / INTERRUPT, user)
    elif annotation == PAUSE:
        sounds, detail = _paused(home / PAUSE, user)
    elif annotation == TURN_TAKING:
        sounds = _turns(home / TURN_TAKING, user)
    elif annotation == METADATA:
        sounds = _overlap(home / METADATA, user)
    else:
        sounds = _listened(user)
    found = [_recording(name, sounds, user, load_mono(home / OUTPUT), files, language, detail)]
    if annotation == METADATA and _has(home, CLEAN_INPUT) and _has(home, CLEAN_OUTPUT):
        clean = load_mono(home / CLEAN_INPUT)
        turn = _context(stretches(clean), sounds[-1].category, tags=("clean",))
        files = [home / CLEAN_INPUT, home / CLEAN_OUTPUT]
        found.append(_recording(f"{name}-clean", turn, clean, load_mono(home / CLEAN_OUTPUT), files, language, {}))
    return found


def _recording(
    name: str,
    sounds: Sequence[UserSound],
    user: Track,
    agent: Track,
    files: Sequence[Path],
    language: str,
    detail: dict[str, Any],
) -> Recording:
    ends = (samples_to_ns(len(track.samples), track.rate_hz) for track in (user, agent))
    return Recording(
        id=name,
        sounds=tuple(sounds),
        user=user,
        agent=agent,
        end_ns=max(ends),
        files=tuple(files),
        unknown=UNKNOWN,
        language=language,
        detail=detail,
    )


def _exact(path: Path, sidecar: Sidecar, user: Track) -> tuple[UserSound, ...]:
    if sidecar.schema != SIDECAR_SCHEMA:
        raise ConfigError(f"{path}: schema {sidecar.schema}, this version reads {SIDECAR_SCHEMA}")
    if sidecar.rate_hz != user.rate_hz:
        raise ConfigError(f"{path}: marks at {sidecar.rate_hz} Hz, {INPUT} has {user.rate_hz} Hz")
    if len({sound.id for sound in sidecar.sounds}) < len(sidecar.sounds):
        raise ConfigError(f"{path}: two sounds share an id")
    for sound in sidecar.sounds:
        if not 0 <= sound.start < sound.end <= len(user.samples):
            raise ConfigError(f"{path}: marks [{sound.start}, {sound.end}) of {sound.id!r} do not lie in {INPUT}")
    return sidecar.sounds


def _turns(path: Path, user: Track) -> tuple[UserSound, ...]:
    """A turn before each entry; its start is where the speech begins, its end is annotated."""
    speech = stretches(user)
    sounds: list[UserSound] = []
    after = 0
    for number, entry in enumerate(_entries(path), start=1):
        end, gap_end = _samples(path, entry.timestamp, user)
        start = next((stretch.start for stretch in speech if after <= stretch.start < end), None)
        if start is None:
            start = next((after for stretch in speech if stretch.start < end and stretch.end > after), None)
        if start is None or start >= end:
            raise ConfigError(f"{path}: entry {number}: no speech before its start ({entry.timestamp[0]:g} s)")
        sounds.append(_sound(f"u{number}", start, end, "smooth_turn_taking", "turn", "respond", entry.text))
        after = gap_end
    rest = [stretch for stretch in speech if stretch.start >= after]
    if rest:
        sounds.append(_sound("rest", rest[0].start, rest[-1].end, "smooth_turn_taking", "turn", ""))
    return tuple(sounds)


def _paused(path: Path, user: Track) -> tuple[tuple[UserSound, ...], dict[str, Any]]:
    pauses = [_samples(path, entry.timestamp, user) for entry in _entries(path)]
    turn = _context(stretches(user), "pause_in_turn")
    if not turn:
        raise ConfigError(f"{path.parent / INPUT}: no speech in it")
    return turn, {"pauses": [list(pause) for pause in pauses]}


def _interruptions(path: Path, user: Track) -> tuple[UserSound, ...]:
    entries = _entries(path)
    marks = [_samples(path, entry.timestamp, user) for entry in entries]
    before = [stretch for stretch in stretches(user) if stretch.start < marks[0].start]
    context = _context(before, "user_interruption", until=marks[0].start, text=entries[0].context)
    return (
        *context,
        *(
            _sound(f"u{number}", start, end, "user_interruption", "turn", "stop", entry.interrupt or entry.text)
            for number, (entry, (start, end)) in enumerate(zip(entries, marks, strict=True), start=1)
        ),
    )


def _overlap(path: Path, user: Track) -> tuple[UserSound, ...]:
    metadata = _read(path, _Metadata)
    start, end = _samples(path, metadata.timestamps, user)
    task = _task(path)
    before = [stretch for stretch in stretches(user) if stretch.start < start]
    return (
        *_context(before, task.category, until=start, text=metadata.context_text),
        _sound("over", start, end, task.category, task.kind, task.expect, metadata.current_turn_text),
    )


def _task(path: Path) -> Overlap:
    for part in reversed(path.resolve().parts[-1 - _TASK_LEVELS : -1]):
        for task in OVERLAPS:
            if task.word in part.lower():
                return task
    words = ", ".join(task.category for task in OVERLAPS)
    raise ConfigError(
        f"{path}: the task is told by a folder's name ({words}), and none of the nearest {_TASK_LEVELS} does"
    )


def _listened(user: Track) -> tuple[UserSound, ...]:
    """Long speech to listen to: turns without a word on what the agent should do."""
    name = annotator_name()
    return tuple(
        UserSound(id=f"u{number}", start=each.start, end=each.end, category="agent_backchannel", marks=name)
        for number, each in enumerate(stretches(user), start=1)
    )


def _context(
    speech: Sequence[Stretch], category: str, *, until: int | None = None, text: str = "", tags: tuple[str, ...] = ()
) -> tuple[UserSound, ...]:
    """All of `speech` as one turn that asks for an answer; nothing where there is none."""
    if not speech:
        return ()
    end = speech[-1].end if until is None else min(speech[-1].end, until)
    turn = _sound("context", speech[0].start, end, category, "turn", "respond", text)
    return (msgspec.structs.replace(turn, marks=annotator_name(), tags=tags),)


def _sound(name: str, start: int, end: int, category: str, kind: str, expect: Expect, text: str = "") -> UserSound:
    return UserSound(id=name, start=start, end=end, kind=kind, expect=expect, category=category, text=text, marks=MARKS)


def _samples(path: Path, seconds: tuple[float, float], user: Track) -> Stretch:
    length_s = len(user.samples) / user.rate_hz
    start_s, end_s = seconds
    if not 0 <= start_s < min(end_s, length_s) or end_s > length_s + SLACK_S:
        raise ConfigError(f"{path}: [{start_s:g}, {end_s:g}] s does not lie in {INPUT} ({length_s:.2f} s)")
    return Stretch(round(start_s * user.rate_hz), min(len(user.samples), round(end_s * user.rate_hz)))


def _entries(path: Path) -> list[_Entry]:
    entries = _read(path, list[_Entry])
    if not entries:
        raise ConfigError(f"{path}: no entries")
    return sorted(entries, key=lambda entry: entry.timestamp)


def _read(path: Path, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read ({exc.strerror or exc})") from exc
    except (msgspec.DecodeError, RecursionError) as exc:
        raise ConfigError(f"{path}: not as Full-Duplex-Bench writes it: {exc}") from exc


def _has(home: Path, name: str) -> bool:
    return (home / name).is_file()
