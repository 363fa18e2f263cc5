"""The two sound files of a session: mono PCM16 as WAV or FLAC, written piece by piece and read whole."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import cast

import numpy as np
import soundfile

from harness.core.audio import PCM16_BYTES, Int16, pcm16_to_int16
from harness.core.errors import SessionFormatError
from harness.core.session.header import AudioInfo

BLOCK_BYTES = 1 << 15
"""PCM is handed to the encoder in blocks of this size (0.7 s at 24 kHz): a call for each packet would cost more than
the encoding."""


class AudioWriter:
    """Appends PCM16 to one file; counts and hashes what it wrote. Raises OSError when the disk is full."""

    def __init__(self, path: Path, rate_hz: int) -> None:
        self.path = path
        self.rate_hz = rate_hz
        self.samples = 0
        self._hash = hashlib.sha256()
        self._waiting = bytearray()
        try:
            self._file = soundfile.SoundFile(path, "w", samplerate=rate_hz, channels=1, subtype="PCM_16")
        except soundfile.LibsndfileError as exc:
            raise OSError(f"cannot write {path.name}: {exc}") from exc

    def append(self, pcm: bytes) -> int:
        """Write PCM16 bytes; return the index of the first sample that they became."""
        start = self.samples
        self._waiting += pcm
        self.samples += len(pcm) // PCM16_BYTES
        if len(self._waiting) >= BLOCK_BYTES:
            self._write()
        return start

    def close(self) -> AudioInfo:
        """Finish the file and say what is in it."""
        self._write()
        try:
            self._file.close()
        except soundfile.LibsndfileError as exc:
            raise OSError(f"cannot write {self.path.name}: {exc}") from exc
        return AudioInfo(file=self.path.name, rate_hz=self.rate_hz, samples=self.samples, sha256=self._hash.hexdigest())

    def _write(self) -> None:
        try:
            self._file.write(pcm16_to_int16(self._waiting))
        except soundfile.LibsndfileError as exc:
            raise OSError(f"cannot write {self.path.name}: {exc}") from exc
        self._hash.update(self._waiting)
        self._waiting = bytearray()


def inside(directory: Path, name: str) -> Path:
    """The regular file `name` of a session directory.

    Raises SessionFormatError for one that is missing, is no regular file, or is a link that leads out of the directory.
    """
    path = directory / name
    try:
        home, real = directory.resolve(), path.resolve(strict=True)
        regular = real.is_file()
    except FileNotFoundError as exc:
        raise SessionFormatError(f"{path}: is missing") from exc
    except (OSError, RuntimeError, ValueError) as exc:  # a loop of links, a name that no system takes
        raise SessionFormatError(f"{path}: cannot be read ({exc})") from exc
    if not real.is_relative_to(home):
        raise SessionFormatError(f"{path}: is a link that leads out of the session directory")
    if not regular:
        raise SessionFormatError(f"{path}: is not a regular file")
    return real


def read_audio(directory: Path, info: AudioInfo) -> Int16:
    """The samples of one session file, shape (n,), checked against the header's count and sha256.

    Raises SessionFormatError for a missing, damaged or altered file, and for one that lies elsewhere.
    """
    path = directory / info.file
    if info.samples == 0 and not os.path.exists(path):
        return np.zeros(0, dtype=np.int16)
    real = inside(directory, info.file)
    try:
        with soundfile.SoundFile(real) as file:
            held = (file.channels, file.samplerate, file.frames)
            # Checked before anything is decoded: a small file may claim hours of sound.
            fits = held == (1, info.rate_hz, info.samples)
            samples = cast(Int16, file.read(dtype="int16")) if fits else np.zeros(0, dtype=np.int16)
    except (OSError, TypeError, ValueError, MemoryError, soundfile.LibsndfileError) as exc:
        raise SessionFormatError(f"{path}: cannot be read ({_line(exc)})") from exc
    if not fits or len(samples) != info.samples:
        count = len(samples) if fits else held[2]
        raise SessionFormatError(
            f"{path}: {count} samples at {held[1]} Hz in {held[0]} channels, "
            f"session.json says {info.samples} at {info.rate_hz} Hz in 1: the file was changed"
        )
    if info.sha256 and hashlib.sha256(samples.astype("<i2", copy=False).tobytes()).hexdigest() != info.sha256:
        raise SessionFormatError(f"{path}: sha256 differs from session.json, the file was changed")
    return samples


def _line(exc: BaseException) -> str:
    return " ".join(str(exc).split()) or type(exc).__name__
