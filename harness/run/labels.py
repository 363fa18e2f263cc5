"""Labels that tell the peers of one run apart: on a clash each says which of its settings differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from harness.core.commands import Configure
from harness.core.connector import Connection, Peer, Sink
from harness.core.profile import Profile

WORDS = (str, int, float, bool)
"""Types of settings that a label can hold."""


class Named:
    """A peer under another label; all else is its own."""

    def __init__(self, peer: Peer, label: str) -> None:
        self._peer = peer
        self.label = label
        self.kind = peer.kind
        self.version = peer.version
        self.ignores: tuple[str, ...] = getattr(peer, "ignores", ())

    @property
    def profile(self) -> Profile:
        return self._peer.profile

    @property
    def config(self) -> dict[str, Any]:
        return self._peer.config

    async def __aenter__(self) -> Self:
        await self._peer.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._peer.__aexit__(kind, error, trace)

    async def connect(self, configure: Configure, sink: Sink) -> Connection:
        return await self._peer.connect(configure, sink)


def distinct(peers: Sequence[Peer]) -> list[Any]:
    """The peers in their order, none with the label of another; those that are alike in all are numbered."""
    counts = Counter(peer.label for peer in peers)
    labels = [_with_differences(peer, peers) if counts[peer.label] > 1 else peer.label for peer in peers]
    named: list[Any] = []
    taken: set[str] = set()
    for peer, label in zip(peers, labels, strict=True):
        free, number = label, 1
        while free in taken:
            number += 1
            free = f"{label} #{number}"
        taken.add(free)
        named.append(peer if free == peer.label else Named(peer, free))
    return named


def _with_differences(peer: Peer, peers: Sequence[Peer]) -> str:
    twins = [other.config for other in peers if other.label == peer.label]
    own = peer.config
    said = [
        f"{key}={value}"
        for key, value in own.items()
        if isinstance(value, WORDS) and any(twin.get(key) != value for twin in twins)
    ]
    return f"{peer.label} ({', '.join(said)})" if said else peer.label
