"""Text spoken by a local voice where a data set lacks the sound; made once, kept in the user's cache."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile

from harness.core.audio import Float32, float_to_int16, ms_to_samples
from harness.core.errors import ConfigError, PrerequisiteError
from harness.engines.cache import cache_dir, write_atomic
from harness.engines.pinned import KOKORO
from harness.engines.tts import Speech, Synthesizer

QUIET = 0.01
"""Amplitude (-40 dBFS) below which a voice is only breathing at the edges of what it says."""
KEEP_MS = 40
VOICES = {"zh": "zf_xiaoxiao", "en": "af_heart"}
_LATIN = re.compile(r"([A-Za-z][A-Za-z0-9'’.&-]*(?:\s+[A-Za-z0-9'’.&-]+)*)")
"""A stretch of English inside a Mandarin text: the Mandarin voice cannot say it."""


class Spoken(NamedTuple):
    """A text and the file that its sound goes to."""

    text: str
    language: str
    path: Path


def spoken(text: str, language: str, engine: str = KOKORO.name) -> Spoken:
    """What `text` will be when `speak_all` has run; the file's name says the engine, the voices and the words."""
    name = hashlib.sha256("\0".join([engine, VOICES["zh"], VOICES["en"], language, text]).encode()).hexdigest()
    return Spoken(text, language, cache_dir() / "spoken" / f"{name}.flac")


def speak_all(
    wanted: Sequence[Spoken], synthesizer: Callable[[], Synthesizer], progress: Callable[[int, int], None]
) -> dict[Path, str]:
    """Speak what is not in the cache yet; return what could not be spoken, with the reason.

    progress: called with how many are done, of how many. Raises PrerequisiteError (extra `tts`, weights, disk full).
    """
    todo = [each for each in dict.fromkeys(wanted) if not each.path.is_file()]
    failed: dict[Path, str] = {}
    engine = synthesizer() if todo else None
    for done, each in enumerate(todo, start=1):
        assert engine is not None
        try:
            data = _flac(*_said(engine, each))
            write_atomic(each.path, data)
        except ConfigError as exc:
            failed[each.path] = f"could not be spoken: {exc}"
        except OSError as exc:
            raise PrerequisiteError(
                f"{each.path}: cannot be written ({exc.strerror or exc}): free some space; what is spoken stays"
            ) from exc
        progress(done, len(todo))
    return failed


def _said(engine: Synthesizer, wanted: Spoken) -> Speech:
    """Mandarin with English words in it is said by two voices, each in its own language."""
    pieces = _LATIN.split(wanted.text) if wanted.language == "zh" else ["", wanted.text]
    said = [
        engine.speak(piece, VOICES[language], language)
        for number, piece in enumerate(pieces)
        if any(char.isalnum() for char in piece)
        for language in (("en" if number % 2 else "zh"),)
    ]
    if not said:
        raise ConfigError("the text has no words")
    if len(said) == 1:
        return said[0]
    return Speech(np.concatenate([_trimmed(speech) for speech in said]), said[0].rate_hz)


def _trimmed(speech: Speech) -> Float32:
    """Without the silence around it, which would sound like the end of the user's turn in the middle of a sentence."""
    loud = np.flatnonzero(np.abs(speech.samples) >= QUIET)
    if not len(loud):
        return speech.samples
    keep = ms_to_samples(KEEP_MS, speech.rate_hz)
    return speech.samples[max(0, int(loud[0]) - keep) : int(loud[-1]) + 1 + keep]


def _flac(samples: Float32, rate_hz: int) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, float_to_int16(samples), rate_hz, format="FLAC", subtype="PCM_16")
    return file.getvalue()
