"""A clip: one spoken utterance as int16 samples with sample-accurate marks, loaded from any libsndfile file."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import soundfile

from harness.core.audio import Int16, audio_sha256, float_to_int16, int16_to_float, map_sample
from harness.core.errors import ConfigError
from harness.engines.resample import resample
from scenarios.annotator import Marks, annotate_cached, annotator_name

MANIFEST_MARKS = "manifest"
LONGEST_S = 600
MOST_CHANNELS = 32
LOWEST_RATE_HZ, HIGHEST_RATE_HZ = 4_000, 384_000
_BLOCK = 65_536
"""Samples of each channel that are decoded at a time."""
_UNKNOWN_FORMAT = "unknown audio format (libsndfile reads WAV, FLAC, Ogg, Opus, MP3, AIFF): convert it to WAV or FLAC"


class Clip(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One utterance. Speech occupies samples [speech_start, speech_end) of `samples`.

    samples: int16, mono, shape (n,), at `rate_hz`, read-only. sha256: of the little-endian PCM16 of the clip as it was
    loaded (before any resampling), so it names the sound whatever rate a peer wants.
    """

    id: str
    text: str
    language: str
    voice: str
    sha256: str
    rate_hz: int
    samples: Int16
    speech_start: int
    speech_end: int
    source: str
    annotator: str = MANIFEST_MARKS
    """Who set the marks: the manifest, or an annotator's name and version."""
    impairment: str = ""
    """What was done to the clean clip, specs joined by `+`; `sha256` is then of these very samples."""

    @property
    def duration_s(self) -> float:
        """Length of the whole clip, silence included, in seconds."""
        return len(self.samples) / self.rate_hz

    def at_rate(self, rate_hz: int, samples: Int16 | None = None) -> Clip:
        """The clip resampled as a whole to `rate_hz`, delay-compensated; marks map by round(i * out / in).

        samples: what that gives, if it is known already from another clip of the same sound.
        """
        if rate_hz == self.rate_hz:
            return self
        if samples is None:
            samples = read_only(float_to_int16(resample(int16_to_float(self.samples), self.rate_hz, rate_hz)))
        return msgspec.structs.replace(
            self,
            rate_hz=rate_hz,
            samples=samples,
            speech_start=map_sample(self.speech_start, self.rate_hz, rate_hz),
            speech_end=min(map_sample(self.speech_end, self.rate_hz, rate_hz), len(samples)),
        )


class Sound(NamedTuple):
    """Decoded audio: int16, mono, shape (n,), read-only, at `rate_hz`."""

    samples: Int16
    rate_hz: int


def read_only(samples: Int16) -> Int16:
    """The same array, closed to writing."""
    samples.flags.writeable = False
    return samples


def load_sound(path: Path) -> Sound:
    """Decode a file that libsndfile reads, at its own rate; channels are averaged, floats beyond full scale clipped.

    Raises ConfigError, one line each: no such file, empty, unknown format, truncated or damaged, no speech clip at all
    (too long, too many channels, a rate that audio has not).
    """
    try:
        if not path.is_file():
            raise ConfigError(f"{path}: no such file" if not path.exists() else f"{path}: not a file")
        if path.stat().st_size == 0:
            raise ConfigError(f"{path}: empty file")
        check_riff_length(path)
        with _opened(path) as file:
            return _decoded(file, path)
    except soundfile.LibsndfileError as exc:
        reason = str(exc.error_string).strip().rstrip(".")
        if "not recognised" in reason or "unknown format" in reason.lower():
            raise ConfigError(f"{path}: {_UNKNOWN_FORMAT}") from exc
        raise ConfigError(f"{path}: truncated or damaged ({reason})") from exc
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read ({exc.strerror or exc})") from exc


def _opened(path: Path) -> soundfile.SoundFile:
    try:
        return soundfile.SoundFile(path)
    except TypeError as exc:  # its word on `.raw`: such a file has no header that says its rate
        raise ConfigError(f"{path}: {_UNKNOWN_FORMAT}") from exc


def _decoded(file: soundfile.SoundFile, path: Path) -> Sound:
    """The samples of an open file, block by block: a file of many channels is never held whole."""
    promised, rate_hz, channels = int(file.frames), int(file.samplerate), int(file.channels)
    if not LOWEST_RATE_HZ <= rate_hz <= HIGHEST_RATE_HZ:
        raise ConfigError(f"{path}: {rate_hz} Hz is no sample rate of speech ({LOWEST_RATE_HZ} to {HIGHEST_RATE_HZ})")
    if channels > MOST_CHANNELS:
        raise ConfigError(f"{path}: {channels} channels, at most {MOST_CHANNELS} are mixed down")
    if promised > LONGEST_S * rate_hz:
        raise ConfigError(f"{path}: {promised / rate_hz:.0f} s long, a clip has at most {LONGEST_S} s")
    pieces: list[Int16] = []
    decoded = 0
    while len(block := file.read(_BLOCK, dtype="float32", always_2d=True)):
        decoded += len(block)
        if decoded > LONGEST_S * rate_hz:
            raise ConfigError(f"{path}: longer than {LONGEST_S} s")
        mono = block[:, 0] if channels == 1 else block.mean(axis=1, dtype=np.float64)
        pieces.append(float_to_int16(mono))
    if decoded < promised:
        raise ConfigError(f"{path}: truncated ({decoded} of {promised} samples)")
    if not pieces:
        raise ConfigError(f"{path}: empty, no samples")
    return Sound(read_only(np.concatenate(pieces)), rate_hz)


class AudioFile:
    """A decoded file, of which any number of clips may be made. Raises ConfigError as `load_sound` does."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sound = load_sound(path)

    @cached_property
    def _sha256(self) -> str:
        return audio_sha256(self._sound.samples)

    @cached_property
    def _marks(self) -> Marks:
        try:
            return annotate_cached(*self._sound)
        except ConfigError as exc:
            raise ConfigError(f"{self._path}: {exc}") from exc

    def clip(
        self,
        *,
        clip_id: str | None = None,
        text: str = "",
        language: str = "",
        voice: str = "",
        speech_start: int | None = None,
        speech_end: int | None = None,
    ) -> Clip:
        """A clip of the whole file; marks that are not given are annotated (and cached). Raises ConfigError for
        silence (no speech to time) and for marks outside the clip."""
        samples, rate_hz = self._sound
        if not samples.any():
            raise ConfigError(f"{self._path}: no speech to time (digital silence)")
        annotator = MANIFEST_MARKS
        if speech_start is None or speech_end is None:
            annotator = annotator_name()
            speech_start = self._marks.speech_start if speech_start is None else speech_start
            speech_end = self._marks.speech_end if speech_end is None else speech_end
        if not 0 <= speech_start < speech_end <= len(samples):
            raise ConfigError(
                f"{self._path}: marks [{speech_start}, {speech_end}) do not lie in a clip of {len(samples)} samples"
            )
        return Clip(
            id=self._path.stem if clip_id is None else clip_id,
            text=text,
            language=language,
            voice=voice,
            sha256=self._sha256,
            rate_hz=rate_hz,
            samples=samples,
            speech_start=speech_start,
            speech_end=speech_end,
            source=self._path.name,
            annotator=annotator,
        )


def load_clip(
    path: Path,
    *,
    clip_id: str | None = None,
    text: str = "",
    language: str = "",
    voice: str = "",
    speech_start: int | None = None,
    speech_end: int | None = None,
) -> Clip:
    """Load one clip. Raises ConfigError as `AudioFile` and `AudioFile.clip` do."""
    return AudioFile(path).clip(
        clip_id=clip_id, text=text, language=language, voice=voice, speech_start=speech_start, speech_end=speech_end
    )


def check_riff_length(path: Path) -> None:
    """libsndfile quietly shortens a cut WAV; its RIFF header says how long it was meant to be.

    Streaming writers leave 0 or 0xFFFFFFFF there; such files are taken as they are.
    """
    with path.open("rb") as file:
        head = file.read(12)
    if len(head) < 12 or head[:4] != b"RIFF" or head[8:12] != b"WAVE":
        return
    declared = int.from_bytes(head[4:8], "little")
    present = path.stat().st_size - 8
    if 0 < declared < 0xFFFF_FFF0 and present < declared:
        raise ConfigError(f"{path}: truncated ({present} of {declared} bytes)")
