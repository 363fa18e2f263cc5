"""One recording, or several together, under every definition side by side."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.core.scorer import Unscored
from harness.core.session.reader import Session
from scoring.duplex.hearing import hear
from scoring.duplex.presets.material import Material
from scoring.duplex.presets.preset import Figure, Preset
from scoring.duplex.presets.registry import all_presets
from scoring.duplex.presets.words import NO_WORDS, Words
from scoring.timing.recording import Recording


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One figure with its number of events; why events gave none stands in `reasons`."""

    figure: str
    value: Figure
    n: int
    reasons: dict[str, int] = {}


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """One preset's row: says is its sentence; notes name the detector and the recogniser behind it."""

    name: str
    source: str
    says: str
    cells: tuple[Cell, ...]
    notes: tuple[str, ...]


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """sessions: what the figures are over."""

    sessions: tuple[str, ...]
    rows: tuple[Definition, ...]


def material_of(
    session: Session, *, words: Words | Unscored = NO_WORDS, backchannels: Sequence[float] = ()
) -> Material:
    """What presets look at in a session. Raises as `hear` does."""
    conversation = None if session.header.mode == "upload" else hear(session).conversation
    return Material(recording=Recording(session), conversation=conversation, words=words, backchannels=backchannels)


def definitions(*materials: Material, presets: Sequence[Preset] | None = None) -> Table:
    """The recordings together under all presets, or those given."""
    rows: list[Definition] = []
    for preset in all_presets() if presets is None else presets:
        measured = preset.measure(*materials)
        cells = tuple(
            Cell(
                figure=figure,
                value=measured.figures[figure],
                n=measured.n[figure],
                reasons=measured.reasons.get(figure, {}),
            )
            for figure in preset.figures
        )
        rows.append(
            Definition(name=preset.name, source=preset.source, says=preset.says, cells=cells, notes=measured.notes)
        )
    return Table(sessions=tuple(material.name for material in materials), rows=tuple(rows))
