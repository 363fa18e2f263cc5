"""Where a live session's user audio comes from: rate, latency, and how its instants are known. No device, no clock."""

from __future__ import annotations

from typing import Any

import msgspec


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """rate_hz: of the samples that come. latency_ns: from capture until a block is handed on, subtracted from each
    anchor. anchor: how instants are known, for `MediaAnchor.source`. facts: of the device, for the session's header."""

    rate_hz: int
    latency_ns: int = 0
    anchor: str
    facts: dict[str, Any] = msgspec.field(default_factory=dict)
