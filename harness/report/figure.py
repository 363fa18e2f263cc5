"""One metric as a reader sees it: its name, unit and meaning, its figures from `summary.json`, and how they print.

The figures themselves are computed by the scorers; nothing here does more than read and round them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from harness.report.failure import plain

DASH = "–"
"""Printed for a figure that does not exist."""
BEYOND = "> timeout"
"""Printed for a percentile that falls on a failed turn."""
P95_NEEDS, P99_NEEDS = 20, 100
"""Turns below which the scorers give no p95 and no p99 (timing definitions, section 2)."""


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """name: the key in `metrics.jsonl`. label, meaning: for people. headline: named at the top of the page. detail:
    left out of the terminal's table."""

    name: str
    label: str
    meaning: str = ""
    headline: bool = False
    detail: bool = False

    @property
    def unit(self) -> str:
        """`ms`, `s`, `count`, or nothing for ratios, by the name."""
        if self.name.startswith("stalls") or self.name == "unit_misses":
            return "count"
        tail = self.name.rpartition("_")[2]
        return tail if tail in ("ms", "s") else ""


KNOWN = (
    Metric(
        name="first_audible_ms",
        label="First audible sound",
        meaning="From the end of the user's speech to the first sound that a listener hears.",
        headline=True,
    ),
    Metric(
        name="first_packet_ms",
        label="First packet",
        meaning="From the last speech sent (commit in manual mode) to the first packet with answer audio.",
        headline=True,
    ),
    Metric(
        name="ttft_ms",
        label="TTFT",
        meaning="Time to first token: from the same start to the first text of the answer.",
        headline=True,
    ),
    Metric(
        name="endpoint_ms",
        label="Endpointing",
        meaning="From the end of the user's speech to the peer's word that it heard that end.",
    ),
    Metric(
        name="think_ms",
        label="Thinking",
        meaning="From endpoint or commit to the first packet: what is left without endpointing.",
    ),
    Metric(
        name="leading_silence_ms",
        label="Leading silence",
        meaning="From the first packet to the first audible sound: silence at the head of the answer.",
    ),
    Metric(
        name="rtf",
        label="RTF",
        meaning="Real-time factor: seconds to generate the answer over seconds of audio in it. Burst peers only.",
        headline=True,
    ),
    Metric(
        name="stream_rtf",
        label="Stream RTF",
        meaning="Time from first to last packet over the audio that came after the first packet.",
    ),
    Metric(name="generation_s", label="Generation", meaning="From the RTF anchor to the last packet."),
    Metric(name="response_s", label="Response", meaning="Seconds of answer audio received."),
    Metric(
        name="audio_s",
        label="Audio",
        meaning="Seconds of answer audio, those of unfinished answers included.",
        detail=True,
    ),
    Metric(name="stalls", label="Stalls", meaning="Gaps in the answer when it is played without a buffer."),
    Metric(name="stall_ms", label="Stall time", meaning="Total length of those gaps."),
    Metric(
        name="stalls_buffered",
        label="Stalls, buffered",
        meaning="The same with a jitter buffer (see parameters).",
        detail=True,
    ),
    Metric(name="stall_buffered_ms", label="Stall time, buffered", meaning="Total length of those.", detail=True),
    Metric(name="buffer_lead_ms", label="Buffer lead", meaning="How far ahead of playout packets arrive."),
    Metric(
        name="barge_in_stop_ms",
        label="Barge-in stop",
        meaning="From the user's interruption to the end of the answer, as heard.",
    ),
    Metric(
        name="wire_stop_ms",
        label="Wire stop",
        meaning="From the user's interruption to the last audio packet.",
    ),
    Metric(
        name="unit_lag_ms",
        label="Unit lag",
        meaning="Unit-locked models: from the send of a unit's last sample to that unit's answer, median of the turn.",
    ),
    Metric(name="unit_lag_p99_ms", label="Unit lag p99", meaning="The same, 99th percentile of the turn.", detail=True),
    Metric(name="unit_misses", label="Units missed", meaning="Units whose lag is longer than a unit.", detail=True),
    Metric(name="unit_miss_rate", label="Unit miss rate", meaning="Those over all units of the turn."),
    Metric(name="rtp_loss", label="RTP loss", meaning="RTP packets that never came, over those sent."),
    Metric(
        name="jitter_buffer_ms",
        label="Receive buffer",
        meaning="Mean wait of a packet in our own reorder buffer; in no other figure.",
    ),
    Metric(name="rtt_ms", label="Round trip", meaning="Network round trip by ping. Never subtracted."),
    Metric(name="connect_ms", label="Connect", meaning="DNS, TCP, TLS and upgrade. Never subtracted."),
    Metric(name="ready_ms", label="Ready", meaning="Until the peer says that the session exists."),
    Metric(name="since_ready_ms", label="Since ready", meaning="Age of the session when the turn began.", detail=True),
)
OWN = frozenset({"own_error_ms", "send_late_p99_ms"})
"""Figures of the harness itself; they have a table of their own."""
ANSWERED = ("ok", "cancelled")
"""Statuses of turns that the scorers take figures from."""
_BY_NAME = {metric.name: metric for metric in KNOWN}


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one metric over a run; None where the scorer gave none.

    intervals: 95 % intervals by statistic (`p50`, `p95`, `mean`). everyone: the same percentiles with failed turns as
    infinite; a percentile on a failed turn is `inf`.
    """

    metric: Metric
    n: int = 0
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    mean: float | None = None
    intervals: dict[str, tuple[float, float]] = msgspec.field(default_factory=dict)
    everyone: dict[str, float | None] = msgspec.field(default_factory=dict)

    def show(self, value: float | None) -> str:
        return number(value, self.metric.unit)

    def interval(self, statistic: str = "p50") -> str:
        """`low–high`, or a dash."""
        pair = self.intervals.get(statistic)
        return DASH if pair is None else f"{self.show(pair[0])}–{self.show(pair[1])}"

    def show_everyone(self, statistic: str) -> str:
        return self.show(self.everyone.get(statistic))


def metric_of(name: str) -> Metric:
    """The known metric of that name, or a plain one for a metric that a third party added."""
    return _BY_NAME.get(name) or Metric(name=name, label=name)


def figures(metrics: Mapping[str, Any]) -> list[Figure]:
    """The figures under `metrics` in a summary, known metrics first in their usual order."""
    names = [metric.name for metric in KNOWN if metric.name in metrics]
    names += [name for name in metrics if name not in _BY_NAME and name not in OWN]
    return [figure_of(name, metrics[name]) for name in names if isinstance(metrics[name], Mapping)]


def figure_of(name: str, raw: Mapping[str, Any]) -> Figure:
    """Read one entry of `summary.metrics`. `ci95` may be one pair (of the p50) or a pair for each statistic."""
    spread = raw.get("ci95") or {}
    pairs = spread if isinstance(spread, Mapping) else {"p50": spread}
    everyone = raw.get("percentiles_all") or {}
    return Figure(
        metric=metric_of(name),
        n=int(raw.get("n") or 0),
        p50=_float(raw.get("p50")),
        p90=_float(raw.get("p90")),
        p95=_float(raw.get("p95")),
        p99=_float(raw.get("p99")),
        mean=_float(raw.get("mean")),
        intervals={
            str(key): (float(pair[0]), float(pair[1]))
            for key, pair in pairs.items()
            if pair and len(pair) == 2 and None not in pair
        },
        everyone={str(key): _float(value) for key, value in everyone.items()},
    )


def number(value: float | None, unit: str = "") -> str:
    """A figure as printed everywhere: ms to 0.1 (whole from 10 s on), s to 0.01, ratios to 0.001.

    >>> number(1243.21, "ms"), number(None), number(0.25)
    ('1,243.2', '–', '0.250')
    """
    if value is None or math.isnan(value):
        return DASH
    if math.isinf(value):
        return BEYOND
    digits = {"ms": 0 if abs(value) >= 10_000 else 1, "s": 2, "count": 2}.get(unit, 3 if abs(value) < 100 else 1)
    return f"{value:,.{digits}f}"


class RunRtf(msgspec.Struct, frozen=True, kw_only=True):
    """RTF over a run for one anchor: seconds of generation over seconds of response, summed; and the mean of ratios."""

    anchor: str
    n: int
    rtf: float
    mean: float | None

    def __str__(self) -> str:
        beside = "" if self.mean is None else f"; mean of ratios {number(self.mean)}"
        return f"Run RTF from {self.anchor}: {number(self.rtf)} (sum over sum, n {self.n}){beside}"


def run_rtfs(summary: Mapping[str, Any]) -> list[RunRtf]:
    """`summary.rtf_by_anchor`; anchors are never mixed."""
    raw = summary.get("rtf_by_anchor") or {}
    return [
        RunRtf(anchor=str(anchor), n=int(entry["n"]), rtf=float(entry["rtf"]), mean=_float(entry.get("mean_of_ratios")))
        for anchor, entry in raw.items()
    ]


class StageFigure(msgspec.Struct, frozen=True, kw_only=True):
    """A stage of a local model's answers, in ms: `at` after the user's speech ended, `step` after the stage before."""

    name: str
    n: int
    at_p50: str
    at_p90: str
    step_p50: str


def stage_figures(summary: Mapping[str, Any]) -> list[StageFigure]:
    """`summary.stages`, in order."""
    found = []
    for name, entry in (summary.get("stages") or {}).items():
        at, step = entry["at_ms"], entry["step_ms"]
        shown = [number(_float(value)) for value in (at["p50"], at["p90"], step["p50"])]
        plainly = plain(str(name)).replace("_", " ")
        found.append(StageFigure(name=plainly, n=int(at["n"]), at_p50=shown[0], at_p90=shown[1], step_p50=shown[2]))
    return found


def fine(value: float | None) -> str:
    """Milliseconds of the harness's own error, to 0.01."""
    return DASH if value is None else f"{value:,.2f}"


def _float(value: Any) -> float | None:
    """A JSON figure: null is None; a word (`> timeout`, `inf`) stands for a percentile on a failed turn."""
    if value is None or isinstance(value, bool):
        return None
    return math.inf if isinstance(value, str) else float(value)
