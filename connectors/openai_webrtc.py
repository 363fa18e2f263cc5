"""OpenAI Realtime over WebRTC: api.openai.com, or any server with `/v1/realtime/calls`."""

from __future__ import annotations

from types import TracebackType
from typing import Any, ClassVar, Literal, Self
from urllib.parse import urljoin, urlsplit

import aiohttp
import msgspec

from connectors.codecs.openai_rtc import OpenAIRtcClient
from connectors.codecs.opus import LOOKAHEAD_SAMPLES, PACKET_SAMPLES, RATE_HZ
from connectors.endpoint import Endpoint
from connectors.session import CodecConnection
from connectors.settings import read_object, read_settings
from connectors.transports.proxy import is_loopback
from connectors.transports.signalling import Reply, request
from connectors.transports.webrtc import BUFFER_MS, open_webrtc
from harness.core.clock import Clock
from harness.core.commands import Configure
from harness.core.connector import PeerOptions, Sink
from harness.core.errors import ConfigError, ConnectorError
from harness.core.events import ConnectionPhase, Phase, RawReceived, RoundTrip
from harness.core.profile import Profile

OFFICIAL_URL = "https://api.openai.com/v1/realtime/calls"
PATH = "/v1/realtime/calls"
SECRETS = "/v1/realtime/client_secrets"
DEFAULT_MODEL = "gpt-realtime"
DEFAULT_KEY_ENV = "OPENAI_API_KEY"
CHANNEL = "oai-events"
HANG_UP_TIMEOUT_S = 2.0


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What `--set` takes. silence_ms: server VAD's end-of-speech silence. ca: PEM file to trust. session: JSON object
    merged into the session settings. auth: how the offer goes up: `sdp` alone, `multipart` with the session,
    `ephemeral` (sdp, with a secret that the key buys first); auto: multipart at the official service, else sdp.
    ice: STUN or TURN URLs, separated by commas. buffer_ms: how long a packet waits for a missing one."""

    silence_ms: int | None = None
    transcribe: bool = True
    ca: str | None = None
    session: str = "{}"
    auth: Literal["auto", "sdp", "multipart", "ephemeral"] = "auto"
    ice: str = ""
    buffer_ms: int = BUFFER_MS


class OpenAIWebRTC:
    """OpenAI Realtime over WebRTC: `openai-webrtc` is the official service, an http(s):// URL any server."""

    kind: ClassVar[str] = "openai-webrtc"
    version: ClassVar[str] = "1"
    evidence: ClassVar[str] = "interop-tested"
    settings_kind: ClassVar[type[msgspec.Struct]] = Settings
    declared: ClassVar[Profile] = Profile(
        pacing="paced",
        turns=("vad", "manual"),
        continuous=True,
        input_rate_hz=RATE_HZ,
        output_rate_hz=RATE_HZ,
        chunk_ms=PACKET_SAMPLES * 1000 // RATE_HZ,
        encoder_lookahead_samples=LOOKAHEAD_SAMPLES,
        rtp=True,
        flush_on=(),
        user_transcript=True,
        cancel=True,
        truncate=True,
        history=True,
        playback_state=True,
    )

    def __init__(self, options: PeerOptions, clock: Clock) -> None:
        self._clock = clock
        self._options = options
        self.settings = read_settings(Settings, options.settings, "this peer has no setting")
        if not 0 <= self.settings.buffer_ms <= 2_000:
            raise ConfigError("buffer_ms: from 0 to 2000")
        self._endpoint = Endpoint(
            options,
            default_url=OFFICIAL_URL,
            default_key_env=DEFAULT_KEY_ENV,
            path=PATH,
            schemes=("https", "http"),
            ca=self.settings.ca,
        )
        self.url = self._endpoint.url
        self._model = options.model or (DEFAULT_MODEL if self._endpoint.official else None)
        self._auth = self.settings.auth
        if self._auth == "auto":
            self._auth = "multipart" if self._endpoint.official else "sdp"
        self._extra = read_object("session", self.settings.session)

    @property
    def label(self) -> str:
        if self._endpoint.official:
            return f"{self.kind}-{self._model}"
        return f"{self.kind}-{self._endpoint.netloc}"

    @property
    def profile(self) -> Profile:
        return self.declared

    @property
    def config(self) -> dict[str, Any]:
        return {
            "url": self.url,
            "model": self._options.model,
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
        configure = msgspec.structs.replace(
            configure,
            silence_ms=configure.silence_ms if configure.silence_ms is not None else self.settings.silence_ms,
            transcribe=self.settings.transcribe,
            extra={**configure.extra, **self._extra},
        )
        secret = self._endpoint.secret
        try:
            headers = self._endpoint.headers()
            if self._auth == "ephemeral":
                value = await self._mint(configure)
                secret = secret.with_also(value)
                headers |= {"Authorization": f"Bearer {value}"}
            return await self._open(configure, secret.guard(sink), headers)
        except ConnectorError as exc:
            raise secret.scrubbed(exc) from exc

    async def _open(self, configure: Configure, sink: Sink, headers: dict[str, str]) -> CodecConnection:
        codec = OpenAIRtcClient()
        connection = CodecConnection(codec, sink, self._clock, wire=self._options.wire)
        call = ""

        def on_phase(phase: Phase, t_ns: int) -> None:
            sink(ConnectionPhase(t_ns=t_ns, phase=phase))

        async def exchange(offer: str) -> str:
            nonlocal call
            if self._auth == "multipart":
                data: aiohttp.FormData | bytes = _form(offer, self._session(codec, configure))
                sent = headers | {"Accept": "application/sdp"}
            else:
                data, sent = offer.encode(), headers | {"Accept": "application/sdp", "Content-Type": "application/sdp"}
            reply = await self._request("POST", self._with_model(), headers=sent, data=data, on_phase=on_phase)
            call = self._call(reply)
            if call:
                name = f"{reply.status} {urlsplit(call).path}"
                sink(RawReceived(t_ns=self._clock.now_ns(), name=name, wire_bytes=len(reply.body)))
            return reply.body.decode("utf-8", "replace")

        async def hang_up() -> None:
            if not call:
                return
            method, url = ("POST", f"{call}/hangup") if self._endpoint.official else ("DELETE", call)
            await self._request(method, url, headers=headers, timeout_s=HANG_UP_TIMEOUT_S)

        connection.transport = await open_webrtc(
            exchange,
            label=CHANNEL,
            clock=self._clock,
            sink=sink,
            on_message=connection.on_message,
            on_phase=on_phase,
            on_rtt=lambda t_ns, rtt_ns: sink(RoundTrip(t_ns=t_ns, rtt_ns=rtt_ns)),
            on_closed=connection.on_closed,
            hang_up=hang_up,
            loopback=is_loopback(self._endpoint.host),
            ice=tuple(url.strip() for url in self.settings.ice.split(",") if url.strip()),
            buffer_ms=self.settings.buffer_ms,
            timeout_s=self._options.timeout_s,
        )
        try:
            await connection.configure(configure, self._options.timeout_s)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _mint(self, configure: Configure) -> str:
        """Buy a short-lived secret; the session goes with it. Not part of the call's own time."""
        body = {"session": self._session(OpenAIRtcClient(), configure)}
        headers = self._endpoint.headers() | {"Content-Type": "application/json"}
        url = urljoin(self.url, SECRETS)
        reply = await self._request("POST", url, headers=headers, data=msgspec.json.encode(body))
        try:
            return msgspec.json.decode(reply.body, type=_Minted).value
        except msgspec.DecodeError as exc:
            raise ConnectorError("the peer's client secret cannot be read", kind="protocol") from exc

    async def _request(self, method: str, url: str, **more: Any) -> Reply:
        more.setdefault("timeout_s", self._options.timeout_s)
        return await request(method, url, clock=self._clock, tls=self._endpoint.tls(), **more)

    def _session(self, codec: OpenAIRtcClient, configure: Configure) -> dict[str, Any]:
        return codec.session(configure) | ({"model": self._model} if self._model else {})

    def _with_model(self) -> str:
        """With the offer alone, the URL is the only place for the model."""
        if self._auth != "sdp" or not self._model:
            return self.url
        return f"{self.url}{'&' if urlsplit(self.url).query else '?'}model={self._model}"

    def _call(self, reply: Reply) -> str:
        """The call's own URL, for hanging up; empty for one that leads elsewhere: our key does not follow it."""
        location = reply.headers.get("location", "")
        try:
            url = urljoin(self.url, location) if location else ""
            here, there = urlsplit(self.url), urlsplit(url)
        except ValueError:  # no URL at all
            return ""
        return url if (here.scheme, here.netloc) == (there.scheme, there.netloc) else ""


class _Minted(msgspec.Struct, frozen=True):
    value: str


def _form(offer: str, session: dict[str, Any]) -> aiohttp.FormData:
    form = aiohttp.FormData(default_to_multipart=True)
    form.add_field("sdp", offer, content_type="application/sdp")
    form.add_field("session", msgspec.json.encode(session).decode(), content_type="application/json")
    return form
