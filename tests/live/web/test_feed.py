"""What the page is told: envelopes at their instants, marks, lines, texts once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.core.events import ConnectionClosed, Note, PeerError, TextReceived, UserSpeechStopped
from harness.live.turns import TurnFigures
from harness.live.web.feed import BROWSER_DELAY, MOST_POINTS, Feed, Side

pytestmark = pytest.mark.unit
MS = 1_000_000
BEGIN = 5_000 * MS


def session(*rows: TurnFigures) -> Any:
    turns = SimpleNamespace(rows=lambda last: list(rows), deaf="")
    return SimpleNamespace(turns=turns, muted=False, talking=True)


def test_an_envelope_has_a_point_every_20_ms_where_the_sound_was() -> None:
    side = Side(48_000)
    samples = np.zeros(1_920, np.int16)
    samples[1_000] = -16_384
    side.take(samples, 100.0)
    seen = side.look()
    assert seen["points"] == [(110.0, 0.0), (130.0, 0.5)]
    assert seen["db"] == pytest.approx(-38.85, abs=0.06)  # 20 log10(0.5 / sqrt(1920))
    assert side.look() == {"points": [], "db": -120.0}


def test_what_nobody_looks_at_does_not_grow() -> None:
    side = Side(48_000)
    for at in range(2 * MOST_POINTS):
        side.take(np.zeros(960, np.int16), at * 20.0)
    points = side.look()["points"]
    assert len(points) == MOST_POINTS
    assert points[-1][0] == (2 * MOST_POINTS - 1) * 20.0 + 10


def test_a_peer_that_floods_fills_no_memory() -> None:
    feed = Feed(BEGIN, 48_000, 0)
    for number in range(1_000):
        feed.take(PeerError(t_ns=BEGIN, code="x", message=f"{number} {'x' * 9_999}"))
        feed.take(UserSpeechStopped(t_ns=BEGIN + number * MS))
    look = feed.look(BEGIN, session(), 0)
    assert [len(look["lines"]), len(look["lines"][-1]["text"]), len(look["marks"])] == [50, 500, 200]
    assert look["lines"][-1]["text"].startswith("999 ")


def test_the_microphones_block_lies_before_its_arrival_less_the_latency() -> None:
    feed = Feed(BEGIN, 48_000, 6 * MS)
    feed.hear(np.zeros(960, np.int16), BEGIN + 100 * MS)
    feed.play(np.zeros(960, np.int16), BEGIN + 100 * MS)
    look = feed.look(BEGIN + 200 * MS, session(), 3.21)
    assert look["user"]["points"] == [(84.0, 0.0)]
    assert look["agent"]["points"] == [(110.0, 0.0)]
    assert (look["now"], look["wait_ms"]) == (200.0, 3.2)


def test_events_become_marks_lines_and_texts_and_are_told_once() -> None:
    feed = Feed(BEGIN, 48_000, 0)
    for event in (
        UserSpeechStopped(t_ns=BEGIN + 7 * MS),
        PeerError(t_ns=BEGIN, code="busy", message="too many"),
        Note(t_ns=BEGIN, code="x", message="seen"),
        Note(t_ns=BEGIN, code=BROWSER_DELAY, message="the page knows"),
        ConnectionClosed(t_ns=BEGIN, by="peer", reason="bye"),
        ConnectionClosed(t_ns=BEGIN, by="us"),
        TextReceived(t_ns=BEGIN, text="Hel", response="r"),
        TextReceived(t_ns=BEGIN, text="lo", response="r"),
    ):
        feed.take(event)
    look = feed.look(BEGIN, session(), 0)
    assert look["marks"] == [{"name": "endpoint", "ms": 7.0}]
    assert [(line["kind"], line["text"]) for line in look["lines"]] == [
        ("error", "too many"),
        ("note", "seen"),
        ("error", "bye"),
    ]
    assert list(look["texts"]) == [["agent", "Hello"]]
    again = feed.look(BEGIN, session(), 0)
    assert (again["marks"], again["lines"]) == ([], [])
    assert "texts" not in again


def test_a_turns_instants_are_on_the_pages_axis() -> None:
    row = TurnFigures(
        number=2,
        speaking=False,
        start_ns=BEGIN + 1_000 * MS,
        end_ns=BEGIN + 2_500 * MS,
        first_audible_ms=612.00049,
    )
    (told,) = Feed(BEGIN, 48_000, 0).look(BEGIN, session(row), 0)["turns"]
    assert (told["start"], told["end"], told["sent"]) == (1_000.0, 2_500.0, None)
    assert told["first_audible_ms"] == 612.0
    assert not any(key.endswith("_ns") for key in told)
