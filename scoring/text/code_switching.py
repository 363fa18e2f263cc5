"""How the English words of a mixed answer came out in speech, and which language was answered in (CS3-Bench metrics).

No code of CS3-Bench was released. What is fitted to its published counts: Num is the number of English words in the
text, PSR the share of them that is pronounced right, WER their errors over Num, so PSR + WER may differ from 1. What is
ours: how words are found and aligned, and LSA, read as the share of answers whose speech is in the expected language.
"""

from __future__ import annotations

import re
from typing import Literal

from scoring.text.edit_distance import Alignment, align

_WORD = re.compile(r"[a-z]+(?:['’][a-z]+)*")
_HANZI = re.compile(r"[一-鿿]")


def english_words(text: str) -> list[str]:
    """Runs of Latin letters, lower case, an apostrophe inside kept; digits and hyphens part words."""
    return [word.replace("’", "'") for word in _WORD.findall(text.lower())]


def english_alignment(text: str, transcript: str) -> Alignment:
    """The English words of the model's `text` against those that were heard, the Mandarin around them left out."""
    return align(english_words(text), english_words(transcript))


def language_of(text: str) -> Literal["zh", "en", ""]:
    """zh when there are at least as many Hanzi as English words, en when fewer, empty for neither.

    A Hanzi is a syllable and an English word one or more, so the count leans to what takes the time.
    """
    hanzi, english = len(_HANZI.findall(text)), len(english_words(text))
    if hanzi == english == 0:
        return ""
    return "zh" if hanzi >= english else "en"
