"""A conversation in ticks of 200 ms, as tau-voice would have kept it; `tau_panel` has what is computed from ticks."""

from __future__ import annotations

from harness.core.ticks import BACKCHANNEL, TICK_NS, Effect, EffectKind, Tick, Trajectory
from scoring.duplex.spans import Conversation, Span

_SPEECH_KINDS = {"turn": "generate_message", "backchannel": BACKCHANNEL}
"""Kinds of user spans that are speech to tau-voice, with the action that their first tick carries."""
_EFFECT_KINDS: dict[str, EffectKind] = {
    "tic": "vocal_tic",
    "non_directed": "non_directed",
    "other_speaker": "non_directed",
}
"""Kinds that are effects to it; any other sound counts as `burst_noise`, which no figure looks at."""


def quantised(conversation: Conversation, name: str = "", tick_ns: int | None = None) -> Trajectory:
    """A conversation in ticks: a side speaks in every tick that one of its spans touches, be it by a nanosecond.

    User spans of kind `turn` and `backchannel` are speech; the others are effects, marked on the tick in which they
    begin, as trajectories do. tick_ns: of a conversation that was in ticks of this length; its effects stood in every
    tick that they fill (None: ticks of 200 ms).
    """
    whole = tick_ns is not None
    tick_ns = tick_ns or TICK_NS
    origin_ns = conversation.begin_ns
    count = -(-(conversation.end_ns - origin_ns) // tick_ns)
    user, agent = [False] * count, [False] * count
    actions = [""] * count
    effects: list[tuple[Effect, ...]] = [()] * count

    def touched(span: Span) -> range:
        first = max(0, (span.start_ns - origin_ns) // tick_ns)
        return range(first, min(count, max(first, -(-(span.end_ns - origin_ns) // tick_ns))))

    for span in conversation.agent:
        for index in touched(span):
            agent[index] = True
    for sound in conversation.user:
        ticks = touched(sound)
        if not ticks:
            continue
        if sound.kind in _SPEECH_KINDS:
            actions[ticks[0]] = actions[ticks[0]] or _SPEECH_KINDS[sound.kind]
            for index in ticks:
                user[index] = True
        else:
            for index in ticks if whole else ticks[:1]:
                effects[index] += (Effect(_EFFECT_KINDS.get(sound.kind, "burst_noise"), sound.event),)
    made = zip(user, agent, actions, effects, strict=True)
    return Trajectory(
        name=name, tick_ns=tick_ns, ticks=tuple(Tick(user=u, agent=a, action=d, effects=e) for u, a, d, e in made)
    )
