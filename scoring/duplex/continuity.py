"""What asks for no answer (a backchannel, a noise, somebody else's speech, a pause): does the agent go on as before?"""

from __future__ import annotations

from harness.core.scorer import Unscored
from scoring.duplex.interruption import BY_ITSELF, NOT_HEARD, STILL_SPEAKING
from scoring.duplex.metric import Censored, Metric, Scene, Value, to_ms

NOT_ASKED = Unscored(reason="the event does not ask the agent to go on")


def false_stop(scene: Scene) -> Value:
    """Whether an agent that should go on stops between the onset and `keep_ms` after the event's end."""
    floor, holder = scene.floor, scene.floor.holders[scene.index]
    if floor.demands[scene.index] != "keep_talking":
        return NOT_ASKED
    if holder is None:
        return NOT_HEARD
    if holder.end_ns > scene.user.end_ns + floor.ns("keep"):
        return False
    if floor.censored(holder):
        return Censored(reason=STILL_SPEAKING)
    return BY_ITSELF if holder.natural else True


def kept_talking(scene: Scene) -> Value:
    """The opposite of a false stop, for the user's backchannels."""
    if scene.user.kind != "backchannel":
        return Unscored(reason="no backchannel of the user")
    stopped = false_stop(scene)
    return not stopped if isinstance(stopped, bool) else stopped


def resumed(scene: Scene) -> Value:
    """Whether the agent speaks again within `resume_ms` of a false stop, before the user claims the floor."""
    found = resume(scene)
    if isinstance(found, float):
        return True
    if isinstance(found, Censored):
        return Censored(reason=found.reason)
    return False if found is NEVER else found


def resume(scene: Scene) -> Value:
    """Start of the agent's next utterance - its false stop."""
    stopped = false_stop(scene)
    if stopped is not True:
        return Unscored(reason="no false stop") if stopped is False else stopped
    floor, holder = scene.floor, scene.floor.holders[scene.index]
    assert holder is not None
    due_ns = holder.end_ns + floor.ns("resume")
    next_ns = floor.next_claim_ns(scene.index)
    following = floor.next_from(holder.end_ns)
    if following is not None and following.start_ns <= due_ns and (next_ns is None or following.start_ns < next_ns):
        return to_ms(following.start_ns - holder.end_ns)
    if next_ns is not None and next_ns < due_ns:
        return Unscored(reason="the user claimed the floor before the agent had resumed")
    if floor.end_ns < due_ns:
        return Censored(reason="listening ended before the agent had resumed", at_least_ns=floor.end_ns - holder.end_ns)
    return NEVER


NEVER = Unscored(reason="the agent did not resume")


def false_start(scene: Scene) -> Value:
    """Whether the agent takes the floor that nobody gave it.

    An event that claims the floor: it takes a pause in it for its end (`agent_interruptions` above 0). One that asks
    for silence: it starts between the onset and `stray_ms` after the end, or the next claim, and does not answer
    anything said before.
    """
    floor, user = scene.floor, scene.user
    if floor.claims(scene.index):
        return bool(floor.interruptions(scene.index))
    if floor.demands[scene.index] != "stay_silent":
        return Unscored(reason="the event does not ask for silence")
    if floor.holders[scene.index] is not None:
        return Unscored(reason="the agent was speaking at the onset, so what follows may be its next sentence")
    due_ns = user.end_ns + floor.ns("stray")
    next_ns = floor.next_claim_ns(scene.index)
    until_ns = due_ns if next_ns is None else min(due_ns, next_ns)
    if any(utterance not in floor.answering for utterance in floor.starts_between(user.start_ns, until_ns)):
        return True
    if floor.end_ns < until_ns:
        return Censored(reason="listening ended before the agent could have started")
    return False


KEPT_TALKING = Metric(
    name="kept_talking",
    version=1,
    unit="flag",
    direction="higher",
    statistic="rate",
    header="keeps talking",
    compute=kept_talking,
    offset_sensitive=True,
)
FALSE_STOP = Metric(
    name="false_stop",
    version=1,
    unit="flag",
    direction="lower",
    statistic="rate",
    header="false stops",
    compute=false_stop,
    offset_sensitive=True,
)
RESUMED = Metric(
    name="resumed",
    version=1,
    unit="flag",
    direction="higher",
    statistic="rate",
    header="resumes",
    compute=resumed,
    offset_sensitive=True,
)
RESUME = Metric(
    name="resume_ms",
    version=1,
    unit="ms",
    direction="lower",
    statistic="median",
    header="resume after false stop",
    compute=resume,
    offset_sensitive=True,
)
FALSE_START = Metric(
    name="false_start",
    version=1,
    unit="flag",
    direction="lower",
    statistic="rate",
    header="false starts",
    compute=false_start,
)
