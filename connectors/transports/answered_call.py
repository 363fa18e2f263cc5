"""A WebRTC call as the side that answers holds it: packets handed on as they come, Opus sent at the very instant."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from aiortc import RTCConfiguration, RTCPeerConnection, RTCRtpReceiver, RTCRtpSender, RTCSessionDescription
from aiortc.jitterbuffer import JitterFrame
from aiortc.rtp import RtpPacket

from connectors.codecs.opus import OpusEncoder
from connectors.transports.rtp_stamp import DatagramStamps
from connectors.transports.rtp_voice import at_once
from connectors.transports.webrtc import close_peer, usable_sdp
from harness.core.audio import PCM16_BYTES
from harness.core.clock import Clock

BIT_RATE = 64_000
CONNECT_TIMEOUT_S = 30.0
"""A call whose data channel is not open by then is dropped."""

OnPacket = Callable[[RtpPacket, int, int], None]
"""Called as (packet, t_ns of its datagram's read, bytes of that datagram)."""
OnMessage = Callable[[bytes, int, bool], None]
"""Called as (message, t_ns of the read that completed it, is_text)."""


class AnsweredCall:
    """One call. on_open: called when the data channel is open. on_gone: called once when the caller is gone.

    addresses: a context in which candidates are gathered (`ice_loopback`). on_packet returns at once, and does not
    raise: it runs in aiortc's own task.
    """

    def __init__(self, clock: Clock, addresses: Callable[[], AbstractContextManager[None]]) -> None:
        self._clock = clock
        self._addresses = addresses
        self._now_ns = clock.now_ns
        self._loop = asyncio.get_running_loop()
        self._pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._encoder = OpusEncoder(bit_rate=BIT_RATE, application="lowdelay")
        self._stamps: DatagramStamps | None = None
        self._sequence = 0
        self._timestamp = 0
        self._sender: RTCRtpSender | None = None
        self._opus_type: int | None = None
        self._channel: Any = None
        self._closing: asyncio.Task[None] | None = None
        self._deadline = self._loop.call_later(CONNECT_TIMEOUT_S, self.hang_up)
        self.on_open: Callable[[], None] = lambda: None
        self.on_packet: OnPacket = lambda packet, t_ns, wire_bytes: None
        self.on_message: OnMessage = lambda data, t_ns, is_text: None
        self.on_gone: Callable[[], None] = lambda: None
        self._pc.on("datachannel", self._channel_came)
        self._pc.on("connectionstatechange", self._state_changed)

    async def answer(self, sdp: str) -> str:
        """The answer to an offer. Raises ValueError for an offer that cannot be read or brings no audio."""
        sdp = usable_sdp(sdp)
        await self._pc.setRemoteDescription(RTCSessionDescription(sdp=sdp, type="offer"))
        transceivers = [each for each in self._pc.getTransceivers() if each.kind == "audio"]
        if not transceivers:
            raise ValueError("the offer has no audio")
        transceivers[0].direction = "sendrecv"
        self._sender = transceivers[0].sender
        self._tap(transceivers[0].receiver)
        self._stamps = DatagramStamps(transceivers[0].receiver.transport.transport, self._clock)
        with self._addresses():
            await self._pc.setLocalDescription(await self._pc.createAnswer())
        return self._pc.localDescription.sdp

    def speak(self, pcm: bytes) -> tuple[int, int, int]:
        """Send 20 ms of PCM16 mono now; instants just before and after, and the bytes of the RTP packet."""
        (payload,) = self._encoder.encode(pcm)
        packet = RtpPacket(
            payload_type=self._payload_type(), sequence_number=self._sequence, timestamp=self._timestamp & 0xFFFFFFFF
        )
        assert self._sender is not None
        packet.ssrc, packet.payload = self._sender._ssrc, payload
        self._sequence = (self._sequence + 1) & 0xFFFF
        self._timestamp += len(pcm) // PCM16_BYTES
        data = packet.serialize()
        before_ns = self._now_ns()
        with contextlib.suppress(ConnectionError):
            at_once(self._sender.transport._send_rtp(data))
        return before_ns, self._now_ns(), len(data)

    @property
    def lookahead_samples(self) -> int:
        """How far sound lies behind in the packets, at 48 kHz."""
        return self._encoder.lookahead_samples

    def write(self, text: bytes) -> tuple[int, int]:
        """Send one text message over the data channel."""
        before_ns = self._now_ns()
        if self._channel is not None and self._channel.readyState == "open":
            self._channel.send(text.decode())
        return before_ns, self._now_ns()

    def hang_up(self) -> None:
        """End the call without waiting."""
        if self._closing is None:
            self._closing = self._loop.create_task(self._close())

    async def closed(self) -> None:
        """Hang up and wait until everything is released."""
        self.hang_up()
        assert self._closing is not None
        await self._closing

    async def _close(self) -> None:
        self._deadline.cancel()
        try:
            await close_peer(self._pc)
        finally:
            self.on_gone()

    def _channel_came(self, channel: Any) -> None:
        if self._channel is not None:
            return
        self._channel = channel
        self._deadline.cancel()
        channel.on("message", self._message_came)
        channel.on("close", self.hang_up)
        self.on_open()

    def _message_came(self, message: str | bytes) -> None:
        is_text = isinstance(message, str)
        self.on_message(message.encode() if isinstance(message, str) else message, self._read_ns(), is_text)

    async def _state_changed(self) -> None:
        if self._pc.connectionState in ("failed", "closed"):
            self.hang_up()

    def _payload_type(self) -> int:
        if self._opus_type is None:
            codecs = self._pc.getTransceivers()[0]._codecs
            self._opus_type = next(each.payloadType for each in codecs if each.mimeType.lower() == "audio/opus")
        assert self._opus_type is not None
        return self._opus_type

    def _read_ns(self) -> int:
        return (self._stamps.read_ns if self._stamps is not None else 0) or self._now_ns()

    def _tap(self, receiver: RTCRtpReceiver) -> None:
        """Put ourselves in the place of the receiver's jitter buffer: packets come as they arrive."""
        receiver._RTCRtpReceiver__jitter_buffer = self  # type: ignore[attr-defined]

    def add(self, packet: RtpPacket) -> tuple[bool, JitterFrame | None]:
        """The jitter buffer's one method: hand it on, keep nothing."""
        self.on_packet(packet, self._read_ns(), self._stamps.read_bytes if self._stamps is not None else 0)
        return False, None
