"""Levenshtein distance between two token lists, and how an optimal alignment splits into right and wrong tokens."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.engines.extras import require


class Alignment(msgspec.Struct, frozen=True, kw_only=True):
    """An alignment with the fewest edits, jiwer's where there are several.

    hits: reference tokens found in place. errors: substitutions, deletions and insertions. length: of the reference.
    """

    hits: int
    errors: int
    length: int


def distance(reference: Sequence[str], hypothesis: Sequence[str]) -> int:
    """Fewest insertions, deletions and substitutions, each at cost 1. Raises PrerequisiteError without the extra."""
    return int(require("rapidfuzz.distance", "score").Levenshtein.distance(reference, hypothesis))


def align(reference: Sequence[str], hypothesis: Sequence[str]) -> Alignment:
    """Hits and errors of word lists; no word may hold white space. Raises PrerequisiteError without the extra."""
    if not reference:  # jiwer's answer to this changed between versions
        return Alignment(hits=0, errors=len(hypothesis), length=0)
    found = require("jiwer", "score").process_words(" ".join(reference), " ".join(hypothesis))
    errors = found.substitutions + found.deletions + found.insertions
    return Alignment(hits=found.hits, errors=errors, length=len(reference))
