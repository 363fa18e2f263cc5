"""The definitions matrix of a single row."""

from __future__ import annotations

from pathlib import Path

import pytest

from scoring.timing.anchors import INPUT, OUTPUT
from scoring.timing.matrix import matrix_reasons, turn_matrix
from tests.scoring.timing.recordings import vad_turn

pytestmark = pytest.mark.unit


def test_every_start_against_every_end(tmp_path: Path):
    row = vad_turn().row(tmp_path)
    cells = turn_matrix(row)
    assert tuple(cells) == INPUT
    assert all(tuple(cell) == OUTPUT for cell in cells.values())
    assert cells["speech_end"] == {
        "first_text": 500.0,
        "first_packet": 600.0,
        "first_audible": 691.0,
        "last_packet": 620.0,
        "done": 630.0,
    }
    assert cells["speech_sent"]["first_packet"] == row["first_packet_ms"]
    assert cells["endpoint"]["first_packet"] == row["think_ms"]
    assert cells["connect"]["first_packet"] == 1750.0
    assert set(cells["committed"].values()) == {None}
    assert matrix_reasons(row) == {"committed": "only manual turns are committed"}
