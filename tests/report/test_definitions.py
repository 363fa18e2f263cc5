"""One recording under several definitions, in a terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from harness.report.definitions import print_definitions

pytestmark = pytest.mark.unit


def cell(figure: str, value: object, n: int = 0, **reasons: int) -> dict[str, Any]:
    return {
        "figure": figure,
        "value": value,
        "n": n,
        "reasons": {key.replace("_", " "): m for key, m in reasons.items()},
    }


TABLE: dict[str, Any] = {
    "sessions": ["s1", "s2"],
    "rows": [
        {
            "name": "early",
            "source": "a harness",
            "says": "From the first byte on, and blind to silence at the head of the answer.",
            "cells": [
                cell("latency_ms", 412.34, 7, no_answer=2),
                cell("wait_s", 0.5778, 3),
                cell("per_s", 0.11, 9),
                cell("rate", 0.875, 8),
            ],
            "notes": ["VAD: silero"],
        },
        {
            "name": "wordy",
            "source": "another",
            "says": "Up to the first recognised word.",
            "cells": [cell("a_s", {"reason": "no words"}), cell("b_s", {"reason": "no words"})],
            "notes": [],
        },
    ],
}


def printed(table: dict[str, Any] = TABLE, width: int = 100) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    print_definitions(console, table)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]


def test_every_figure_has_its_unit_and_n() -> None:
    rows = [line.split() for line in printed()]
    assert ["early", "latency_ms", "412.3", "ms", "7"] in rows
    assert ["wait_s", "0.578", "s", "3"] in rows
    assert ["per_s", "0.110", "a", "second", "9"] in rows
    assert ["rate", "0.875", "8"] in rows
    assert ["wordy", "a_s", "–", "0"] in rows


def test_a_sentence_each_and_why_figures_are_missing() -> None:
    lines = [line.strip() for line in printed()]
    after = lines[lines.index("early  a harness") :]
    assert after[1] == "From the first byte on, and blind to silence at the head of the answer."
    assert after[2] == "latency_ms: without 2: no answer."
    assert after[3] == "VAD: silero."
    after = lines[lines.index("wordy  another") :]
    assert after[1:] == ["Up to the first recognised word.", "a_s, b_s: no words."]


@pytest.mark.parametrize(
    ("sessions", "title"),
    [
        (["one"], "one"),
        (["s1", "s2"], "2 sessions pooled: s1, s2"),
        (["s1", "s2", "s3", "s4", "s5"], "5 sessions pooled: s1, s2, s3 and 2 more"),
    ],
)
def test_the_title_names_what_is_pooled(sessions: list[str], title: str) -> None:
    assert printed({**TABLE, "sessions": sessions})[0] == title


def test_nothing_is_cut_in_a_narrow_terminal() -> None:
    lines = printed(width=48)
    assert max(cell_len(line) for line in lines) <= 48
    words = " ".join(" ".join(lines).split())
    assert "From the first byte on, and blind to silence at the head of the answer." in words


def test_words_of_others_cannot_steer_the_terminal() -> None:
    table = {**TABLE, "sessions": ["s\x1b[2J1"]}
    assert "\x1b" not in "".join(printed(table))
