"""Against the agent's voice in the user's microphone: three ways, and none with headphones.

A canceller suppresses the near end too while both speak, so that no barge-in can be measured with it; the guard lets
nothing through while the agent is heard. Either is told in the session's header.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np

from harness.core.audio import NS_PER_MS, Int16, ns_to_samples
from harness.core.errors import PrerequisiteError

Way = Literal["headphones", "guard", "cancel"]
TAIL_NS, PUSHED_TAIL_NS = 400 * NS_PER_MS, 100 * NS_PER_MS
"""How long the guard stays shut after the agent's last sound, beside the device's latencies: the room. With
push-to-talk the agent falls silent at the key, and what is said after it must not be lost."""
AUDIBLE = 33
"""Samples above this (-60 dBFS) are sound."""


class Echo(Protocol):
    """What is done to each captured block."""

    def clean(self, samples: Int16, played: Int16) -> Int16:
        """samples, played: int16 of shape (n,), captured and given to the device in the same block."""
        ...


class Headphones:
    """Nothing: no sound of the agent comes into the microphone."""

    def clean(self, samples: Int16, played: Int16) -> Int16:
        return samples


class Guard:
    """Half duplex: silence while the agent is heard, and shortly after."""

    def __init__(self, rate_hz: int, latency_ms: float = 0.0, tail_ns: int = TAIL_NS) -> None:
        self._tail = ns_to_samples(tail_ns + round(latency_ms * NS_PER_MS), rate_hz)
        self._shut = 0

    @property
    def shut(self) -> bool:
        return self._shut > 0

    def clean(self, samples: Int16, played: Int16) -> Int16:
        if len(played) and int(np.abs(played.astype(np.int32)).max()) > AUDIBLE:
            self._shut = self._tail
        if not self._shut:
            return samples
        self._shut = max(0, self._shut - len(samples))
        return np.zeros_like(samples)


class Canceller:
    """WebRTC's echo canceller (AEC3); -28 dB. Raises PrerequisiteError without the extra `aec`."""

    def __init__(self, rate_hz: int, latency_ms: float) -> None:
        try:
            from pywebrtc_audio import EchoCanceller
        except ImportError as exc:
            raise PrerequisiteError("echo cancellation needs the extra aec: pip install 'firstpacket[aec]'") from exc
        self._canceller: Any = EchoCanceller(sample_rate=rate_hz, num_channels=1, stream_delay_ms=round(latency_ms))
        self._block = rate_hz // 100

    def clean(self, samples: Int16, played: Int16) -> Int16:
        """Works on 10 ms at a time: a device's block is a multiple of that."""
        cleaned = [
            self._canceller.process(samples[at : at + self._block], played[at : at + self._block])
            for at in range(0, len(samples), self._block)
        ]
        return np.concatenate(cleaned) if cleaned else samples


def echo_of(way: Way, rate_hz: int, latency_ms: float, *, push_to_talk: bool = False) -> Echo:
    """latency_ms: of the device, out and in together."""
    if way == "cancel":
        return Canceller(rate_hz, latency_ms)
    if way == "headphones":
        return Headphones()
    return Guard(rate_hz, latency_ms, PUSHED_TAIL_NS if push_to_talk else TAIL_NS)


TOLD: dict[Way, str] = {
    "headphones": "",
    "guard": "the microphone was shut while the agent was heard (half duplex): nobody could interrupt it by speaking",
    "cancel": "echo cancellation was on, which suppresses the user while both speak: barge-in figures mean little",
}
"""What a reader of the recording must know."""
