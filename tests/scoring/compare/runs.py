"""Runs for comparing, written by hand: rows and a summary, no sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from harness.core.run_directory import RunDirectory, RunInfo

METRIC_NAMES = ("ttft_ms", "first_packet_ms", "first_audible_ms", "endpoint_ms", "rtf")
VERSIONS = dict.fromkeys(METRIC_NAMES, 1)
PARAMETERS = {"taint_bound_ms": 2.0, "audibility": {"threshold_db": -40.0, "hold_ms": 50}}


def turn(query: str, first_packet_ms: float | None, *, repeat: int = 0, **more: Any) -> dict[str, Any]:
    """A row; without a latency, of a turn that timed out."""
    ok = first_packet_ms is not None
    return {
        "session": f"{repeat:05d}-{query}",
        "query": query,
        "repeat": repeat,
        "status": "ok" if ok else "timeout",
        "failed": not ok,
        "warmup": False,
        "first_packet_ms": first_packet_ms,
        "rtt_ms": 1.0,
    } | more


def turns(shift_ms: float = 0.0, *, seed: int, queries: int = 24, noise_ms: float = 5.0) -> list[dict[str, Any]]:
    """Latencies that differ a lot between queries, and by noise of `seed` between runs of one query."""
    own = np.random.default_rng(0).normal(800, 150, queries)
    noise = np.random.default_rng(seed).normal(0, noise_ms, queries)
    return [turn(f"q{k:02d}", round(float(own[k] + noise[k] + shift_ms), 3)) for k in range(queries)]


def write_run(path: Path, rows: list[dict[str, Any]], *, peer: str = "", **summary: Any) -> Path:
    """A run directory with `metrics.jsonl` and `summary.json`; summary: parts of it that differ from the usual."""
    run = RunDirectory(path)
    info = RunInfo(peer=peer or path.name, suite="s", created="2026-01-01T00:00:00Z", firstpacket="0", config={})
    run.write_info(info)
    run.write_lines("metrics.jsonl", rows)
    run.write_json(
        "summary.json",
        {
            "peer": info.peer,
            "mode": "vad",
            "turns": len(rows),
            "failed": sum(bool(row["failed"]) for row in rows),
            "metric_versions": VERSIONS,
            "parameters": PARAMETERS,
            "harness": {"error_ms": {"p50": 0.2}, "tainted": 0, "noise": {"quiet": True}},
            "metrics": {},
        }
        | summary,
    )
    return path
