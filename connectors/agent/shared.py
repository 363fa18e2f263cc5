"""What all sessions of one agent have in common."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from connectors.agent.brain import Brain
from connectors.agent.knobs import Knobs
from connectors.agent.plan import Plans
from connectors.agent.speech import Library
from connectors.agent.truth import Truth


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """Handed to every session. now_ns: the agent's clock. brain: what answers instead of the library."""

    knobs: Knobs
    library: Library
    plans: Plans
    truth: Truth
    now_ns: Callable[[], int]
    brain: Brain | None = None
