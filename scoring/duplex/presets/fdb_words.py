"""Full-Duplex-Bench v1: taking turns by recognised words, backchannels by Silero segments and words.

Pure rules on spans and words; `fdb` applies them to a recording.
Source: Full-Duplex-Bench v1, `eval_smooth_turn_taking.py`, `eval_user_interruption.py`, `eval_pause_handling.py`,
`eval_backchannel.py` (constants there: 1 s, 3 words; 3 s, 1 s, 2 words; 0.2 s; 1e-10).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from harness.core.audio import NS_PER_MS, NS_PER_S, Float64
from scoring.duplex.presets.words import Word
from scoring.duplex.spans import Span

TURN_NS = 1_000 * NS_PER_MS
TURN_WORDS = 3
"""Words that span less than a second and number at most three do not take the turn."""
TAKEOVER_NS = 3_000 * NS_PER_MS
"""A longer segment is a takeover whatever is said."""
BACKCHANNEL_NS = 1_000 * NS_PER_MS
BACKCHANNEL_WORDS = 2
"""A segment shorter than a second with at most two words is no takeover."""
BIN_NS = 200 * NS_PER_MS
EPSILON = 1e-10
NO_BACKCHANNEL_JSD = 1.0
"""Their figure for a turn without a segment; above the greatest distance there is, sqrt(ln 2) = 0.83."""


def takes_turn(words: Sequence[Word]) -> bool:
    """TOR of one answer: 0 without words, or with at most 3 that span less than 1 s; else 1."""
    if not words:
        return False
    return words[-1].end_ns - words[0].start_ns >= TURN_NS or len(words) > TURN_WORDS


def latency_s(words: Sequence[Word], turn_end_ns: int) -> float:
    """First word's start - annotated end of the user's turn, in s; negatives clamp to 0."""
    return max(0, words[0].start_ns - turn_end_ns) / NS_PER_S


def considered(segments: Sequence[Span]) -> list[Span]:
    """The segments up to the first takeover: those that count as backchannels (the loop ends at a takeover)."""
    found: list[Span] = []
    for segment in segments:
        if segment.length_ns > TAKEOVER_NS:
            break
        found.append(segment)
    return found


def takes_over(segments: Sequence[Span], words: Sequence[Word]) -> bool:
    """TOR of the backchannel task: 1 for a segment above 3 s; else what the *last* segment is (each overwrites the one
    before): 0 if it is below 1 s and has at most 2 words, else 1."""
    short = considered(segments)
    if len(short) < len(segments):
        return True
    if not short:
        return False
    said = sum(_in(word, short[-1]) for word in words)
    return not (short[-1].length_ns < BACKCHANNEL_NS and said <= BACKCHANNEL_WORDS)


def timing_distance(segments: Sequence[Span], turn: Span, people: Sequence[float]) -> float:
    """Jensen-Shannon distance (the root of the divergence, natural logarithm) between where the agent's segments lie in
    the turn, in bins of 200 ms, and where people's backchannels do, `people` stretched to the turn's bins."""
    short = considered(segments)
    if not short:
        return NO_BACKCHANNEL_JSD
    bins = np.zeros(turn.length_ns // BIN_NS + 1, dtype=np.float64)
    for segment in short:
        first, last = ((t - turn.start_ns) // BIN_NS for t in (segment.start_ns, segment.end_ns))
        bins[max(0, first) : last + 1] += 1
    stretched = np.interp(np.linspace(0, 1, len(bins)), np.linspace(0, 1, len(people)), np.asarray(people))
    return _distance(bins + EPSILON, stretched)


def _distance(p: Float64, q: Float64) -> float:
    p, q = p / p.sum(), q / q.sum()
    middle = (p + q) / 2
    return math.sqrt(max(0.0, (_entropy(p, middle) + _entropy(q, middle)) / 2))


def _entropy(p: Float64, q: Float64) -> float:
    held = p > 0
    return float(np.sum(p[held] * np.log(p[held] / q[held])))


def _in(word: Word, segment: Span) -> bool:
    if segment.start_ns <= word.start_ns and word.end_ns <= segment.end_ns:
        return True
    return word.start_ns <= segment.end_ns < word.end_ns or word.start_ns <= segment.start_ns < word.end_ns
