"""`export fdb RUN DIR`: recorded sessions in the layout of Full-Duplex-Bench, so that its own scripts can run on them.

DIR/<task>/<session>/ gets `input.wav` (the user), `output.wav` (the agent as heard, on the same clock), the task's
annotation, `transcription.json` (the user's words, a chunk a turn) and `firstpacket.json` (exact marks for `import
fdb`; its scripts don't look at it). `output.json`, the words of the agent, is left to their ASR step. Times are
seconds in `input.wav`; rates are those of the recording.
Source of the layout: Full-Duplex-Bench, dataset documentation of v1 and v1.5 (arXiv 2503.04721, 2507.23159).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import soundfile

from harness.core.audio import int16_to_float, ms_to_samples
from harness.core.errors import ConfigError, SessionFormatError
from harness.core.events import ScenarioEvent, TurnStarted
from harness.core.run_directory import RunDirectory, slug
from harness.core.session.reader import Session
from harness.engines.vad import speech_spans
from scenarios.exporters.heard import HeardSession
from scenarios.importers.fdb import INPUT, INTERRUPT, METADATA, OUTPUT, PAUSE, SIDECAR, TURN_TAKING, Sidecar
from scenarios.importers.sessions import UserSound

PAUSE_MS = 400
"""Shorter silences inside a turn are no pauses (Silero's own closing silence is 100 ms)."""
PAUSE_TASK, TURN_TASK, INTERRUPT_TASK = "pause_handling", "smooth_turn_taking", "user_interruption"
_TASKS = {
    "pause_in_turn": PAUSE_TASK,
    "smooth_turn_taking": TURN_TASK,
    "self_correction": TURN_TASK,
    "long_silence": TURN_TASK,
    "rapid_second_question": TURN_TASK,
    "user_interruption": INTERRUPT_TASK,
    "nested_interruption": INTERRUPT_TASK,
}
_TASK_OF_KIND = {
    "backchannel": "user_backchannel",
    "non_directed": "talking_to_other",
    "other_speaker": "background_speech",
}


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """What an export wrote: sample folders below `folder`. skipped: sessions left out, with the reason."""

    folder: Path
    samples: tuple[str, ...]
    skipped: tuple[str, ...] = ()


def export_fdb(run: Path, folder: Path) -> Exported:
    """Write every session of a run directory as a sample. Sessions without sound on a timeline are skipped and named.

    Raises ConfigError where `folder` is taken or cannot be written, or nothing can be exported; SessionFormatError for
    a damaged run.
    """
    if not (run / "sessions").is_dir():
        raise SessionFormatError(f"{run}: no sessions in it, so this is not a run directory")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder}: is not empty; name a directory that does not exist yet")
    samples: list[str] = []
    skipped: list[str] = []
    for session in RunDirectory(run).load():
        try:
            samples.append(_write(session, HeardSession(session), folder))
        except ConfigError as exc:
            skipped.append(str(exc))
        except OSError as exc:
            raise ConfigError(f"{folder}: cannot be written ({exc.strerror or exc})") from exc
    if not samples:
        raise ConfigError(f"{run}: nothing to export" + (f": {skipped[0]}" if skipped else ": no finished sessions"))
    return Exported(folder=folder, samples=tuple(samples), skipped=tuple(skipped))


def _write(session: Session, heard: HeardSession, folder: Path) -> str:
    """One sample folder; returns its path below `folder`."""
    sounds = user_sounds(session, heard)
    task = task_of(sounds)
    home = folder / task / session.header.session
    home.mkdir(parents=True)
    soundfile.write(home / INPUT, heard.user, heard.user_rate_hz, subtype="PCM_16")
    soundfile.write(home / OUTPUT, heard.agent, heard.agent_rate_hz, subtype="PCM_16")
    for name, content in _annotations(task, sounds, session, heard).items():
        _write_json(home / name, content)
    _write_json(home / "transcription.json", _transcription(sounds, heard.user_rate_hz))
    languages = session.header.languages
    sidecar = Sidecar(
        session=session.header.session,
        rate_hz=heard.user_rate_hz,
        language=languages[0] if languages else "",
        sounds=sounds,
    )
    _write_json(home / SIDECAR, sidecar)
    return f"{task}/{session.header.session}"


def user_sounds(session: Session, heard: HeardSession) -> tuple[UserSound, ...]:
    """The scenario's events in samples of `input.wav`, in order; the turns of a session that has none."""
    turns = {turn.speech_start: turn for turn in session.of(TurnStarted)}
    found: list[UserSound] = []
    events: list[ScenarioEvent | TurnStarted] = [*session.of(ScenarioEvent)] or [*session.of(TurnStarted)]
    for event in events:
        start, end = heard.place(event.speech_start), heard.place(event.speech_end - 1) + 1
        turn = turns.get(event.speech_start)
        if not 0 <= start < min(end, len(heard.user)):
            continue  # the session ended before it began
        sound = UserSound(id="", start=start, end=min(end, len(heard.user)), text=turn.text if turn else "")
        if isinstance(event, ScenarioEvent):
            sound = msgspec.structs.replace(
                sound, id=event.event, kind=event.kind, expect=event.expect, category=event.category, tags=event.tags
            )
        else:
            sound = msgspec.structs.replace(sound, id=event.query, expect="respond")
        found.append(msgspec.structs.replace(sound, marks=turn.annotator if turn else ""))
    return tuple(sorted(found, key=lambda sound: (sound.start, sound.end)))


def task_of(sounds: Sequence[UserSound]) -> str:
    """The task that a session belongs to: by its category, else by what is in it."""
    category = next((sound.category for sound in sounds if sound.category), "")
    if category:
        return _TASKS.get(category) or slug(category)
    if any(sound.expect == "stop" for sound in sounds):
        return INTERRUPT_TASK
    return next((_TASK_OF_KIND[sound.kind] for sound in sounds if sound.kind in _TASK_OF_KIND), TURN_TASK)


def _annotations(task: str, sounds: Sequence[UserSound], session: Session, heard: HeardSession) -> dict[str, Any]:
    rate_hz = heard.user_rate_hz
    if task == PAUSE_TASK:
        return {PAUSE: [_entry("[PAUSE]", *pause, rate_hz) for pause in _pauses(sounds, session, heard)]}
    turns = [sound for sound in sounds if sound.kind == "turn"]
    if task == TURN_TASK:
        ends = [*(turn.start for turn in turns[1:]), len(heard.user)]
        rows = zip(turns, ends, strict=True)
        return {TURN_TAKING: [_entry(turn.text, turn.end, max(end, turn.end + 1), rate_hz) for turn, end in rows]}
    over = [sound for sound in sounds if sound.kind != "turn" or sound.expect == "stop"] or list(sounds[-1:])
    context = next((turn.text for turn in turns if turn not in over), "")
    found: dict[str, Any] = {}
    if over:
        found[METADATA] = {
            "context_text": context,
            "current_turn_text": over[0].text,
            "timestamps": [over[0].start / rate_hz, over[0].end / rate_hz],
        }
    if task == INTERRUPT_TASK:
        found[INTERRUPT] = [
            {"context": context, "interrupt": each.text, "timestamp": [each.start / rate_hz, each.end / rate_hz]}
            for each in over
        ]
    return found


def _pauses(sounds: Sequence[UserSound], session: Session, heard: HeardSession) -> list[tuple[int, int]]:
    """Silences inside the turns: as the recording came with them, else between Silero's spans."""
    try:
        known = msgspec.convert(session.header.config.get("pauses", ()), tuple[tuple[int, int], ...])
    except msgspec.ValidationError as exc:
        raise SessionFormatError(f"{session.path}: the pauses in its header are no pairs of samples") from exc
    if known:
        return [(heard.place(start), heard.place(end - 1) + 1) for start, end in known]
    found: list[tuple[int, int]] = []
    for turn in (sound for sound in sounds if sound.kind == "turn"):
        spans = speech_spans(int16_to_float(heard.user[turn.start : turn.end]), heard.user_rate_hz)
        gaps = ((turn.start + a.end, turn.start + b.start) for a, b in itertools.pairwise(spans))
        found += [gap for gap in gaps if gap[1] - gap[0] >= ms_to_samples(PAUSE_MS, heard.user_rate_hz)]
    return found


def _entry(text: str, start: int, end: int, rate_hz: int) -> dict[str, Any]:
    return {"text": text, "timestamp": [start / rate_hz, end / rate_hz]}


def _transcription(sounds: Sequence[UserSound], rate_hz: int) -> dict[str, Any]:
    said = [sound for sound in sounds if sound.text]
    return {
        "text": " ".join(sound.text for sound in said),
        "chunks": [_entry(sound.text, sound.start, sound.end, rate_hz) for sound in said],
    }


def _write_json(path: Path, content: Any) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")
