"""Levenshtein distance between two token lists, and how an optimal alignment splits into right and wrong tokens."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Alignment(msgspec.Struct, frozen=True, kw_only=True):
    """An alignment with the fewest edits; among those, one with the most hits.

    hits: reference tokens found in place. errors: substitutions, deletions and insertions. length: of the reference.
    """

    hits: int
    errors: int
    length: int


def distance(reference: Sequence[str], hypothesis: Sequence[str]) -> int:
    """Fewest insertions, deletions and substitutions, each at cost 1.

    Bit-parallel over whole columns (Myers, JACM 46:395, 1999), so that answers of thousands of syllables take
    milliseconds; Python's integers are the bit vectors.
    """
    size = len(reference)
    if size == 0:
        return len(hypothesis)
    full, top = (1 << size) - 1, 1 << (size - 1)
    places: dict[str, int] = {}
    for index, token in enumerate(reference):
        places[token] = places.get(token, 0) | 1 << index
    rises, falls, score = full, 0, size
    for token in hypothesis:
        equal = places.get(token, 0)
        vertical = equal | falls
        horizontal = (((equal & rises) + rises) ^ rises) | equal
        up = (falls | ~(horizontal | rises)) & full
        down = rises & horizontal
        score += bool(up & top) - bool(down & top)
        up = up << 1 | 1
        rises = (down << 1 | ~(vertical | up)) & full
        falls = up & vertical & full
    return score


def align(reference: Sequence[str], hypothesis: Sequence[str]) -> Alignment:
    """Hits and errors of the best alignment. Quadratic; for word lists, not for long texts."""
    # A cell is (edits, -hits): the smallest has the fewest edits, then the most hits.
    row = [(column, 0) for column in range(len(hypothesis) + 1)]
    for index, token in enumerate(reference):
        diagonal, row[0] = row[0], (index + 1, 0)
        for column, other in enumerate(hypothesis):
            same = token == other
            met = (diagonal[0] + (not same), diagonal[1] - same)
            above, left = row[column + 1], row[column]
            diagonal = above
            row[column + 1] = min(met, (above[0] + 1, above[1]), (left[0] + 1, left[1]))
    edits, hits = row[-1]
    return Alignment(hits=-hits, errors=edits, length=len(reference))
