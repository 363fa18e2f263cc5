"""A clip: one spoken utterance as int16 samples with sample-accurate marks, loaded from any libsndfile file."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import soundfile

from harness.core.audio import Int16, audio_sha256, float_to_int16, int16_to_float, map_sample
from harness.core.errors import ConfigError
from harness.engines.resample import resample
from scenarios.annotator import annotate_cached, annotator_name

MANIFEST_MARKS = "manifest"


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

    @property
    def duration_s(self) -> float:
        """Length of the whole clip, silence included, in seconds."""
        return len(self.samples) / self.rate_hz

    def at_rate(self, rate_hz: int) -> Clip:
        """The clip resampled as a whole to `rate_hz`, delay-compensated; marks map by round(i * out / in)."""
        if rate_hz == self.rate_hz:
            return self
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

    Raises ConfigError, one line each: no such file, empty, unknown format, truncated or damaged.
    """
    if not path.is_file():
        raise ConfigError(f"{path}: no such file" if not path.exists() else f"{path}: not a file")
    if path.stat().st_size == 0:
        raise ConfigError(f"{path}: empty file")
    _check_riff_length(path)
    try:
        with soundfile.SoundFile(path) as file:
            promised, rate_hz = file.frames, int(file.samplerate)
            channels = file.read(dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as exc:
        reason = str(exc.error_string).strip().rstrip(".")
        if "not recognised" in reason or "unknown format" in reason.lower():
            raise ConfigError(
                f"{path}: unknown audio format (libsndfile reads WAV, FLAC, Ogg, Opus, MP3, AIFF)"
            ) from exc
        raise ConfigError(f"{path}: truncated or damaged ({reason})") from exc
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read ({exc.strerror or exc})") from exc
    if len(channels) < promised:
        raise ConfigError(f"{path}: truncated ({len(channels)} of {promised} samples)")
    if len(channels) == 0:
        raise ConfigError(f"{path}: empty, no samples")
    mono = channels[:, 0] if channels.shape[1] == 1 else channels.mean(axis=1, dtype=np.float64)
    return Sound(read_only(float_to_int16(mono)), rate_hz)


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
    """Load one clip; marks that are not given are annotated (and cached). Raises ConfigError as `load_sound` does,
    for silence (no speech to time) and for marks outside the clip."""
    sound = load_sound(path)
    if not sound.samples.any():
        raise ConfigError(f"{path}: no speech to time (digital silence)")
    annotator = MANIFEST_MARKS
    if speech_start is None or speech_end is None:
        annotator = annotator_name()
        try:
            marks = annotate_cached(*sound)
        except ConfigError as exc:
            raise ConfigError(f"{path}: {exc}") from exc
        speech_start = marks.speech_start if speech_start is None else speech_start
        speech_end = marks.speech_end if speech_end is None else speech_end
    if not 0 <= speech_start < speech_end <= len(sound.samples):
        raise ConfigError(
            f"{path}: marks [{speech_start}, {speech_end}) do not lie in a clip of {len(sound.samples)} samples"
        )
    return Clip(
        id=path.stem if clip_id is None else clip_id,
        text=text,
        language=language,
        voice=voice,
        sha256=audio_sha256(sound.samples),
        rate_hz=sound.rate_hz,
        samples=sound.samples,
        speech_start=speech_start,
        speech_end=speech_end,
        source=path.name,
        annotator=annotator,
    )


def _check_riff_length(path: Path) -> None:
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
