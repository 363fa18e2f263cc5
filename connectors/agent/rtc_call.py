"""One WebRTC call of the agent: answers an offer, hears the caller's RTP, speaks Opus packets at their instants."""

from __future__ import annotations

from collections.abc import Callable

from aiortc.rtp import RtpPacket

from connectors.codecs.opus import OpusDecoder
from connectors.transports.answered_call import AnsweredCall
from connectors.transports.ice_loopback import loopback_only
from harness.core.audio import NS_PER_MS
from harness.core.clock import Clock

QUIET_NS = 100 * NS_PER_MS
"""A caller who sends no packet for so long (DTX, a microphone at rest) is silent: the agent hears silence."""

OnAudio = Callable[[bytes, int], None]
"""Called as (PCM16 mono at 48 kHz, t_ns of the datagram's read) for every packet of the caller's audio."""


class RtcCall(AnsweredCall):
    """One call over the loopback.

    Packets of the caller are decoded as they come: over loopback they come in order, and nothing is waited for.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock, loopback_only)
        self._decoder = OpusDecoder()
        self._heard_ns = 0
        self.on_audio: OnAudio = lambda pcm, t_ns: None
        self.on_packet = self._hear

    def speak(self, pcm: bytes) -> tuple[int, int, int]:
        """Send 20 ms; also hear 20 ms of silence for a caller who has spoken and now sends nothing."""
        now_ns = self._now_ns()
        if self._heard_ns and now_ns - self._heard_ns > QUIET_NS:
            self._loop.call_soon(self.on_audio, bytes(len(pcm)), now_ns)
        return super().speak(pcm)

    def _hear(self, packet: RtpPacket, t_ns: int, wire_bytes: int) -> None:
        self._heard_ns = t_ns
        payload: bytes = packet._data  # type: ignore[attr-defined]
        pcm = self._decoder.decode(payload) if payload else None
        if pcm:
            # Later, so that what goes wrong in hearing does not end aiortc's own task.
            self._loop.call_soon(self.on_audio, pcm, t_ns)
