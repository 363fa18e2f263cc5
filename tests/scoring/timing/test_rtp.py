"""Loss by sequence numbers, and the receive buffer's own delay."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.events import RtpBuffered, RtpReceived
from harness.core.profile import Profile
from scoring.timing.rtp import packets
from tests.scoring.timing.recordings import MS, vad_turn

pytestmark = pytest.mark.unit


def came(*sequences: int, ssrc: int = 1) -> list[RtpReceived]:
    return [
        RtpReceived(t_ns=index, ssrc=ssrc, sequence=each % 65_536, timestamp=0) for index, each in enumerate(sequences)
    ]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], (0, 0)),
        (came(5), (1, 1)),
        (came(5, 6, 8, 9), (4, 5)),
        (came(65_534, 65_535, 65_536, 65_538), (4, 5)),  # the wrap
        (came(1, 3, 2, 4), (4, 4)),  # out of order is no loss
        (came(1, 2, 2, 2, 4), (3, 4)),  # twice is once
        (came(2, 1, 3), (3, 3)),
        (came(1, 2, 30_000, 30_002), (4, 5)),  # a jump begins anew
        (came(1, 2) + came(900, 902, ssrc=2), (4, 5)),
    ],
)
def test_packets(events: list[RtpReceived], expected: tuple[int, int]):
    assert packets(events) == expected


@given(st.integers(0, 65_535), st.sets(st.integers(1, 998), max_size=100))
def test_every_hole_counts_once(base: int, lost: set[int]):
    events = came(*(base + number for number in range(1000) if number not in lost))
    assert packets(events) == (1000 - len(lost), 1000)


def test_both_figures_stand_in_the_row(tmp_path: Path):
    script = vad_turn()
    script.events += came(1, 2, 3, 5)
    script.add(RtpBuffered(t_ns=script.at(9000), wait_ns=40 * MS, received=4, delivered=4, lost=1, held_ns=40 * MS))
    row = script.row(tmp_path, profile=Profile(rtp=True))
    assert row["rtp_loss"] == 0.2
    assert row["jitter_buffer_ms"] == 10.0


def test_a_peer_without_rtp_has_neither(tmp_path: Path):
    row = vad_turn().row(tmp_path)
    assert row["rtp_loss"] is None
    assert "rtp_loss" in row["undefined"]
    silent = vad_turn().row(tmp_path / "b", profile=Profile(rtp=True))
    assert silent["rtp_loss"] is None
    assert silent["reasons"]["rtp_loss"] == "no RTP packet came"
    assert "delivered nothing" in silent["reasons"]["jitter_buffer_ms"]
