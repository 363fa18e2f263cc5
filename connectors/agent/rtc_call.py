"""One WebRTC call of the agent: answers an offer, hears the caller's RTP, speaks Opus packets at their instants."""

from __future__ import annotations

import asyncio
import contextlib
import fractions
from collections.abc import Callable
from typing import Any

import av
import numpy as np
from aiortc import RTCConfiguration, RTCPeerConnection, RTCRtpReceiver, RTCRtpSender, RTCSessionDescription
from aiortc.jitterbuffer import JitterFrame
from aiortc.rtp import RtpPacket
from av.audio.codeccontext import AudioCodecContext

from connectors.transports.ice_loopback import loopback_only
from harness.core.audio import PCM16_BYTES

RATE_HZ = 48_000
PACKET_MS = 20
PACKET_SAMPLES = RATE_HZ * PACKET_MS // 1000
STAMPS_KEPT = 2_000
"""Arrivals remembered until their packets have been decrypted."""
MAX_RTP_VERSION_BYTE = 0xBF

OnAudio = Callable[[bytes, int], None]
"""Called as (PCM16 mono at 48 kHz, t_ns) for every packet of the caller's audio."""
OnMessage = Callable[[bytes, int, bool], None]


class RtcCall:
    """One call. ready: the data channel is open. on_gone: called once when the caller is gone.

    Packets of the caller are decoded as they come: over loopback they come in order, and nothing is waited for.
    """

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._loop = asyncio.get_running_loop()
        self._pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._encoder = _opus("w")
        self._decoder = _opus("r")
        self._stamps: dict[tuple[int, int], int] = {}
        self._sequence = 0
        self._timestamp = 0
        self._sender: RTCRtpSender | None = None
        self._opus_type: int | None = None
        self._channel: Any = None
        self._closing: asyncio.Task[None] | None = None
        self.on_open: Callable[[], None] = lambda: None
        self.on_audio: OnAudio = lambda pcm, t_ns: None
        self.on_message: OnMessage = lambda data, t_ns, is_text: None
        self.on_gone: Callable[[], None] = lambda: None
        self._pc.on("datachannel", self._channel_came)
        self._pc.on("connectionstatechange", self._state_changed)

    async def answer(self, sdp: str) -> str:
        """The answer to an offer. Raises ValueError for an offer that cannot be read or brings no audio."""
        await self._pc.setRemoteDescription(RTCSessionDescription(sdp=sdp, type="offer"))
        transceivers = [each for each in self._pc.getTransceivers() if each.kind == "audio"]
        if not transceivers:
            raise ValueError("the offer has no audio")
        transceivers[0].direction = "sendrecv"
        self._sender = transceivers[0].sender
        self._tap(transceivers[0].receiver)
        with loopback_only():
            await self._pc.setLocalDescription(await self._pc.createAnswer())
        ice: Any = transceivers[0].receiver.transport.transport
        self._stamp_arrivals(ice._connection)
        return self._pc.localDescription.sdp

    def speak(self, pcm: bytes) -> tuple[int, int, int]:
        """Send 20 ms of PCM16 mono now; instants just before and after, and the bytes of the RTP packet."""
        frame = av.AudioFrame.from_ndarray(np.frombuffer(pcm, dtype=np.int16).reshape(1, -1), "s16", "mono")
        frame.sample_rate = RATE_HZ
        frame.pts = self._timestamp
        frame.time_base = fractions.Fraction(1, RATE_HZ)
        payload = b"".join(bytes(packet) for packet in self._encoder.encode(frame))
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
            _at_once(self._sender.transport._send_rtp(data))
        return before_ns, self._now_ns(), len(data)

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
        await self._pc.close()
        self.on_gone()

    def _channel_came(self, channel: Any) -> None:
        if self._channel is not None:
            return
        self._channel = channel
        channel.on("message", self._message_came)
        channel.on("close", self.hang_up)
        self.on_open()

    def _message_came(self, message: str | bytes) -> None:
        is_text = isinstance(message, str)
        self.on_message(message.encode() if isinstance(message, str) else message, self._now_ns(), is_text)

    async def _state_changed(self) -> None:
        if self._pc.connectionState in ("failed", "closed"):
            self.hang_up()

    def _payload_type(self) -> int:
        if self._opus_type is None:
            codecs = self._pc.getTransceivers()[0]._codecs
            self._opus_type = next(each.payloadType for each in codecs if each.mimeType.lower() == "audio/opus")
        assert self._opus_type is not None
        return self._opus_type

    def _stamp_arrivals(self, connection: Any) -> None:
        """Take the clock in the datagram's own callback; sequence and SSRC stand in the clear in an SRTP header."""
        passed_on = connection.data_received

        def received(data: bytes, component: int) -> None:
            t_ns = self._now_ns()
            if len(data) >= 12 and 0x80 <= data[0] <= MAX_RTP_VERSION_BYTE:
                if len(self._stamps) >= STAMPS_KEPT:
                    self._stamps.clear()
                self._stamps[int.from_bytes(data[8:12], "big"), int.from_bytes(data[2:4], "big")] = t_ns
            passed_on(data, component)

        connection.data_received = received

    def _tap(self, receiver: RTCRtpReceiver) -> None:
        """Put ourselves in the place of the receiver's jitter buffer: packets come as they arrive."""
        receiver._RTCRtpReceiver__jitter_buffer = self  # type: ignore[attr-defined]

    def add(self, packet: RtpPacket) -> tuple[bool, JitterFrame | None]:
        """The jitter buffer's one method: decode at once, keep nothing."""
        t_ns = self._stamps.pop((packet.ssrc, packet.sequence_number), 0) or self._now_ns()
        payload: bytes = packet._data  # type: ignore[attr-defined]
        if payload:
            with contextlib.suppress(av.FFmpegError):
                for frame in self._decoder.decode(av.Packet(payload)):
                    # Later, so that what goes wrong in hearing does not end aiortc's own task.
                    self._loop.call_soon(self.on_audio, _mono(frame), t_ns)
        return False, None


def _opus(direction: Any) -> AudioCodecContext:
    codec: Any = av.CodecContext.create("libopus", direction)
    codec.format, codec.layout, codec.sample_rate = "s16", "mono", RATE_HZ
    if direction == "w":
        codec.bit_rate = 64_000
        codec.time_base = fractions.Fraction(1, RATE_HZ)
        codec.options = {"application": "lowdelay", "frame_duration": str(PACKET_MS)}
    return codec  # type: ignore[no-any-return]


def _mono(frame: Any) -> bytes:
    samples = frame.to_ndarray().reshape(-1)
    channels = len(frame.layout.channels)
    if channels > 1:
        samples = samples.reshape(-1, channels).mean(axis=1)
    pcm: bytes = samples.astype("<i2").tobytes()
    return pcm


def _at_once(step: Any) -> None:
    """Run a coroutine that never waits: aiortc's send encrypts and hands the datagram over in one go."""
    try:
        step.send(None)
    except StopIteration:
        return
    step.close()
