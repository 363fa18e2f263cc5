"""`import stereo FILE`: one conversation in one file, the user left, the agent right."""

from __future__ import annotations

from pathlib import Path

from harness.core.audio import samples_to_ns
from scenarios.annotator import annotator_name
from scenarios.importers.marks import stretches
from scenarios.importers.sessions import Imported, Recording, Track, UserSound, write_run
from scenarios.importers.sound import load_stereo

UNKNOWN = (
    "no send or arrival stamps: the agent stands where the recording has it",
    "what the user meant is unknown: every stretch of speech on the left counts as a turn",
)
SILENT_USER = "no speech was found on the user's channel"


def import_stereo(file: Path, out: Path, *, language: str = "") -> Imported:
    """Write a run directory with one session. The user's turns are stretches of speech, parted by 600 ms of silence.

    Raises ConfigError, one line, for a file that is no stereo sound.
    """
    user, agent = load_stereo(file)
    sounds = user_turns(user)
    recording = Recording(
        id=file.stem,
        sounds=sounds,
        user=user,
        agent=agent,
        end_ns=samples_to_ns(len(user.samples), user.rate_hz),
        files=(file,),
        unknown=UNKNOWN if sounds else (*UNKNOWN, SILENT_USER),
        language=language,
    )
    return write_run([recording], out, form="stereo", source=file)


def user_turns(user: Track) -> tuple[UserSound, ...]:
    """Every stretch of speech as a turn."""
    name = annotator_name()
    return tuple(
        UserSound(id=f"u{number}", start=stretch.start, end=stretch.end, marks=name)
        for number, stretch in enumerate(stretches(user), start=1)
    )
