"""Where speech begins and ends inside a stretch that a voice detector found: by energy, to the millisecond.

Loud is a window of 10 ms (hop 1 ms, own mean removed) at or above max(-50 dBFS, loudest window - 35 dB), the rule of
the clips' annotator. Used on whole recordings and, while they come in, on the last second of a stream.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness.core.audio import Int16, db_to_power, ms_to_samples, window_power

WINDOW_MS = 10
HOP_MS = 1
REACH_MS = 100
"""How far beyond a detector's boundary speech is looked for."""
RUN_ON_MS = 250
"""How far back speech that is loud at the very end of that reach may run on: of a hummed "mm-hm" behind a codec Silero
misses the first 128 ms."""
FLOOR_DB = -50.0
BELOW_LOUDEST_DB = 35.0


class Edges(NamedTuple):
    """Samples [start, end) from the first to the last loud window."""

    start: int
    end: int


def speech_edges(
    signal: Int16, rate_hz: int, low: int, high: int, *, loudest: float = 0.0, back: int | None = None
) -> Edges | None:
    """The edges of what is loud in samples [low, high) of `signal`, int16 of shape (n,); None where nothing is.

    loudest: mean square of the loudest window of the speech, where that lies outside [low, high). back: what is loud at
    `low` begins earlier, where it is loud without a gap, but not before sample `back`."""
    window, hop = ms_to_samples(WINDOW_MS, rate_hz), max(1, ms_to_samples(HOP_MS, rate_hz))
    low = -(-max(low, 0) // hop) * hop
    power = window_power(signal[low:high], window, hop, remove_mean=True)
    if len(power) == 0:
        return None
    bound = max(db_to_power(FLOOR_DB), max(loudest, float(power.max())) * db_to_power(-BELOW_LOUDEST_DB))
    loud = np.flatnonzero(power >= bound)
    if len(loud) == 0:
        return None
    start, end = low + int(loud[0]) * hop, low + int(loud[-1]) * hop + window
    if start == low and back is not None and back < low:
        back = -(-max(back, 0) // hop) * hop
        before = window_power(signal[back : low - hop + window], window, hop, remove_mean=True)
        quiet = np.flatnonzero(before < bound)
        start = back + (int(quiet[-1]) + 1 if len(quiet) else 0) * hop
    return Edges(start, end)


def loudest_window(samples: Int16, rate_hz: int) -> float:
    """Mean square (full scale 1.0) of the loudest 10 ms window; what is shorter than a window is one. 0.0 for none."""
    window = min(ms_to_samples(WINDOW_MS, rate_hz), len(samples))
    power = window_power(samples, window, max(1, ms_to_samples(HOP_MS, rate_hz)), remove_mean=True)
    return float(power.max()) if len(power) else 0.0


def is_silent(samples: Int16, rate_hz: int) -> bool:
    """No 10 ms window reaches -50 dBFS."""
    return loudest_window(samples, rate_hz) < db_to_power(FLOOR_DB)
