"""Generation time and length of an answer, and the ratio of the two: what `generation_s`, `response_s`, `rtf` share."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from harness.core.audio import samples_to_ns
from harness.core.events import AudioReceived
from harness.core.scorer import Unscored
from scoring.timing.metric import Scene, ns_to_s
from scoring.timing.timeline import Instant, Point


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """generation_ns: last packet - anchor. audio_ns: length of the answer. missing: why there is neither."""

    anchor: str = ""
    generation_ns: int = 0
    audio_ns: int = 0
    missing: Unscored | None = None

    def seconds(self) -> float | Unscored:
        return self.missing or ns_to_s(self.generation_ns)

    def audio_seconds(self) -> float | Unscored:
        return self.missing or ns_to_s(self.audio_ns)

    def ratio(self) -> float | Unscored:
        """To 0.000001."""
        return self.missing or round(self.generation_ns / self.audio_ns, 6)

    def label(self) -> str | Unscored:
        return self.missing or self.anchor


def generation(scene: Scene) -> Generation:
    """Over all used responses of a turn; they must all have completed."""
    turn = scene.turn
    if not turn.used:
        return Generation(missing=_reason(scene.anchors.last_packet, "no answer with audio"))
    if not all(response.completed for response in turn.used):
        return Generation(missing=Unscored(reason="the answer was not completed"))
    anchor, start = _anchor(scene)
    last = scene.anchors.last_packet
    if not isinstance(start, Instant) or not isinstance(last, Instant):
        return Generation(missing=_reason(start, "no anchor"))
    return Generation(anchor=anchor, generation_ns=last.t_ns - start.t_ns, audio_ns=audio_ns(turn.packets))


def audio_ns(packets: Iterable[AudioReceived]) -> int:
    """Length of the packets' audio: samples are summed by rate first, so that no rounding adds up."""
    by_rate: dict[int, int] = {}
    for packet in packets:
        by_rate[packet.rate_hz] = by_rate.get(packet.rate_hz, 0) + packet.samples
    return sum(samples_to_ns(samples, rate_hz) for rate_hz, samples in by_rate.items())


def _anchor(scene: Scene) -> tuple[str, Point]:
    anchors = scene.anchors
    if scene.header.mode == "manual":
        return "committed", anchors.committed
    if scene.header.mode == "upload":
        return "upload", anchors.speech_sent
    if isinstance(anchors.endpoint, Instant):
        return "endpoint", anchors.endpoint
    return "speech_sent", anchors.speech_sent


def _reason(point: Point, otherwise: str) -> Unscored:
    return point if isinstance(point, Unscored) else Unscored(reason=otherwise)
