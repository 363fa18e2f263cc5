"""Measuring the stopwatch: its figures against a peer whose true instants are known on the same clock.

The embedded agent answers at a scripted sample and logs when it read each packet and just before it wrote each one.
error = reported first_packet - (agent's first audio write - agent's read of the anchor packet). It is never negative:
it holds the way of the anchor packet to the agent, the way of the answer back, and what the stopwatch adds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from harness import __version__
from harness.core.connector import PeerOptions
from harness.core.errors import ConfigError, HarnessError
from harness.core.events import AudioSent, LoopLag, SessionReady
from harness.core.run_directory import RunDirectory
from harness.run.bench import BenchRequest, run_async, run_bench
from harness.run.calibration import store_calibration
from harness.run.calibration_query import CalibrationQuery
from harness.run.drift import drift_ns
from harness.run.machine import machine_facts
from harness.run.plan import PlanOptions
from harness.run.progress import duration
from harness.run.quiet import Priority, priority
from harness.run.replay import score
from harness.run.sentinel import HostNoise
from harness.run.session_plan import SessionOptions
from harness.run.suite import SuiteOptions

SCHEMA = 1
GOALS: dict[str, dict[str, float]] = {
    "1": {"error_p50": 0.3, "error_p99": 1.0, "late_p99": 0.75},
    "many": {"error_p50": 0.25, "error_p99": 1.0, "late_p99": 0.5},
    "tls": {"error_p50": 0.5, "error_p99": 1.5, "late_p99": 0.75},
}
"""Milliseconds, on a quiet host: what was reached by a prototype, with some room."""
QUERY_MS = {"one": 300, "many": 1500}
ANSWER_S = {"one": 0.2, "many": 1.5}
DRIFT_CHUNKS = 30_000
"""Ten minutes of 20 ms chunks."""


Verdict = Literal["met", "missed", "host noise", "too few"]
P99_NEEDS = 100
"""Below this many values a p99 is their maximum, more or less: not given."""


class CalibrateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """sessions: one row for each number at once. samples: answers timed a row. minutes: of a real-time stream."""

    sessions: tuple[int, ...] = (1, 50)
    samples: int = 200
    tls: bool = True
    minutes: float = 0.0
    priority: Priority = "normal"
    out: Path | None = None


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row of figures, ms; p99 needs 100 answers. verdict: `met`; `missed`, on a host whose sentinel was quiet;
    `host noise`, missed on one whose was not; `too few` answers to tell."""

    name: str
    sessions: int
    n: int
    error_p50: float | None
    error_p99: float | None
    error_max: float | None
    sends: int
    early_sends: int
    late_p50: float
    late_p99: float
    loop_lag_p99: float | None
    host: HostNoise
    goal: dict[str, float]
    verdict: Verdict


def run_calibrate(request: CalibrateRequest, say: Callable[[str], None]) -> dict[str, Any]:
    """Run every row, keep the figures for later runs, and return them. Raises HarnessError."""
    if request.out is not None and request.out.exists() and any(request.out.iterdir()):
        raise ConfigError(f"--out {request.out}: exists and is not empty; name a new directory")
    with ExitStack() as stack:
        if request.out is None:
            root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="firstpacket-calibrate-")))
        else:
            root = request.out
        rows = [_row(request, count, False, root, say) for count in request.sessions]
        if request.tls:
            rows.append(_row(request, 1, True, root, say))
        if request.minutes:
            rows.append(_stream(request, root, say))
    figures = msgspec.to_builtins(
        {
            "schema": SCHEMA,
            "firstpacket": __version__,
            "machine": run_async(lambda: _machine(request.priority)),
            "priority": request.priority,
            "rows": rows,
            "drift_ns": drift_ns(DRIFT_CHUNKS),
            "drift_chunks": DRIFT_CHUNKS,
        }
    )
    assert isinstance(figures, dict)
    if all(row.n >= P99_NEEDS for row in rows):  # a quick look does not replace figures that mean something
        store_calibration(figures)
    if request.out is not None:
        RunDirectory(request.out).write_json("calibration.json", figures)
    return figures


async def _machine(asked: Priority) -> dict[str, Any]:
    with priority(asked):
        return machine_facts()


def _row(request: CalibrateRequest, count: int, tls: bool, root: Path, say: Callable[[str], None]) -> Row:
    size = "one" if count == 1 else "many"
    query = CalibrationQuery(QUERY_MS[size])
    repeat = -(-max(request.samples, 2 * count) // count) * count
    name = f"{count} session{'s' if count > 1 else ''}{', TLS' if tls else ''}"
    say(f"{name}: {repeat} answers, about {duration(repeat / count * (QUERY_MS[size] / 1000 + ANSWER_S[size] + 0.3))}")
    directory = root / name.replace(", ", "-").replace(" ", "-").lower()
    truth = directory.with_suffix(".truth.jsonl")
    truth.parent.mkdir(parents=True, exist_ok=True)
    truth.unlink(missing_ok=True)
    settings = {
        "endpointer": "scripted",
        "endpoint_sample": str(query.speech_end),
        "think_ms": "20",
        "text": "none",
        "delivery": "paced",
        "chunk_ms": "20",
        "answer_s": str(ANSWER_S[size]),
        "truth": str(truth),
        "tls": str(tls).lower(),
        "realtime": str(request.priority == "realtime").lower(),
    }
    bench = BenchRequest(
        options=PeerOptions(settings=settings),
        suite=SuiteOptions(
            session=SessionOptions(timeout_s=10.0),
            plan=PlanOptions(repeat=repeat, warmup=count),
            concurrency=count,
        ),
        out=directory,
        priority=request.priority,
        sentinel=request.priority,
        show_progress=False,
    )
    run = _hold(bench, query)
    return _figures(name, count, _errors_ms(run, truth, query.speech_end), run, "tls" if tls else None)


def _hold(bench: BenchRequest, query: CalibrationQuery) -> RunDirectory:
    outcome = run_bench(bench, query.id, [query], {"pack": "calibration", "sha256": query.sha256})
    if outcome.result is None:
        raise KeyboardInterrupt
    directory: RunDirectory = outcome.directories[0]
    return directory


def _figures(name: str, count: int, errors_ms: list[float], run: RunDirectory, goal: str | None) -> Row:
    host = msgspec.convert(run.read_lines("noise.jsonl")[-1], HostNoise)
    late_ns, lag_ns = _lateness(run)
    target = GOALS[goal or ("1" if count == 1 else "many")]
    reached = {
        "error_p50": _percentile(errors_ms, 50),
        "error_p99": _percentile(errors_ms, 99),
        "late_p99": _percentile([ns / 1e6 for ns in late_ns], 99) or 0.0,
    }
    early = sum(ns < 0 for ns in late_ns)
    verdict: Verdict = "too few"
    if None not in reached.values() or not errors_ms:  # a stream has no answers to time: its sends are judged
        judged = [(figure, target[key]) for key, figure in reached.items() if figure is not None]
        met = not early and all(figure <= bound for figure, bound in judged)
        verdict = "met" if met else "missed" if host.quiet else "host noise"
    return Row(
        name=name,
        sessions=count,
        n=len(errors_ms),
        error_p50=reached["error_p50"],
        error_p99=reached["error_p99"],
        error_max=round(max(errors_ms), 3) if errors_ms else None,
        sends=len(late_ns),
        early_sends=early,
        late_p50=_percentile([ns / 1e6 for ns in late_ns], 50) or 0.0,
        late_p99=reached["late_p99"] or 0.0,
        loop_lag_p99=_percentile([ns / 1e6 for ns in lag_ns], 99),
        host=host,
        goal=target,
        verdict=verdict,
    )


def _errors_ms(run: RunDirectory, truth: Path, anchor_sample: int) -> list[float]:
    """Reported minus true first-packet interval of every turn that is not warm-up, ms."""
    reported = {
        row["session"]: row["first_packet_ms"]
        for row in score(run).rows
        if not row["warmup"] and row["first_packet_ms"] is not None
    }
    true_ns = _true_intervals(truth, anchor_sample)
    errors: list[float] = []
    for session in run.load():
        name = session.header.session
        connection = next((event.peer_session for event in session.of(SessionReady)), "")
        if name in reported and connection in true_ns:
            errors.append(reported[name] - true_ns[connection] / 1e6)
    if not errors:
        raise HarnessError("calibration got no answer from the embedded agent; `firstpacket bench` shows why")
    return errors


def _true_intervals(truth: Path, anchor_sample: int) -> dict[str, int]:
    """For each of the agent's sessions: first audio write minus read of the anchor packet, ns."""
    anchor: dict[int, int] = {}
    written: dict[int, int] = {}
    for line in truth.read_bytes().splitlines():
        record = msgspec.json.decode(line, type=dict[str, Any])
        if record["type"] == "append" and record["end_sample"] >= anchor_sample:
            anchor.setdefault(record["conn"], record["t_ns"])
        elif record["type"] == "write" and record["kind"] == "audio" and record["samples"]:
            written.setdefault(record["conn"], record["before_ns"])
    return {f"sess_{conn}": written[conn] - anchor[conn] for conn in written if conn in anchor}


def _lateness(run: RunDirectory) -> tuple[list[int], list[int]]:
    """Send lateness (started - planned) and loop lag of all sessions that are not warm-up, ns."""
    late: list[int] = []
    lag: list[int] = []
    for session in run.load():
        if not session.header.warmup:
            late += [event.started_ns - event.planned_ns for event in session.of(AudioSent)]
            lag += [event.max_lag_ns for event in session.of(LoopLag)]
    return late, lag


def _stream(request: CalibrateRequest, root: Path, say: Callable[[str], None]) -> Row:
    """One stream of `request.minutes` in real time: is its end as punctual as its beginning?"""
    say(f"a stream of {request.minutes:g} min in real time")
    query = CalibrationQuery(round(request.minutes * 60_000))
    directory = root / "stream"
    settings = {"endpointer": "scripted", "endpoint_sample": str(query.speech_end), "text": "none", "answer_s": "0.2"}
    bench = BenchRequest(
        options=PeerOptions(settings=settings),
        out=directory,
        priority=request.priority,
        sentinel=request.priority,
        show_progress=False,
    )
    return _figures(f"stream of {request.minutes:g} min", 1, [], _hold(bench, query), None)


def _percentile(values: list[float], q: float) -> float | None:
    if not values or (q == 99 and len(values) < P99_NEEDS):
        return None
    return round(float(np.percentile(values, q)), 3)
