"""The acoustic half of the empathy rate.

a = sum of p * r over the five emotions: p the probabilities without `unknown`, summing to 1, r the query's own five
integers `Score`. The acoustic half passes at a >= 3. Source: VocalBench-zh `utils/emotion_acoustic.py`,
`utils/emotional_empathy_rate.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scoring.benchmarks.vocalbench_zh.paralinguistic import six_scores
from scoring.benchmarks.vocalbench_zh.subsets import EMOTIONS

HIGHEST = 5
PASS = 3
"""Least grade of either half."""


def ratings(fields: Mapping[str, Any]) -> Sequence[float]:
    """The query's five grades, in the order of `EMOTIONS`. Raises ValueError when they are not five of 1 to 5."""
    found = fields.get("Score")
    if not isinstance(found, (list, tuple)) or len(found) != len(EMOTIONS):
        raise ValueError("the query has no five ratings in Score")
    if not all(isinstance(rating, (int, float)) and 1 <= rating <= HIGHEST for rating in found):
        raise ValueError(f"the query's Score holds something else than grades of 1 to {HIGHEST}")
    return found


def acoustic_score(emotion: Mapping[str, float], rated: Sequence[float]) -> float:
    """1 to 5. Raises ValueError where the original drops the item: one of the six probabilities is 0."""
    scores = six_scores(emotion)
    if min(scores.values()) <= 0:
        raise ValueError("a probability is 0: the original drops such an answer")
    voiced = [scores[name] for name in EMOTIONS]
    return sum(p * r for p, r in zip(voiced, rated, strict=True)) / sum(voiced)
