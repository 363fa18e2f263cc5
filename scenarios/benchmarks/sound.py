"""Where a query's sound comes from: a file, a row of a parquet file, or an impairment of another sound.

Each is a small record that can be sent to another process; nothing is read before `clip`.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import msgspec
import soundfile

from harness.core.audio import audio_sha256, map_sample
from harness.core.errors import ConfigError
from scenarios.annotator import Marks, annotate_cached, annotator_name
from scenarios.benchmarks.parquet import read_sound
from scenarios.clip import Clip, Sound, load_sound
from scenarios.impairments.impair import impair
from scenarios.impairments.spec import parse_specs

WHOLE = "whole clip"
"""Annotator of a clip in which no speech was found: it is said nevertheless, and its end counts as that of speech."""
SLACK_S = 0.1
"""How much shorter an impaired file may be than the clean one whose marks it takes."""
SEED = "vocalbench"


class FileSound(msgspec.Struct, frozen=True, tag="file"):
    """A sound file. clean: the unimpaired one, whose marks hold for this one too."""

    path: Path
    clean: FileSound | ParquetSound | None = None

    def sound(self) -> Sound:
        return load_sound(self.path)


class ParquetSound(msgspec.Struct, frozen=True, tag="parquet"):
    """A row of a parquet file. name: what the row calls it."""

    path: Path
    group: int
    offset: int
    name: str
    clean: FileSound | ParquetSound | None = None

    def sound(self) -> Sound:
        data = read_sound(self.path, self.group, self.offset)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"sound{Path(self.name).suffix}"
            file.write_bytes(data)
            try:
                return load_sound(file)
            except ConfigError as exc:
                raise ConfigError(f"{self.path}, {self.name}: {str(exc).partition(': ')[2]}") from exc


RecordedSound = FileSound | ParquetSound


class ImpairedSound(msgspec.Struct, frozen=True, tag="impaired"):
    """`clean` with the impairments `specs` (joined by `+`). voices: what babble is mixed from."""

    clean: RecordedSound
    specs: str
    voices: tuple[RecordedSound, ...] = ()


AnySound = FileSound | ParquetSound | ImpairedSound


def length_of(source: RecordedSound) -> tuple[int, int]:
    """(samples, rate in Hz) by the file's own header; (0, 0) where it cannot be read."""
    try:
        data = (
            io.BytesIO(read_sound(source.path, source.group, source.offset))
            if isinstance(source, ParquetSound)
            else source.path
        )
        info = soundfile.info(data)
    except (ConfigError, OSError, soundfile.LibsndfileError):
        return 0, 0
    return int(info.frames), int(info.samplerate)


def clip_of(source: AnySound, clip_id: str, text: str, language: str) -> Clip:
    """Read (or make) the sound and mark its speech. Raises ConfigError for what cannot be read."""
    if isinstance(source, ImpairedSound):
        clean = clip_of(source.clean, clip_id, text, language)
        voices = [clip_of(voice, f"voice-{number}", "", language) for number, voice in enumerate(source.voices)]
        return impair(clean, parse_specs(source.specs), seed=SEED, voices=voices).clip
    sound = source.sound()
    marks, annotator = _marks(sound, source.clean)
    return Clip(
        id=clip_id,
        text=text,
        language=language,
        voice="",
        sha256=audio_sha256(sound.samples),
        rate_hz=sound.rate_hz,
        samples=sound.samples,
        speech_start=marks.speech_start,
        speech_end=marks.speech_end,
        source=source.path.name,
        annotator=annotator,
    )


def _marks(sound: Sound, clean: RecordedSound | None) -> tuple[Marks, str]:
    """Of an impaired recording those of the clean one, where it is there and as long; else the annotator's."""
    if clean is not None:
        found = _inherited(sound, clean)
        if found is not None:
            return found, annotator_name()
    try:
        return annotate_cached(*sound), annotator_name()
    except ConfigError:
        return Marks(0, len(sound.samples)), WHOLE


def _inherited(sound: Sound, clean: RecordedSound) -> Marks | None:
    try:
        samples, rate_hz = clean.sound()
        marks = annotate_cached(samples, rate_hz)
    except ConfigError:
        return None
    if len(sound.samples) / sound.rate_hz < len(samples) / rate_hz - SLACK_S:
        return None
    start, end = (map_sample(mark, rate_hz, sound.rate_hz) for mark in marks)
    end = min(end, len(sound.samples))
    return Marks(start, end) if start < end else None
