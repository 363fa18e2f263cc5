"""Whether a session was held with a model whose weights are random: then its timing means something, its words do not.

A local model says so in its facts (`weights: random`), which are part of the peer's configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RANDOM = "random"
MARK = f"weights: {RANDOM}"
WHY_UNSCORED = f"{MARK}, so only its timing means anything"


def has_random_weights(config: Mapping[str, Any]) -> bool:
    """Whether the configuration of a peer (`Header.peer.config`) says that its weights are random."""
    facts = config.get("facts")
    return isinstance(facts, Mapping) and facts.get("weights") == RANDOM


def marked(label: str, config: Mapping[str, Any]) -> str:
    """A peer's label as its figures are shown with it: with the mark, if its weights are random."""
    return f"{label}, {MARK}" if has_random_weights(config) else label
