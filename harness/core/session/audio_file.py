"""The two sound files of a session: mono PCM16 as WAV or FLAC, written piece by piece and read whole."""

from __future__ import annotations

import hashlib
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


def read_audio(directory: Path, info: AudioInfo) -> Int16:
    """The samples of one session file, shape (n,), checked against the header's count and sha256.

    Raises SessionFormatError for a missing, damaged or altered file.
    """
    path = directory / info.file
    if info.samples == 0 and not path.exists():
        return np.zeros(0, dtype=np.int16)
    try:
        samples, rate_hz = soundfile.read(path, dtype="int16")
    except (OSError, soundfile.LibsndfileError) as exc:
        raise SessionFormatError(f"{path}: cannot be read ({exc})") from exc
    samples = cast(Int16, samples)
    if samples.ndim != 1 or rate_hz != info.rate_hz or len(samples) != info.samples:
        raise SessionFormatError(f"{path}: {samples.shape} samples at {rate_hz} Hz do not fit session.json")
    if info.sha256 and hashlib.sha256(samples.astype("<i2", copy=False).tobytes()).hexdigest() != info.sha256:
        raise SessionFormatError(f"{path}: sha256 differs from session.json, the file was changed")
    return samples
