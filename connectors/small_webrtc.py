"""SmallWebRTC, pipecat's own WebRTC transport, with RTVI messages on the data channel."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, ClassVar, Self

import msgspec

from connectors.codecs.opus import LOOKAHEAD_SAMPLES, PACKET_SAMPLES, RATE_HZ
from connectors.codecs.rtvi import PING, RtviClient
from connectors.endpoint import Endpoint
from connectors.session import CodecConnection
from connectors.settings import read_object, read_settings
from connectors.transports.proxy import is_loopback
from connectors.transports.signalling import request
from connectors.transports.webrtc import BUFFER_MS, WebRtcTransport, open_webrtc
from harness.core.clock import Clock
from harness.core.commands import Configure
from harness.core.connector import PeerOptions, Sink
from harness.core.errors import ConfigError, ConnectorError
from harness.core.events import ConnectionPhase, Phase, RawReceived, RoundTrip
from harness.core.profile import Profile

PATH = "/api/offer"
CHANNEL = "chat"
PING_S = 1.0
"""pipecat counts a client as gone 3 s after its last ping."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What `--set` takes. ca: PEM file to trust. request_data: JSON object that goes up with the offer, for the bot.
    ice: STUN or TURN URLs, separated by commas. buffer_ms: how long a packet waits for a missing one."""

    ca: str | None = None
    request_data: str = "{}"
    ice: str = ""
    buffer_ms: int = BUFFER_MS


class SmallWebRTC:
    """pipecat's SmallWebRTC with RTVI events: the URL of a bot's `/api/offer`."""

    kind: ClassVar[str] = "small-webrtc"
    version: ClassVar[str] = "1"
    evidence: ClassVar[str] = "interop-tested"
    settings_kind: ClassVar[type[msgspec.Struct]] = Settings
    ignores: ClassVar[tuple[str, ...]] = ("model", "instructions", "voice")
    declared: ClassVar[Profile] = Profile(
        pacing="paced",
        turns=("vad",),
        continuous=True,
        input_rate_hz=RATE_HZ,
        output_rate_hz=RATE_HZ,
        chunk_ms=PACKET_SAMPLES * 1000 // RATE_HZ,
        encoder_lookahead_samples=LOOKAHEAD_SAMPLES,
        rtp=True,
        flush_on=(),
        user_transcript=True,
        playback_state=True,
    )

    def __init__(self, options: PeerOptions, clock: Clock) -> None:
        self._clock = clock
        self._options = options
        self.settings = read_settings(Settings, options.settings, "this peer has no setting")
        if not 0 <= self.settings.buffer_ms <= 2_000:
            raise ConfigError("buffer_ms: from 0 to 2000")
        if not options.target:
            raise ConfigError(f"{self.kind}: name the bot's URL, {self.kind}:http://127.0.0.1:7860{PATH}")
        self._endpoint = Endpoint(options, path=PATH, schemes=("https", "http"), ca=self.settings.ca)
        self.url = self._endpoint.url
        self._data = read_object("request_data", self.settings.request_data)

    @property
    def label(self) -> str:
        return f"{self.kind}-{self._endpoint.netloc}"

    @property
    def profile(self) -> Profile:
        return self.declared

    @property
    def config(self) -> dict[str, Any]:
        return {
            "url": self.url,
            "key_env": self._endpoint.key_env,
            "headers": sorted(self._endpoint.extra_headers),
            "insecure": self._options.insecure,
            "encoder_lookahead_samples": LOOKAHEAD_SAMPLES,
            **msgspec.structs.asdict(self.settings),
        }

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def connect(self, configure: Configure, sink: Sink) -> CodecConnection:
        try:
            return await self._open(configure, self._endpoint.secret.guard(sink))
        except ConnectorError as exc:
            raise self._endpoint.secret.scrubbed(exc) from exc

    async def _open(self, configure: Configure, sink: Sink) -> CodecConnection:
        connection = CodecConnection(RtviClient(), sink, self._clock, wire=self._options.wire)

        def on_phase(phase: Phase, t_ns: int) -> None:
            sink(ConnectionPhase(t_ns=t_ns, phase=phase))

        async def exchange(offer: str) -> str:
            body = {"sdp": offer, "type": "offer"} | ({"request_data": self._data} if self._data else {})
            reply = await request(
                "POST",
                self.url,
                clock=self._clock,
                headers=self._endpoint.headers() | {"Content-Type": "application/json"},
                data=msgspec.json.encode(body),
                tls=self._endpoint.tls(),
                on_phase=on_phase,
                timeout_s=self._options.timeout_s,
            )
            answer = _answer(reply.body)
            sink(RawReceived(t_ns=self._clock.now_ns(), name=f"pc_id {answer.pc_id}"[:200], wire_bytes=len(reply.body)))
            return answer.sdp

        transport = await open_webrtc(
            exchange,
            label=CHANNEL,
            clock=self._clock,
            sink=sink,
            on_message=connection.on_message,
            on_phase=on_phase,
            on_rtt=lambda t_ns, rtt_ns: sink(RoundTrip(t_ns=t_ns, rtt_ns=rtt_ns)),
            on_closed=connection.on_closed,
            loopback=is_loopback(self._endpoint.host),
            ice=tuple(url.strip() for url in self.settings.ice.split(",") if url.strip()),
            buffer_ms=self.settings.buffer_ms,
            timeout_s=self._options.timeout_s,
        )
        connection.transport = transport
        _keep_alive(transport)
        try:
            await connection.configure(configure, self._options.timeout_s)
        except BaseException:
            await connection.close()
            raise
        return connection


class _Answer(msgspec.Struct, frozen=True):
    sdp: str
    pc_id: str = ""


def _answer(body: bytes) -> _Answer:
    try:
        return msgspec.json.decode(body, type=_Answer)
    except msgspec.DecodeError as exc:
        raise ConnectorError(f"the peer's answer to the offer cannot be read: {exc}", kind="protocol") from exc


def _keep_alive(transport: WebRtcTransport) -> None:
    """Say `ping` once a second as long as the call lasts."""
    try:
        transport.write(transport.prepare(PING))
    except ConnectorError:
        return
    asyncio.get_running_loop().call_later(PING_S, _keep_alive, transport)
