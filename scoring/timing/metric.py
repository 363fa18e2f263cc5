"""What a metric is: a declaration and a pure function of one turn. Each lives in a module of `scoring.timing.metrics`.

A third party adds one through the entry point group `firstpacket.timing_metrics`: a `Metric`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from harness.core.audio import NS_PER_MS, NS_PER_S
from harness.core.scorer import Unscored
from harness.core.session.header import Header
from scoring.timing.anchors import Anchors
from scoring.timing.timeline import Instant, Point
from scoring.timing.turn import Turn

Need = Literal["text", "packets", "burst", "media_time", "endpoint", "turn_end", "paced_send", "units", "rtp"]
"""What a session must offer for a metric to exist:

text: the peer sends text. packets: an answer has a first packet (no continuous peer). burst: audio comes as fast as it
is made. media_time: the query was streamed, not uploaded. endpoint: the peer finds the end of speech itself. turn_end:
somebody tells when the turn is over (commit or endpoint). paced_send: chunks had deadlines. units: the peer takes and
gives audio in units of a fixed length. rtp: the peer's audio comes as RTP packets.
"""

Value = float | int | str | bool | Mapping[str, Any] | Unscored
ANCHOR_BY_MODE = {"manual": "committed", "vad": "speech_sent", "upload": "speech_sent", "none": "speech_sent"}
"""Where ttft and first_packet start (timing definitions, section 2)."""


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """Recorded choices that figures rest on. taint_bound_ms: `own_error_ms` above it taints. loop_window_ms: how long
    before the output instant loop lag counts. jitter_buffer_ms: of the second playout model."""

    taint_bound_ms: float = 2.0
    loop_window_ms: int = 50
    jitter_buffer_ms: int = 100


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """One turn as metrics see it."""

    turn: Turn
    anchors: Anchors
    parameters: Parameters

    @property
    def header(self) -> Header:
        return self.turn.session.header

    @property
    def start(self) -> Point:
        """The start of ttft and first_packet: `committed` in manual mode, else `speech_sent`."""
        return self.anchors.get(ANCHOR_BY_MODE[self.header.mode])


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One column of `metrics.jsonl`.

    version: bumped when the formula changes; versions are never mixed. direction: which way is better, if either.
    needs: what the session must offer. header: for tables. scope: `answer` figures are lost when a turn fails; `event`
    figures exist where something happened; `turn` figures stand whatever became of the turn; `session` figures are the
    same for all turns of a session; `harness` figures tell of the measuring side.
    """

    name: str
    version: int
    unit: Literal["ms", "s", "ratio", "count", "label", "flag"]
    direction: Literal["lower", "higher", "none"]
    header: str
    compute: Callable[[Scene], Value]
    needs: tuple[Need, ...] = ()
    scope: Literal["answer", "event", "turn", "session", "harness"] = "answer"


_MISSING: dict[Need, tuple[Callable[[Header], bool], str]] = {
    "text": (lambda h: h.profile.text != "none", "the peer sends no text"),
    "packets": (lambda h: not h.profile.continuous, "continuous peer: its audio never stops"),
    "burst": (lambda h: h.profile.pacing == "burst", "the peer delivers at the pace of speech, so its RTF is about 1"),
    "media_time": (lambda h: h.mode != "upload", "upload: the query has no place on a media timeline"),
    "endpoint": (lambda h: h.mode in ("vad", "none"), "the peer does not look for the end of speech in this mode"),
    "turn_end": (lambda h: h.mode in ("manual", "vad"), "neither commit nor endpoint in this mode"),
    "paced_send": (lambda h: h.mode != "upload", "upload: chunks have no deadlines"),
    "units": (lambda h: h.profile.unit_ms is not None, "the peer works in no units of its own"),
    "rtp": (lambda h: h.profile.rtp, "the peer's audio does not come as RTP packets"),
}


def missing(metric: Metric, header: Header) -> Unscored | None:
    """Why a session can never have this metric; None when it can."""
    for need in metric.needs:
        offered, reason = _MISSING[need]
        if not offered(header):
            return Unscored(reason=reason)
    return None


def span_ms(start: Point, end: Point) -> float | Unscored:
    """`end` - `start` in ms, to 0.001; the reason of the first that is missing."""
    if isinstance(start, Unscored):
        return start
    if isinstance(end, Unscored):
        return end
    return ns_to_ms(end.t_ns - start.t_ns)


def ns_to_ms(duration_ns: int) -> float:
    """Milliseconds to 0.001: the nearest microsecond, halves to even."""
    return round(duration_ns, -3) / NS_PER_MS


def ns_to_s(duration_ns: int) -> float:
    """Seconds to 0.000001: the nearest microsecond, halves to even."""
    return round(duration_ns, -3) / NS_PER_S


def instant_ns(point: Point) -> int | None:
    return point.t_ns if isinstance(point, Instant) else None
