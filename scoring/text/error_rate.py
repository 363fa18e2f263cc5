"""An error rate with the counts behind it, so that rates can be pooled."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class ErrorRate(msgspec.Struct, frozen=True, kw_only=True):
    """edits over length, both whole counts. length: tokens of the reference."""

    edits: int
    length: int

    @property
    def rate(self) -> float:
        """edits / length; 0 for an empty reference, whatever was heard (as in VocalBench-zh)."""
        return self.edits / self.length if self.length else 0.0


def pooled(rates: Iterable[ErrorRate]) -> ErrorRate:
    """All edits over all lengths, the corpus rate; not the mean of the items' rates."""
    counted = list(rates)
    return ErrorRate(edits=sum(rate.edits for rate in counted), length=sum(rate.length for rate in counted))
