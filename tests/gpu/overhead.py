"""What the harness adds to a local model: paired runs against the bare loop, stamps to arrivals, and bursts."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from harness.core.audio import NS_PER_S
from scoring.stats import Sample, describe, percentile
from tests.gpu.talk import Talk, talking

STREAM_MS = 20
RATIO_LIMIT, P99_LIMIT_MS = 1.01, 1.0
"""Gated on a GPU, reported elsewhere."""


async def overhead(settings: Mapping[str, Any], *, pairs: int, limit_s: float) -> dict[str, Any]:
    """An answer through the harness (worker, socket, user audio flowing) and one of the bare loop, in turn.

    Both processes hold the model all the while. The ratio is of the time in which the model made the whole answer,
    by the stamps of its own side, to that of the bare loop.
    """
    ratios, delivered = [], []
    with _bare_loop(settings) as bare:
        try:
            async with talking("tests.gpu.step_model:StepModel", settings) as talk:
                if await _line(bare) != "ready":
                    raise RuntimeError("the bare loop did not start")
                for index in range(pairs):
                    if index % 2:
                        without_ns, (with_ns, late_ms) = await _bare(bare), await _through(talk, limit_s)
                    else:
                        (with_ns, late_ms), without_ns = await _through(talk, limit_s), await _bare(bare)
                    ratios.append(with_ns / without_ns)
                    delivered += late_ms
        finally:
            bare.kill()
    found = describe(Sample(values=tuple(ratios)), digits=4)
    low, high = (found["ci95"]["p50"] or (None, None))[:2]
    return {
        "pairs": len(ratios),
        "ratio_p50": found["p50"],
        "ratio_ci95": [low, high],
        "stamp_to_arrival_p50_ms": round(percentile(delivered, 0.5), 4),
        "stamp_to_arrival_p99_ms": round(percentile(delivered, 0.99), 4),
        "events": len(delivered),
    }


async def burst(*, megabytes: int, samples: int = 24_000, limit_s: float) -> dict[str, Any]:
    """How long an answer of so many bytes takes from its first stamp to its last arrival, how late it gets, and what a
    packet of `samples` costs the model, which is stamped when it has left."""
    async with talking("tests.gpu.step_model:Burst", {"megabytes": megabytes, "samples": samples}) as talk:
        answer = await talk.ask(limit_s=limit_s)
    took_s = (answer.packets[-1].t_ns - answer.packets[0].produced_ns) / NS_PER_S
    made_us = (answer.packets[-1].produced_ns - answer.packets[0].produced_ns) / 1e3
    size = sum(2 * packet.samples for packet in answer.packets)
    return {
        "megabytes": round(size / 1e6, 1),
        "megabytes_per_s": round(size / 1e6 / took_s, 1),
        "late_p99_ms": round(percentile(answer.delivery_ms(), 0.99), 2),
        "us_a_packet": round(made_us / (len(answer.packets) - 1), 1),
    }


async def _through(talk: Talk, limit_s: float) -> tuple[int, list[float]]:
    answer = await talk.ask(limit_s=limit_s, stream_ms=STREAM_MS)
    # The first token's step began when the answer was asked for: it was idle before.
    return answer.done.produced_ns - answer.asked_ns, answer.delivery_ms()


def _bare_loop(settings: Mapping[str, Any]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.gpu.bare_loop", json.dumps(dict(settings))]
    pipe = subprocess.PIPE
    # Its own session, as the worker has: Linux shares processor time among sessions first.
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True)


async def _bare(process: subprocess.Popen[str]) -> int:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return int(await _line(process))


async def _line(process: subprocess.Popen[str]) -> str:
    """In a thread, so that the stage's time limit holds while a big model is waited for; ends with the process."""
    assert process.stdout is not None
    return (await asyncio.to_thread(process.stdout.readline)).strip()


def within_limits(found: Mapping[str, Any]) -> bool:
    return bool(found["ratio_p50"] <= RATIO_LIMIT and found["stamp_to_arrival_p99_ms"] <= P99_LIMIT_MS)
