"""Phoneme error rate of Mandarin as VocalBench-zh counts it: edits over tonal syllables.

PER = edits / syllables of the model's own text. Homophones are free, a wrong tone costs a whole syllable, everything
that is not Hanzi after the numbers were read is left out. Source: VocalBench-zh, `utils/per.py`.
"""

from __future__ import annotations

import importlib
import re
import sys
from functools import cache
from typing import Any, Literal

from harness.engines.extras import require
from scoring.text import fixed_numbers, official_numbers
from scoring.text.edit_distance import distance
from scoring.text.error_rate import ErrorRate

Profile = Literal["official", "fixed"]
PROFILES: tuple[Profile, ...] = ("official", "fixed")
"""official: numbers as the original reads them, the published values. fixed: numbers as they are said."""
_NOT_HANZI = re.compile(r"[^一-鿿]")
"""All outside U+4E00 to U+9FFF."""


def hanzi(text: str, profile: Profile) -> str:
    """`text` with its numbers read and everything but Hanzi removed."""
    reader = official_numbers if profile == "official" else fixed_numbers
    return _NOT_HANZI.sub("", reader.read_numbers(text))


def syllables(text: str, profile: Profile = "official") -> list[str]:
    """One tonal syllable a Hanzi, such as `zhong1`; neutral tone without a digit.

    Raises PrerequisiteError without the extra `score`.
    """
    pypinyin = _pypinyin()
    readings = pypinyin.pinyin(hanzi(text, profile), style=pypinyin.Style.TONE3)
    return [reading[0] for reading in readings]


def phoneme_error_rate(text: str, transcript: str, profile: Profile = "official") -> ErrorRate:
    """Edits that turn the model's own `text` into what was heard, over the syllables of `text`."""
    reference = syllables(text, profile)
    return ErrorRate(edits=distance(reference, syllables(transcript, profile)), length=len(reference))


def reader_version() -> str:
    """The package that gives the readings; other versions read some phrases differently."""
    return f"pypinyin {_pypinyin().__version__}"


@cache
def _pypinyin() -> Any:
    """A copy of pypinyin that nobody else holds.

    Its dictionaries are global: a speech synthesizer in the same process adds phrases to them, and the readings, hence
    the published values, would depend on what was spoken before.
    """
    held = {name: sys.modules.pop(name) for name in _modules()}
    try:
        module = require("pypinyin", "score")
        module.pinyin("中国", style=module.Style.TONE3)
        importlib.import_module("pypinyin.seg.mmseg")
    finally:
        for name in _modules():
            del sys.modules[name]
        sys.modules.update(held)
    return module


def _modules() -> list[str]:
    return [name for name in sys.modules if name == "pypinyin" or name.startswith("pypinyin.")]
