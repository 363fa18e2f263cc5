"""The sending side of an audio track: Opus made ahead, one datagram for each packet at the very instant of `send`.

aiortc's own sender paces a track by itself; here the runner does. Sequence number and timestamp are given at the
instant of sending: after a pause the timestamp has moved on with the time that passed, as a microphone's would.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Coroutine
from typing import Any

from aiortc import MediaStreamTrack

from connectors.codecs.opus import PACKET_SAMPLES, RATE_HZ, OpusEncoder
from harness.core.audio import NS_PER_MS, PCM16_BYTES, ns_to_samples, samples_to_ns
from harness.core.clock import Clock
from harness.core.errors import ConfigError, ConnectorError

PAUSE_NS = 60 * NS_PER_MS
"""No packet for so long: the stream had stopped."""
TAIL_PACKETS = 6
"""Packets of silence after a stream that ends with a commit: receivers hold some back (aiortc's four) until more
come, and would never hear the last words."""

_HEADER = struct.Struct("!BBHII")
_VERSION_2 = 0x80
_MARKER = 0x80


class SilentTrack(MediaStreamTrack):
    """The track that is offered. It never has a frame, so that aiortc sends none."""

    kind = "audio"

    async def recv(self) -> Any:
        return await asyncio.get_running_loop().create_future()


class RtpVoice:
    """Our audio. sender: aiortc's `RTCRtpSender` of a negotiated track; payload_type: of Opus."""

    def __init__(self, sender: Any, payload_type: int, clock: Clock) -> None:
        self._sender = sender
        self._payload_type = payload_type
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._encoder = OpusEncoder()
        self._sequence = 0  # below 32768, else a wrap among the first packets would break the decryption (RFC 3711)
        self._timestamp = 0
        self._sent_ns: int | None = None
        self._short = False
        self._tail: asyncio.TimerHandle | None = None

    def encode(self, pcm: bytes) -> list[bytes]:
        """Packets of 20 ms for PCM16 at 48 kHz; the last chunk of a stream may be shorter.

        Raises ConfigError for a stream of chunks that are no multiples of 20 ms.
        """
        if self._short:
            raise ConfigError("Opus goes out in packets of 20 ms: take a multiple of it for --chunk-ms")
        self._short = len(pcm) % (PACKET_SAMPLES * PCM16_BYTES) != 0
        return self._encoder.encode(pcm)

    def send(self, payload: bytes) -> None:
        """One packet leaves now. Raises ConnectorError when the connection is gone."""
        now_ns = self._clock.now_ns()
        marker = 0
        if self._sent_ns is None or now_ns - self._sent_ns > PAUSE_NS:
            marker = _MARKER
            missed_ns = 0 if self._sent_ns is None else now_ns - self._sent_ns - samples_to_ns(PACKET_SAMPLES, RATE_HZ)
            self._timestamp += ns_to_samples(missed_ns, RATE_HZ) // PACKET_SAMPLES * PACKET_SAMPLES
        header = _HEADER.pack(
            _VERSION_2,
            marker | self._payload_type,
            self._sequence & 0xFFFF,
            self._timestamp & 0xFFFFFFFF,
            self._sender._ssrc,
        )
        self._sequence += 1
        self._timestamp += PACKET_SAMPLES
        self._sent_ns = now_ns
        try:
            at_once(self._sender.transport._send_rtp(header + payload))
        except (ConnectionError, OSError) as exc:
            raise ConnectorError("the connection is closed", kind="connect", retryable=True) from exc

    def end_stream(self) -> None:
        """The stream ends for now: let a little silence follow, at its pace, unless the stream goes on."""
        self._short = False
        self.stop()
        if self._sent_ns is not None:
            self._tail = self._loop.call_later(PACKET_SAMPLES / RATE_HZ, self._trail, TAIL_PACKETS, self._sequence)

    def stop(self) -> None:
        if self._tail is not None:
            self._tail.cancel()
            self._tail = None

    def _trail(self, left: int, sequence: int) -> None:
        self._tail = None
        if sequence != self._sequence:  # the stream goes on
            return
        (silence,) = self._encoder.encode(bytes(PACKET_SAMPLES * PCM16_BYTES))
        try:
            self.send(silence)
        except ConnectorError:
            return
        if left > 1:
            self._tail = self._loop.call_later(PACKET_SAMPLES / RATE_HZ, self._trail, left - 1, self._sequence)


def at_once(step: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that never waits, as aiortc's send: it encrypts and hands the datagram to the socket."""
    try:
        step.send(None)
    except StopIteration:
        return
    step.close()
    raise ConnectorError("the way to the peer does not take a datagram at once", kind="connect")
