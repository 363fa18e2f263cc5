"""tau-voice: the conversation in ticks of 200 ms.

Figures: L_R_s, L_Y_s (means, s), R_R, R_Y, I_A, S_BC, S_VT, S_ND; `tau_panel` has the rules and the windows. Every
time is a multiple of 200 ms, and a tick that sound touches counts whole: a side seems to begin up to 200 ms early and
to end up to 200 ms late. Latencies so come out up to 400 ms shorter; an answer within the user's last tick is booked as
an interruption by the agent, one in the tick after as none at all. Trajectories of tau-voice itself also count silent
bytes as speech; our spans do not. Figures over fewer than 10 events are hidden.
Source: tau2-bench, `docs/interaction-metrics.md`; timing definitions, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence

from scoring.duplex.presets.material import NO_CONVERSATION, Material
from scoring.duplex.presets.preset import Figure, Measured, Preset, Value
from scoring.duplex.presets.tau_panel import SYMBOLS, events_of, panel_of
from scoring.duplex.presets.tau_ticks import quantised

_FIGURE_OF = {
    "response": "R_R",
    "yield": "R_Y",
    "backchannel": "S_BC",
    "vocal_tic": "S_VT",
    "non_directed": "S_ND",
    "agent_interrupts": "I_A",
}
_LATENCY_OF = {"response": "L_R_s", "yield": "L_Y_s"}


def compute(materials: Sequence[Material]) -> Measured:
    spoken = [(m.conversation, m.name, _tick_ns(m)) for m in materials if m.conversation is not None]
    if not spoken:
        absent: dict[str, Figure] = dict.fromkeys(SYMBOLS, NO_CONVERSATION)
        return Measured(figures=absent, n=dict.fromkeys(SYMBOLS, 0))
    trajectories = [quantised(conversation, name, tick_ns) for conversation, name, tick_ns in spoken]
    values: list[Value] = []
    for trajectory, (conversation, name, _) in zip(trajectories, spoken, strict=True):
        for event in events_of(trajectory):
            at_ns = conversation.begin_ns + event.tick * trajectory.tick_ns
            good = 1.0 if event.good or event.kind == "agent_interrupts" else 0.0
            found = {_FIGURE_OF[event.kind]: good}
            if event.latency_s is not None:
                found[_LATENCY_OF[event.kind]] = event.latency_s
            for figure, value in found.items():
                values.append(Value(session=name, event=event.kind, at_ns=at_ns, figure=figure, value=value))
    panel = panel_of(trajectories)
    return Measured(figures=dict(panel.shown()), n=panel.n(), values=tuple(values))


def _tick_ns(material: Material) -> int | None:
    """The length of a tick that the recording came with, where it came in ticks."""
    header = material.recording.session.header if material.recording is not None else None
    tick_ns = header.config.get("tick_ns") if header is not None and header.imported == "tau2" else None
    return tick_ns if isinstance(tick_ns, int) and tick_ns > 0 else None


PRESET = Preset(
    name="tau",
    source="tau-voice (tau2-bench, voice interaction metrics 1.0)",
    says=(
        "Who speaks in each 200 ms tick decides everything: latencies are whole ticks, rounded towards overlap, and "
        "what the agent ignores or yields to is judged in windows of 1 and 2 s."
    ),
    figures=tuple(SYMBOLS),
    compute=compute,
)
