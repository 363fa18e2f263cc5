"""A run of conversations for the tests of the page: rows and figures by the real scorer's functions, no sound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.core.run_directory import RunDirectory, RunInfo
from scoring.duplex.metrics import METRICS
from scoring.duplex.panel import offsets, panel
from scoring.duplex.rows import conversation_rows
from tests.scoring.duplex.conversations import said, talk


def event_rows(count: int = 12, **more: Any) -> list[dict[str, Any]]:
    """For each of `count` sessions: a turn that is answered after 400 ms and more, and an interruption to which the
    agent yields after 300 ms; three sessions with a cough into silence; a last one ends while the agent speaks."""
    rows: list[dict[str, Any]] = []
    for number in range(count):
        user = [said(1000, 2000, category="smooth_turn_taking"), said(4000, 5000, "stop", category="user_interruption")]
        agent = [(2400 + 10 * number, 4300), (5600, 7000)]
        rows += conversation_rows(talk(user, agent), session=f"s{number:02d}")
    for number in range(3):
        cough = [said(1000, 1300, "stay_silent", "noise", category="noise")]
        rows += conversation_rows(talk(cough, []), session=f"n{number}")
    cut = [said(2000, 2500, "stop", category="user_interruption", offset_exact=False)]
    rows += conversation_rows(talk(cut, [(500, 3000)], end_ms=3000), session="s99")
    return [row | {"warmup": False, "timed_out": False, "impairment": "", **more} for row in rows]


def summary_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "sessions": len({row["session"] for row in rows}),
        "events": len(rows),
        "unplaced": sum(row["demand"] is None for row in rows),
        "panel": panel(rows),
        "fto": offsets(rows),
        "metric_versions": {metric.name: metric.version for metric in METRICS},
    }


def write_conversations(path: Path, rows: list[dict[str, Any]] | None = None) -> RunDirectory:
    """A run directory with `duplex.json` and `duplex.jsonl`, and a stereo file of the first session."""
    rows = event_rows() if rows is None else rows
    run = RunDirectory(path)
    run.write_info(RunInfo(peer="agent", suite="duplex-en", created="2026-01-01T00:00:00Z", firstpacket="0", config={}))
    run.write_json("duplex.json", summary_of(rows))
    run.write_lines("duplex.jsonl", rows)
    (path / "stereo").mkdir()
    (path / "stereo" / f"{rows[0]['session']}.wav").write_bytes(b"")
    return run
