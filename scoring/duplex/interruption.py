"""The user starts to speak while the agent does: when the agent stops, and how long both are heard."""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.duplex.metric import Censored, Metric, Scene, Value, to_ms
from scoring.duplex.spans import Span, clip, overlap_ns

NOT_HEARD = Unscored(reason="the agent was not heard at the onset")
NO_CLAIM = Unscored(reason="the event does not claim the floor")
BY_ITSELF = Unscored(reason="the answer ended by itself")
STILL_SPEAKING = "listening ended while the agent was speaking"


def stop(scene: Scene) -> Value:
    """Barge-in stop as heard: end of the utterance that held the floor at the onset - onset.

    That end is the earliest of its natural end and a flush that drops sound. An onset at or after it is no event.
    """
    floor, holder = scene.floor, scene.floor.holders[scene.index]
    if not floor.claims(scene.index):
        return NO_CLAIM
    if holder is None:
        return NOT_HEARD
    if floor.censored(holder):
        return Censored(reason=STILL_SPEAKING, at_least_ns=floor.end_ns - scene.user.start_ns)
    return to_ms(holder.end_ns - scene.user.start_ns)


def wire_stop(scene: Scene) -> Value:
    """Barge-in stop on the wire: last audio packet of the responses begun before the onset - onset."""
    floor, onset_ns = scene.floor, scene.user.start_ns
    if not floor.claims(scene.index):
        return NO_CLAIM
    if floor.holders[scene.index] is None:
        return NOT_HEARD
    if floor.conversation.wire is None:
        return Unscored(reason="nothing is known of packets, or they never stop")
    last_ns = max((sent.end_ns for sent in floor.conversation.wire if sent.start_ns < onset_ns), default=onset_ns)
    if last_ns <= onset_ns:
        return Unscored(reason="no audio packet arrived after the interruption")
    return to_ms(last_ns - onset_ns)


def yielded(scene: Scene) -> Value:
    """Whether the agent stops within `yield_within_ms` of the onset, for a reason other than having said it all.

    The user's falling silent is no yield of the agent's.
    """
    floor, holder = scene.floor, scene.floor.holders[scene.index]
    if not floor.claims(scene.index):
        return NO_CLAIM
    if holder is None:
        return NOT_HEARD
    due_ns = scene.user.start_ns + floor.ns("yield_within")
    if holder.end_ns > due_ns:
        return False
    if floor.censored(holder):
        return Censored(reason=STILL_SPEAKING)
    return BY_ITSELF if holder.natural else True


def talk_over(scene: Scene) -> Value:
    """How long the utterance that held the floor at the onset is heard during the event."""
    floor, holder = scene.floor, scene.floor.holders[scene.index]
    if not floor.claims(scene.index):
        return NO_CLAIM
    if holder is None:
        return NOT_HEARD
    heard = floor.heard_during(scene.user)
    return _shared(scene, [part for span in heard if (part := clip(span, holder.start_ns, holder.end_ns))])


def overlap(scene: Scene) -> Value:
    """How long the agent is heard during the event, whatever it says."""
    return _shared(scene, scene.floor.heard_during(scene.user))


def _shared(scene: Scene, spoken: list[Span]) -> Value:
    shared_ns = overlap_ns(scene.user, spoken)
    if scene.floor.censored(scene.user):
        return Censored(reason="listening ended during the event", at_least_ns=shared_ns)
    return to_ms(shared_ns)


STOP = Metric(
    name="stop_ms",
    version=1,
    unit="ms",
    direction="lower",
    statistic="median",
    header="barge-in stop, heard",
    compute=stop,
    offset_sensitive=True,
)
WIRE_STOP = Metric(
    name="wire_stop_ms",
    version=1,
    unit="ms",
    direction="lower",
    statistic="median",
    header="barge-in stop, wire",
    compute=wire_stop,
    offset_sensitive=True,
)
YIELDED = Metric(
    name="yielded",
    version=1,
    unit="flag",
    direction="higher",
    statistic="rate",
    header="yields",
    compute=yielded,
    offset_sensitive=True,
)
TALK_OVER = Metric(
    name="talk_over_ms",
    version=1,
    unit="ms",
    direction="lower",
    statistic="median",
    header="talk-over",
    compute=talk_over,
    offset_sensitive=True,
)
OVERLAP = Metric(
    name="overlap_ms",
    version=1,
    unit="ms",
    direction="none",
    statistic="median",
    header="overlap",
    compute=overlap,
    offset_sensitive=True,
)
