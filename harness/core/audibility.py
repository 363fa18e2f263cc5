"""First audible sample: what a listener would call the first sound. Pure functions of samples.

Rule (timing definitions, section 1): RMS windows of 10 ms, hop 1 ms, each window's mean removed, over the
concatenated samples. The first window at or above -40 dBFS such that every window that starts in the following
50 ms is too; the sample is that window's first. Windows that the recording does not hold (its end) count as not
audible, so a click of less than the hold is never a sound.
"""

from __future__ import annotations

import msgspec
import numpy as np

from harness.core.audio import Int16, db_to_power, ms_to_samples, window_power


class Audibility(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of the rule, recorded beside every figure that rests on it."""

    threshold_db: float = -40.0
    hold_ms: int = 50
    window_ms: int = 10
    hop_ms: int = 1


DEFAULT = Audibility()


def first_audible_sample(samples: Int16, rate_hz: int, rule: Audibility = DEFAULT) -> int | None:
    """Index of the first audible sample of `samples` (mono int16, shape (n,)), or None when nothing is audible."""
    hop = max(1, ms_to_samples(rule.hop_ms, rate_hz))
    loud = _loud_windows(samples, rate_hz, rule)
    hold = rule.hold_ms // rule.hop_ms
    if len(loud) <= hold:
        return None
    runs = np.concatenate(([0], np.cumsum(loud)))
    held = runs[hold + 1 :] - runs[: len(loud) - hold] == hold + 1
    hits = np.flatnonzero(held)
    return int(hits[0]) * hop if len(hits) else None


def audible_spans(samples: Int16, rate_hz: int, rule: Audibility = DEFAULT) -> list[tuple[int, int]]:
    """Spans [start, end) in samples that are audible by the same rule: runs of loud windows longer than the hold.

    A span ends one past the last sample of its last loud window.
    """
    hop = max(1, ms_to_samples(rule.hop_ms, rate_hz))
    window = ms_to_samples(rule.window_ms, rate_hz)
    loud = _loud_windows(samples, rate_hz, rule).astype(np.int8)
    edges = np.diff(np.concatenate(([0], loud, [0])))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    hold = rule.hold_ms // rule.hop_ms
    return [(int(a) * hop, int(b - 1) * hop + window) for a, b in zip(starts, ends, strict=True) if b - a > hold]


def _loud_windows(samples: Int16, rate_hz: int, rule: Audibility) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    hop = max(1, ms_to_samples(rule.hop_ms, rate_hz))
    window = ms_to_samples(rule.window_ms, rate_hz)
    power = window_power(samples, window, hop, remove_mean=True)
    return np.asarray(power >= db_to_power(rule.threshold_db), dtype=np.bool_)
