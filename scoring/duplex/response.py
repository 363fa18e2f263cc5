"""Answers to the user: how long after the user's end, and whether there is one at all."""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.duplex.metric import Censored, Metric, Scene, Value, to_ms

NO_CLAIM = Unscored(reason="the event asks for no answer")
OVERTAKEN = Unscored(reason="the user spoke on before an answer was due")
UNFINISHED = Censored(reason="listening ended before the user's speech did")


def fto(scene: Scene) -> Value:
    """Floor transfer offset: start of the answer - end of the user's speech; negative when the agent comes early.

    Censored where listening ended within `miss_ms` without an answer.
    """
    floor, index = scene.floor, scene.index
    if not floor.claims(index):
        return NO_CLAIM
    if floor.censored(scene.user):
        return UNFINISHED
    answer = floor.answers.get(index)
    if answer is not None:
        return to_ms(answer.start_ns - scene.user.end_ns)
    gone = missed(scene)
    if isinstance(gone, Censored):
        return Censored(reason=gone.reason, at_least_ns=floor.end_ns - scene.user.end_ns)
    return gone if gone is OVERTAKEN else Unscored(reason="no answer")


def response_latency(scene: Scene) -> Value:
    """`fto` of an event that began while the agent was silent."""
    if scene.floor.claims(scene.index) and scene.floor.holders[scene.index] is not None:
        return Unscored(reason="the agent was speaking at the onset: see post_interruption_latency_ms")
    return fto(scene)


def post_interruption(scene: Scene) -> Value:
    """`fto` of an event that began while the agent was speaking: the user interrupted it."""
    if scene.floor.claims(scene.index) and scene.floor.holders[scene.index] is None:
        return Unscored(reason="no interruption: the agent was silent at the onset")
    return fto(scene)


def missed(scene: Scene) -> Value:
    """Whether an event that asks for an answer (`respond`) gets none before the next claim.

    Unscored where the next claim came within `miss_ms` of the user's end, censored where listening ended by then.
    """
    floor, index = scene.floor, scene.index
    if not floor.claims(index):
        return NO_CLAIM
    if floor.censored(scene.user):
        return UNFINISHED
    if index in floor.answers:
        return False
    due_ns = scene.user.end_ns + floor.ns("miss")
    next_ns = floor.next_claim_ns(index)
    if next_ns is not None and next_ns < due_ns:
        return OVERTAKEN
    if floor.end_ns < due_ns:
        return Censored(reason="listening ended before an answer was due")
    return True


def missed_response(scene: Scene) -> Value:
    """`missed`, for events that demand an answer; a `stop` may be obeyed in silence."""
    if scene.floor.demands[scene.index] == "stop":
        return Unscored(reason="the event demands no answer")
    return missed(scene)


RESPONSE = Metric(
    name="response_latency_ms",
    version=1,
    unit="ms",
    direction="lower",
    statistic="median",
    header="response latency",
    compute=response_latency,
)
POST_INTERRUPTION = Metric(
    name="post_interruption_latency_ms",
    version=1,
    unit="ms",
    direction="lower",
    statistic="median",
    header="response after interruption",
    compute=post_interruption,
    offset_sensitive=True,
)
FTO = Metric(
    name="fto_ms",
    version=1,
    unit="ms",
    direction="none",
    statistic="median",
    header="floor transfer offset",
    compute=fto,
)
MISSED = Metric(
    name="missed_response",
    version=1,
    unit="flag",
    direction="lower",
    statistic="rate",
    header="missed responses",
    compute=missed_response,
)
