"""English text as VocalBench compares it: cleaned up, through Whisper's English normaliser, word error rate pooled."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any

from harness.engines.extras import require
from scoring.text.edit_distance import distance
from scoring.text.error_rate import ErrorRate

_ADDED_BY_THE_PACKAGE = (r"\bkinda\b", r"\bsorta\b", r"\bdunno\b", r"\bcause\b")
"""Contractions that `whisper-normalizer` 0.1.15 spells out and OpenAI's own normaliser does not."""
_CLEAN_UP = ((r"<\|.*?\|>", " "), (r"\s+", " "), (r" ?([!,.?;:])", r"\1"), ("-", " "))


def normalise(text: str) -> str:
    """Special tokens and hyphens to spaces, no space before punctuation, then Whisper's normaliser, lower case.

    Source: VocalBench snapshot 5e9cce0. Raises PrerequisiteError without the extra `score`.
    """
    for pattern, replacement in _CLEAN_UP:
        text = re.sub(pattern, replacement, text)
    return str(_normaliser()(text.lstrip(" "))).lower()


def words(text: str) -> list[str]:
    """Words of the normalised `text`; one that is all punctuation does not count."""
    return [word for word in normalise(text).split() if not all(unicodedata.category(c)[0] == "P" for c in word)]


def word_error_rate(text: str, transcript: str) -> ErrorRate:
    """Edits that turn the model's own `text` into what was heard, over the words of `text`."""
    reference = words(text)
    return ErrorRate(edits=distance(reference, words(transcript)), length=len(reference))


@cache
def _normaliser() -> Any:
    normaliser = require("whisper_normalizer.english", "score").EnglishTextNormalizer()
    for pattern in _ADDED_BY_THE_PACKAGE:
        normaliser.replacers.pop(pattern, None)
    return normaliser
