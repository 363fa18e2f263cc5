"""A WebRTC call as a client holds it: one audio track both ways, one data channel, arrivals stamped as they are read.

Text messages travel on the data channel, binary ones are our audio (PCM16 mono at 48 kHz) on the track. aiortc does
ICE, DTLS, SRTP and SCTP; pacing, ordering and decoding are ours (`rtp_voice.py`, `rtp_audio.py`, `reorder.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Awaitable, Callable
from typing import Any

from aiortc import (
    RTCBundlePolicy,
    RTCConfiguration,
    RTCIceServer,
    RTCPeerConnection,
    RTCRtpReceiver,
    RTCSessionDescription,
)
from aiortc.exceptions import InvalidStateError

from connectors.transports.ice_loopback import loopback_only
from connectors.transports.rtp_audio import RtpAudio
from connectors.transports.rtp_stamp import DatagramStamps, StunProbe
from connectors.transports.rtp_voice import RtpVoice, SilentTrack
from harness.core.audio import NS_PER_MS
from harness.core.clock import Clock
from harness.core.connector import Sink
from harness.core.errors import ConfigError, ConnectorError, PrerequisiteError
from harness.core.events import ClosedBy, Phase

CLOSE_TIMEOUT_S = 3.0
MAX_CANDIDATES = 200
"""Addresses that a description may name: aioice sorts all pairs with each, thousands would stop the loop for long."""
BUFFER_MS = 40
"""How long a packet waits for one that is missing before it: two packets of 20 ms."""

OnMessage = Callable[[bytes, bool, int, int], None]
OnClosed = Callable[[int, ClosedBy, int | None, str], None]
Exchange = Callable[[str], Awaitable[str]]
"""Takes our offer to the peer and brings its answer (SDP both)."""

_PIECE = struct.Struct("!?I")
"""Prepared bytes are a row of pieces: whether it is audio, its length, itself."""


class WebRtcTransport:
    """One call. Made by `open_webrtc`; `prepare`, `write` and the rest as a `connectors.session.Transport`."""

    def __init__(self, pc: RTCPeerConnection, label: str, *, clock: Clock, sink: Sink, buffer_ms: int) -> None:
        self._pc = pc
        self._clock = clock
        self._transceiver: Any = pc.addTransceiver(SilentTrack(), direction="sendrecv")
        self._transceiver.setCodecPreferences(_opus_only())
        self._channel = pc.createDataChannel(label)
        ice = self._transceiver.receiver.transport.transport
        self._stamps = DatagramStamps(ice, clock)
        self._audio = RtpAudio(self._stamps, clock, sink, buffer_ms * NS_PER_MS)
        _replace_jitter_buffer(self._transceiver.receiver, self._audio)
        self._ice = ice
        self._voice: RtpVoice | None = None
        self._probe: StunProbe | None = None
        self._waiting: list[Callable[[int], None]] = []
        self._closing = False
        self._gone = False
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.on_message: OnMessage = lambda data, is_text, t_ns, first_byte_ns: None
        self.on_closed: OnClosed = lambda t_ns, by, code, reason: None
        self.on_rtt: Callable[[int, int], None] = lambda t_ns, rtt_ns: None
        self.hang_up: Callable[[], Awaitable[None]] | None = None
        """Tells the peer that the call is over; whatever it raises of ConnectorError is let go."""
        self._on_connected: Callable[[int], None] = lambda t_ns: None
        self._channel.on("open", self._channel_opened)
        self._channel.on("message", self._message_came)
        self._channel.on("bufferedamountlow", self._drained)
        self._channel.on("close", lambda: self._ended("peer", "the peer closed the data channel"))
        pc.on("connectionstatechange", self._state_changed)

    async def dial(self, exchange: Exchange, *, loopback: bool, on_connected: Callable[[int], None]) -> None:
        """Offer, answer, ICE and DTLS; returns when the data channel is open. Raises ConnectorError."""
        with loopback_only() if loopback else contextlib.nullcontext():
            await self._pc.setLocalDescription(await self._pc.createOffer())
        answer = await exchange(self._pc.localDescription.sdp)
        try:
            answer = usable_sdp(answer)
            await self._pc.setRemoteDescription(RTCSessionDescription(sdp=answer, type="answer"))
            codec = next(each for each in self._transceiver._codecs if each.mimeType.lower() == "audio/opus")
        except Exception as exc:
            why = str(exc) or type(exc).__name__
            raise ConnectorError(f"the peer's SDP answer cannot be used: {why}", kind="protocol") from exc
        if self._transceiver.currentDirection != "sendrecv":
            raise ConnectorError("the peer's SDP answer does not take and send audio", kind="protocol")
        self._voice = RtpVoice(self._transceiver.sender, codec.payloadType, self._clock)
        self._on_connected = on_connected
        if self._pc.connectionState == "connected":
            on_connected(self._clock.now_ns())
        await self._opened
        self._probe = StunProbe(self._ice, self._clock, lambda t_ns, rtt_ns: self.on_rtt(t_ns, rtt_ns))

    def prepare(self, message: str | bytes) -> bytes:
        """Text for the data channel; bytes are audio, encoded here and now, none at all end the stream for now.

        Raises ConfigError for odd chunk sizes.
        """
        if isinstance(message, str):
            text = message.encode()
            return _PIECE.pack(False, len(text)) + text
        if not message:
            return _PIECE.pack(True, 0)
        assert self._voice is not None
        return b"".join(_PIECE.pack(True, len(packet)) + packet for packet in self._voice.encode(message))

    def write(self, frames: bytes) -> int:
        """Hand everything over now; return the data channel's bytes that are still waiting (audio never waits)."""
        if self._gone or self._closing or self._channel.readyState != "open" or self._voice is None:
            raise ConnectorError("the connection is closed", kind="connect", retryable=True)
        at, pending = 0, 0
        while at < len(frames):
            is_audio, length = _PIECE.unpack_from(frames, at)
            piece = frames[at + _PIECE.size : at + _PIECE.size + length]
            at += _PIECE.size + length
            if is_audio and piece:
                self._voice.send(piece)
            elif is_audio:
                self._voice.end_stream()
            else:
                pending = self._say(piece.decode())
        return pending

    def when_drained(self, callback: Callable[[int], None]) -> None:
        """Call `callback(t_ns)` once the data channel has nothing waiting."""
        if self._channel.bufferedAmount == 0:
            callback(self._clock.now_ns())
        else:
            self._waiting.append(callback)

    def ping(self) -> None:
        """Ask for a round trip by STUN."""
        if self._probe is not None and not self._gone:
            with contextlib.suppress(OSError):
                self._probe.ask()

    async def close(self) -> None:
        """Hang up and release everything; again and on a dead call harmless."""
        if self._closing:
            return
        self._closing = True
        if self._voice is not None:
            self._voice.stop()
        try:
            with contextlib.suppress(ConnectorError, TimeoutError):
                if self.hang_up is not None and not self._gone:
                    async with asyncio.timeout(CLOSE_TIMEOUT_S):
                        await self.hang_up()
        finally:
            await close_peer(self._pc)
            self._audio.stop()
            self._ended("us", "")

    def _say(self, text: str) -> int:
        try:
            self._channel.send(text)
        except (InvalidStateError, ConnectionError, ValueError) as exc:
            raise ConnectorError(f"the data channel does not take the message: {exc}", kind="connect") from exc
        return self._channel.bufferedAmount

    def _channel_opened(self) -> None:
        if not self._opened.done():
            self._opened.set_result(None)

    def _message_came(self, message: str | bytes) -> None:
        t_ns = self._stamps.read_ns or self._clock.now_ns()
        data = message.encode() if isinstance(message, str) else message
        self.on_message(data, isinstance(message, str), t_ns, 0)

    def _drained(self) -> None:
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback(self._clock.now_ns())

    def _state_changed(self) -> None:
        state = self._pc.connectionState
        if state == "connected":
            self._on_connected(self._clock.now_ns())
        elif state == "failed":
            self._ended("network", "no path to the peer, or it stopped answering")
        elif state == "closed":
            self._ended("peer", "the peer closed the connection")

    def _ended(self, by: ClosedBy, reason: str) -> None:
        if self._gone or (self._closing and by != "us"):
            return
        self._gone = True
        if not self._opened.done():
            self._opened.set_exception(ConnectorError(f"WebRTC: {reason}", kind="connect", retryable=True))
            self._opened.exception()  # seen: no warning when nobody waits
        self.on_closed(self._clock.now_ns(), by, None, reason)


async def open_webrtc(
    exchange: Exchange,
    *,
    label: str,
    clock: Clock,
    sink: Sink,
    on_message: OnMessage,
    on_phase: Callable[[Phase, int], None],
    on_rtt: Callable[[int, int], None],
    on_closed: OnClosed,
    hang_up: Callable[[], Awaitable[None]] | None = None,
    loopback: bool = False,
    ice: tuple[str, ...] = (),
    buffer_ms: int = BUFFER_MS,
    timeout_s: float = 30.0,
) -> WebRtcTransport:
    """Call a peer. label: of the data channel. loopback: the peer is this machine, reached over 127.0.0.1. ice: URLs of
    STUN or TURN servers (none: host addresses only). buffer_ms: see `reorder.py`.

    on_phase hears of started and upgrade (ICE and DTLS done). Raises ConnectorError; ConfigError for a bad URL.
    """
    on_phase("started", clock.now_ns())
    try:
        servers = [RTCIceServer(url) for url in ice]
        pc = RTCPeerConnection(RTCConfiguration(iceServers=servers, bundlePolicy=RTCBundlePolicy.MAX_BUNDLE))
        transport = WebRtcTransport(pc, label, clock=clock, sink=sink, buffer_ms=buffer_ms)
    except ValueError as exc:
        raise ConfigError(f"--set ice=…: {exc}; write stun:HOST:PORT") from exc
    transport.on_message, transport.on_closed, transport.on_rtt = on_message, on_closed, on_rtt
    transport.hang_up = hang_up
    try:
        async with asyncio.timeout(timeout_s):
            await transport.dial(exchange, loopback=loopback, on_connected=lambda t_ns: on_phase("upgrade", t_ns))
    except TimeoutError as exc:
        await transport.close()
        message = f"the WebRTC connection was not made within {timeout_s:g} s"
        raise ConnectorError(message, kind="timeout", retryable=True) from exc
    except BaseException:
        await transport.close()
        raise
    return transport


async def close_peer(pc: RTCPeerConnection) -> None:
    """Close it, and its sockets in any case: aiortc waits without end for tasks of its own that have failed (its
    report on more than 31 senders, say)."""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await pc.close()
            return
    carriers = {each.receiver.transport for each in pc.getTransceivers()} | ({pc.sctp.transport} if pc.sctp else set())
    senders = [each.sender for each in pc.getTransceivers()]
    parts: list[Any] = [*senders, *carriers, *(carrier.transport for carrier in carriers)]
    for part in parts:
        with contextlib.suppress(Exception):
            async with asyncio.timeout(CLOSE_TIMEOUT_S / 6):
                await part.stop()


def usable_sdp(sdp: str) -> str:
    """The description without candidates that only multicast DNS could resolve: nothing is asked of the network.

    Raises ValueError for one that aiortc would choke on later, where nobody sees it.
    """
    if "a=fingerprint:" not in sdp:
        raise ValueError("it has no fingerprint")
    if sdp.count("a=candidate:") > MAX_CANDIDATES:
        raise ValueError(f"it has more than {MAX_CANDIDATES} candidates")
    lines = sdp.splitlines(keepends=True)
    return "".join(line for line in lines if not (line.startswith("a=candidate:") and ".local " in line.lower()))


def _opus_only() -> list[Any]:
    known = RTCRtpReceiver.getCapabilities("audio")
    assert known is not None
    return [codec for codec in known.codecs if codec.mimeType.lower() == "audio/opus"]


def _replace_jitter_buffer(receiver: Any, audio: RtpAudio) -> None:
    name = "_RTCRtpReceiver__jitter_buffer"
    if not hasattr(receiver, name):
        raise PrerequisiteError("this version of aiortc is not known: pip install 'aiortc>=1.14'")
    setattr(receiver, name, audio)
