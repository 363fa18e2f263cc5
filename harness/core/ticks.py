"""Ticks: who sounds in each 200 ms of a conversation, the form in which tau-voice keeps its conversations.

What is read from its files lives in `tick_files`, what is computed from ticks in the `tau` preset.
Source of the format: sierra-research/tau2-bench, full-duplex simulations.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from harness.core.audio import NS_PER_MS

TICK_NS = 200 * NS_PER_MS
"""Length of a tick where nobody names another (tau-voice's default)."""
BACKCHANNEL = "backchannel"
"""Action of the simulated user in the first tick of a backchannel."""
EffectKind = Literal["vocal_tic", "non_directed", "burst_noise", "muffling"]


class Effect(msgspec.Struct, frozen=True):
    """A sound on the user's channel beside the user's turns."""

    kind: EffectKind
    text: str = ""


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """user, agent: whether the side has speech in this tick. action: what the simulated user decided in it."""

    user: bool = False
    agent: bool = False
    action: str = ""
    effects: tuple[Effect, ...] = ()


class Trajectory(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation in ticks of `tick_ns`, all of one length, from its start on."""

    name: str
    ticks: tuple[Tick, ...]
    tick_ns: int = TICK_NS
    task: str = ""
    domain: str = ""
    provider: str = ""
    model: str = ""
