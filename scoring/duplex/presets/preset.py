"""What a preset is: somebody else's definition as a pure function of our recordings, with its source and one sentence.

A third party adds one through the entry point group `firstpacket.presets`: a `Preset`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from harness.core.scorer import Unscored
from scoring.duplex.presets.material import Material

Figure = float | Unscored
"""Units stand in the name: `_ms`, `_s`, `_per_s`; what has none is a ratio or a score."""
NOTHING = "nothing of the kind happened"


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """What one event gave. at_ns: of the event, on its session's clock."""

    session: str
    event: str
    at_ns: int
    figure: str
    value: float


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """n: events behind each figure. reasons: why events gave nothing, with their number, by figure. notes: choices that
    the figures rest on (the recogniser, the detector)."""

    figures: dict[str, Figure]
    n: dict[str, int]
    values: tuple[Value, ...] = ()
    reasons: dict[str, dict[str, int]] = {}
    notes: tuple[str, ...] = ()


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """says: what it measures and why it differs from the others, in one sentence. figures: their names, in order.

    measure: of one or more recordings together.
    """

    name: str
    source: str
    says: str
    figures: tuple[str, ...]
    compute: Callable[[Sequence[Material]], Measured]

    def measure(self, *materials: Material) -> Measured:
        """The figures of the recordings together. Raises as the recordings do (SessionFormatError, ScoringError)."""
        return self.compute(materials)


class Tally:
    """Values and reasons as they come; figures are means of their values."""

    def __init__(self, figures: Sequence[str]) -> None:
        self._figures = tuple(figures)
        self._values: list[Value] = []
        self._reasons: dict[str, Counter[str]] = {name: Counter() for name in self._figures}

    def add(self, figure: str, value: Figure, *, material: Material, event: str = "", at_ns: int = 0) -> None:
        if isinstance(value, Unscored):
            self._reasons[figure][value.reason] += 1
            return
        self._values.append(Value(session=material.name, event=event, at_ns=at_ns, figure=figure, value=value))

    def measured(self, notes: Sequence[str] = ()) -> Measured:
        found = {name: [v.value for v in self._values if v.figure == name] for name in self._figures}
        return Measured(
            figures={name: sum(v) / len(v) if v else self._absent(name) for name, v in found.items()},
            n={name: len(v) for name, v in found.items()},
            values=tuple(self._values),
            reasons={name: dict(reasons) for name, reasons in self._reasons.items() if reasons},
            notes=tuple(dict.fromkeys(notes)),
        )

    def _absent(self, figure: str) -> Unscored:
        reasons = self._reasons[figure]
        if not reasons:
            return Unscored(reason=NOTHING)
        return Unscored(reason=min(reasons, key=lambda reason: (-reasons[reason], reason)))
