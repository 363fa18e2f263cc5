"""What the page needs of a WebRTC call. Made by `connectors.transports.browser_call`, handed in by the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from harness.core.audio import Int16
from harness.core.clock import Clock


class Call(Protocol):
    """One browser's call. on_sound: (samples, int16 of shape (n,) at `rate_hz`; when their packet was read; whether
    some before them are lost). latency_ns: how far the sound lies behind in its packets."""

    rate_hz: int
    latency_ns: int
    filled_samples: int
    on_open: Callable[[], None]
    on_gone: Callable[[], None]
    on_sound: Callable[[Int16, int, bool], None]

    @property
    def lost(self) -> int:
        """Packets of the microphone that never came."""
        ...

    async def answer(self, sdp: str) -> str:
        """Take the browser's offer. Raises whatever a bad one leads to."""
        ...

    def play(self, samples: Int16) -> None:
        """Send 20 ms now."""
        ...

    async def closed(self) -> None:
        """Hang up, and wait until everything is released."""
        ...


NewCall = Callable[[Clock], Call]
