"""WER of VocalBench's clarity figure.

Source: `utils/whisper_asr/calc_wer.py` of snapshot 5e9cce0.
"""

from __future__ import annotations

import re

from scoring.text.edit_distance import distance
from scoring.text.english import normalise, word_error_rate, words
from scoring.text.error_rate import ErrorRate
from scoring.text.syllables import Profile

_ORDINAL = re.compile(r"\b(?:(\d+)(?:st|nd|rd|th)|ninth)\b")
"""Whisper's normaliser writes all ordinals in digits but this one."""


def clarity(text: str, transcript: str, profile: Profile) -> ErrorRate:
    """Edits from the model's own `text` to what was heard.

    official: ordinals lose their ending in the transcript only, so that each of them ("first", which the normaliser
    writes 1st) counts as an error. fixed: both sides are written alike.
    """
    if profile == "fixed":
        return word_error_rate(text, transcript)
    reference = words(text)
    heard = words(_ORDINAL.sub(lambda found: f"{found[1] or 9}.", normalise(transcript)))
    return ErrorRate(edits=distance(reference, heard), length=len(reference))
