"""Sound files of recordings: one track a channel, any length that a session can hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soundfile

from harness.core.audio import Int16, float_to_int16
from harness.core.errors import ConfigError
from scenarios.clip import HIGHEST_RATE_HZ, LOWEST_RATE_HZ, check_riff_length
from scenarios.importers.sessions import Track

LONGEST_S = 4 * 3600
MOST_SAMPLES = LONGEST_S * 2 * 48_000
"""Of all channels together: a small compressed file can promise more than there is memory."""


def load_mono(path: Path) -> Track:
    """One track; several channels are averaged. Raises ConfigError, one line, for a file that is no such sound."""
    channels = _channels(path)
    if len(channels) == 1:
        return channels[0]
    mixed = np.mean([channel.samples for channel in channels], axis=0) / 32768
    return Track(samples=float_to_int16(mixed), rate_hz=channels[0].rate_hz)


def load_stereo(path: Path) -> tuple[Track, Track]:
    """Left and right. Raises ConfigError as `load_mono` does, and for any other number of channels."""
    channels = _channels(path)
    if len(channels) != 2:
        raise ConfigError(f"{path}: {len(channels)} channel(s), not two: left is the user, right the agent")
    return channels[0], channels[1]


def _channels(path: Path) -> list[Track]:
    if not path.is_file():
        raise ConfigError(f"{path}: no such file" if not path.exists() else f"{path}: not a file")
    try:
        check_riff_length(path)
        with soundfile.SoundFile(path) as file:
            rate_hz, promised = int(file.samplerate), int(file.frames)
            if not LOWEST_RATE_HZ <= rate_hz <= HIGHEST_RATE_HZ:
                raise ConfigError(f"{path}: {rate_hz} Hz is no sample rate of speech")
            if promised > LONGEST_S * rate_hz:
                raise ConfigError(f"{path}: longer than {LONGEST_S // 3600} hours")
            if promised * file.channels > MOST_SAMPLES:
                raise ConfigError(f"{path}: {file.channels} channels of {promised} samples are too much sound")
            samples = _pcm16(file)
    except (soundfile.LibsndfileError, TypeError) as exc:  # TypeError: `.raw` has no header that says its rate
        raise ConfigError(f"{path}: cannot be read as sound ({' '.join(str(exc).split())})") from exc
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read ({exc.strerror or exc})") from exc
    if len(samples) < promised:
        raise ConfigError(f"{path}: truncated ({len(samples)} of {promised} samples)")
    if len(samples) == 0:
        raise ConfigError(f"{path}: empty, no samples")
    return [Track(samples=np.ascontiguousarray(channel), rate_hz=rate_hz) for channel in samples.T]


def _pcm16(file: soundfile.SoundFile) -> Int16:
    """All samples as int16, shape (n, channels): PCM16 as it is, all else by way of float, clipped at full scale."""
    if file.subtype == "PCM_16":
        exact: Int16 = file.read(dtype="int16", always_2d=True)
        return exact
    return float_to_int16(file.read(dtype="float32", always_2d=True))
