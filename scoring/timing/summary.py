"""`summary.json`: a run's rows put together.

Figures rest on the rows of turns that were answered (`ok`, `cancelled`), warm-ups left out; `percentiles_all` counts
every failed turn as infinite. Session figures count once a session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from harness.core.audibility import Audibility
from harness.core.audio import NS_PER_MS
from harness.core.errors import SessionFormatError
from harness.core.events import AudioSent, LoopLag, TurnEnded
from harness.core.run_directory import RunInfo
from harness.core.session.reader import Session
from harness.core.weights_mark import MARK, has_random_weights
from scoring.stats import RESAMPLES, SEED, Int64, Sample, describe, describe_values
from scoring.timing.listener import JOIN_NS
from scoring.timing.matrix import run_matrix
from scoring.timing.metric import Metric, Parameters
from scoring.timing.remarks import remarks
from scoring.timing.stages import stage_figures
from scoring.timing.status import WORDS

SCHEMA = 1
ANSWERED = ("ok", "cancelled")
"""Statuses whose rows stand for answers."""
_APART = ("ttft_ms", "first_packet_ms", "first_audible_ms", "think_ms")
"""Figures that are also given by language."""
_DIGITS = {"ms": 3, "s": 6, "ratio": 6, "count": 3}
"""Digits kept, by unit."""

Row = Mapping[str, Any]

NOISE_KEYS = ("p50_ms", "p99_ms", "max_ms")


class Tally:
    """What a summary needs of the sessions beside their rows; takes one session at a time, keeps only numbers."""

    def __init__(self, noise: Sequence[Row] = ()) -> None:
        self._noise = noise
        self.sessions = 0
        self.warmups = 0
        self.dropped = 0
        self.seen: set[str] = set()
        self.moved: set[str] = set()
        """Sessions that took over from others which their peer ended too soon."""
        self._late: list[Int64] = []
        self._lag: list[Int64] = []
        self._notes: Counter[tuple[str, str]] = Counter()
        self._labels: Counter[str] = Counter()
        self._random = False

    def take(self, session: Session) -> None:
        """Count one session; a warm-up is counted as such and in no figure."""
        self.seen.add(session.header.session)
        self.moved |= {event.moved_to for event in session.of(TurnEnded) if event.moved_to}
        if session.header.warmup:
            self.warmups += 1
            return
        self.sessions += 1
        self.dropped += session.header.dropped
        self._labels[session.header.peer.label] += 1
        self._random = self._random or has_random_weights(session.header.peer.config)
        if session.header.mode != "upload":
            self._late.append(_int64([e.started_ns - e.planned_ns for e in session.of(AudioSent)]))
        self._lag.append(_int64([e.max_lag_ns for e in session.of(LoopLag)]))
        self._notes.update(remarks(session))

    @property
    def peer(self) -> str:
        return ", ".join(self._labels)

    def named(self, label: str) -> str:
        """`label` as it stands over every figure: with the mark of random weights, if a session had them."""
        return f"{label}, {MARK}" if self._random else label

    def harness(self, rows: Sequence[Row]) -> dict[str, Any]:
        """The `harness` part: what is known of our own error."""
        late = np.concatenate(self._late) if self._late else _int64([])
        errors = [row["own_error_ms"] for row in rows if row["own_error_ms"] is not None]
        return {
            "send_late_ms": spread(late / NS_PER_MS),
            "loop_lag_ms": spread(np.concatenate(self._lag) / NS_PER_MS if self._lag else []),
            "error_ms": spread(errors),
            "tainted": sum(bool(row["tainted"]) for row in rows),
            "sends": len(late),
            "early_sends": int((late < 0).sum()),
            "late_sends": sum(row["late_sends"] for row in rows),
            "dropped": self.dropped,
            "noise": host_noise(self._noise),
        }

    def notes(self) -> list[dict[str, Any]]:
        """Every note once, with the number of sessions that have it."""
        return [
            {"code": code, "message": message, "sessions": count}
            for (code, message), count in sorted(self._notes.items())
        ]


def summarize(
    rows: Sequence[Row],
    tally: Tally,
    metrics: Sequence[Metric],
    *,
    info: RunInfo | None,
    parameters: Parameters,
    rule: Audibility,
) -> dict[str, Any]:
    """The summary of a run. rows: all, warm-ups included; they are left out here."""
    counted = [row for row in rows if not row["warmup"]]
    status = Counter(row["status"] for row in counted)
    later = [row for row in counted if row["turn_index"] > 0]
    tainted = any(row["tainted"] for row in counted)
    stages = stage_figures([row for row in counted if row["status"] in ANSWERED])
    return {
        "schema": SCHEMA,
        "peer": tally.named(info.peer if info else tally.peer),
        "suite": info.suite if info else "",
        "mode": ", ".join(sorted({row["mode"] for row in counted})),
        "turns": len(counted),
        "status": {word: status.get(word, 0) for word in WORDS},
        "failed": sum(row["failed"] for row in counted),
        "metrics": figures(counted, metrics),
        "harness": tally.harness(counted),
        "calibration": info.calibration if info else None,
        "rtf_by_anchor": rtf_by_anchor(counted),
        **({"stages": stages} if stages else {}),
        "untainted": group([row for row in counted if not row["tainted"]], metrics) if tainted else None,
        "first_turns": group([row for row in counted if row["turn_index"] == 0], metrics) if later else None,
        "later_turns": group(later, metrics) if later else None,
        "languages": by_language(counted, metrics),
        "definitions": run_matrix(row for row in counted if row["status"] in ANSWERED),
        "sessions": tally.sessions,
        "missing_sessions": missing_sessions(info, tally),
        "warmups": tally.warmups,
        "early_turns": sum(row["early"] > 0 for row in counted),
        "late_packets": sum(row["late_packets"] for row in counted),
        "text_order": ", ".join(sorted({row["text_order"] for row in counted})),
        "timeout_s": _timeout_s(info),
        "notes": tally.notes(),
        "parameters": _parameters(parameters, rule),
        "metric_versions": {metric.name: metric.version for metric in metrics},
    }


class _Stretch(msgspec.Struct):
    """A line of `noise.jsonl`, as far as it is used."""

    n: int
    quiet: bool
    p50_ms: float
    p99_ms: float
    max_ms: float


def host_noise(stretches: Sequence[Row]) -> dict[str, Any] | None:
    """What the sentinel saw beside the run: the worst of its stretches (a resumed run has several); None: not known.

    Raises SessionFormatError for lines that no sentinel wrote.
    """
    known = [stretch for stretch in stretches if stretch.get("p99_ms") is not None]
    if not known:
        return None
    try:
        msgspec.convert(known, list[_Stretch])
    except msgspec.ValidationError as exc:
        raise SessionFormatError(f"noise.jsonl: {exc}") from exc
    worst = max(known, key=lambda stretch: float(stretch["p99_ms"]))
    quiet = all(stretch["quiet"] for stretch in known)
    return {"quiet": quiet, "n": sum(stretch["n"] for stretch in known), **{k: worst[k] for k in NOISE_KEYS}}


def figures(rows: Sequence[Row], metrics: Sequence[Metric], *, intervals: bool = True) -> dict[str, Any]:
    """One entry a numeric metric, in the order of columns."""
    found = {}
    for metric in metrics:
        if metric.unit not in _DIGITS:
            continue
        sample = sample_of(rows, metric)
        entry = describe(sample, digits=_DIGITS[metric.unit], interval=intervals)
        if intervals and (metric.scope != "answer" or metric.direction != "lower"):
            entry["percentiles_all"] = None
        found[metric.name] = entry
    return found


def sample_of(rows: Sequence[Row], metric: Metric) -> Sample:
    """The values of one metric with their queries, and how many failed turns should have had one.

    Answer figures: rows of answered turns; each failed turn without such a row counts as failed, unless its session
    could never have had the metric. Session figures: one row a session. Others: every row that has a value.
    """
    if metric.scope == "session":
        rows = list({row["session"]: row for row in reversed(rows)}.values())[::-1]
    answer = metric.scope == "answer"
    valued = [row for row in rows if row[metric.name] is not None and (not answer or row["status"] in ANSWERED)]
    lost = 0
    if answer:
        kept = {id(row) for row in valued}
        lost = sum(row["failed"] and metric.name not in row["undefined"] and id(row) not in kept for row in rows)
    return Sample(
        values=tuple(float(row[metric.name]) for row in valued),
        clusters=tuple(str(row["query"]) for row in valued),
        failed=lost,
    )


def group(rows: Sequence[Row], metrics: Sequence[Metric]) -> dict[str, Any]:
    """Figures of a part of the rows, without intervals."""
    return {"turns": len(rows), "metrics": figures(rows, metrics, intervals=False)}


def rtf_by_anchor(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """For each RTF anchor: n, sums of generation_s and response_s, rtf = their ratio, and the mean of the ratios."""
    found = {}
    for anchor in sorted({row["rtf_anchor"] for row in rows if row["rtf_anchor"]}):
        own = [row for row in rows if row["rtf_anchor"] == anchor and row["status"] in ANSWERED]
        if not own:
            continue
        generation_s, response_s = sum(row["generation_s"] for row in own), sum(row["response_s"] for row in own)
        found[anchor] = {
            "n": len(own),
            "generation_s": round(generation_s, 6),
            "response_s": round(response_s, 6),
            "rtf": round(generation_s / response_s, 6),
            "mean_of_ratios": round(sum(row["rtf"] for row in own) / len(own), 6),
        }
    return found


def by_language(rows: Sequence[Row], metrics: Sequence[Metric]) -> dict[str, dict[str, Any]]:
    """For each language of the queries: turns, failed, and the main latencies without intervals."""
    shown = [metric for metric in metrics if metric.name in _APART]
    found = {}
    for language in sorted({row["language"] for row in rows}):
        own = [row for row in rows if row["language"] == language]
        entry = {"failed": sum(row["failed"] for row in own), **group(own, shown)}
        found[language or "unknown"] = entry
    return found


def missing_sessions(info: RunInfo | None, tally: Tally) -> int:
    """Sessions that were planned, or were to take over from others, and are not there (a run that was broken off)."""
    return len({*info.planned, *tally.moved} - tally.seen) if info else 0


def spread(values: npt.ArrayLike) -> dict[str, Any]:
    """n, p50, p90, p95, p99, mean, min, max of figures in ms."""
    return describe_values(np.asarray(values, dtype=np.float64))


def _timeout_s(info: RunInfo | None) -> float | None:
    """The time limit of a turn, where `run.json` has it (at the top or among the session options)."""
    config = info.config if info else {}
    session = config.get("session")
    value = session.get("timeout_s") if isinstance(session, dict) else config.get("timeout_s")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _parameters(parameters: Parameters, rule: Audibility) -> dict[str, Any]:
    return {
        **msgspec.structs.asdict(parameters),
        "audibility": msgspec.structs.asdict(rule),
        "utterance_join_ms": JOIN_NS // NS_PER_MS,
        "bootstrap": {"resamples": RESAMPLES, "seed": SEED, "clusters": "query", "level": 0.95},
        "rounding": "ms to 0.001, s and ratios to 0.000001, halves to even",
    }


def _int64(values: Sequence[int]) -> Int64:
    return np.asarray(values, dtype=np.int64)
