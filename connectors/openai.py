"""OpenAI Realtime over WebSocket: api.openai.com, or any server that speaks its names (`--peer ws://host/v1/realtime`)."""

from __future__ import annotations

from types import TracebackType
from typing import Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

import msgspec

from connectors.codecs.openai_realtime import OpenAIRealtimeClient
from connectors.endpoint import Endpoint
from connectors.session import CodecConnection
from connectors.settings import read_settings
from connectors.transports.websocket import open_websocket
from harness.core.clock import Clock
from harness.core.commands import Configure
from harness.core.connector import PeerOptions, Sink
from harness.core.errors import ConfigError, ConnectorError
from harness.core.events import ConnectionPhase, RoundTrip
from harness.core.profile import Profile

OFFICIAL_URL = "wss://api.openai.com/v1/realtime"
OFFICIAL_HOST = "api.openai.com"
DEFAULT_MODEL = "gpt-realtime"
DEFAULT_KEY_ENV = "OPENAI_API_KEY"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What `--set` takes. silence_ms: server VAD's end-of-speech silence. ca: PEM file to trust. session: JSON object
    merged into the session settings. model_in_url: put the model into the URL's query."""

    dialect: Literal["ga", "beta"] = "ga"
    silence_ms: int | None = None
    transcribe: bool = True
    ca: str | None = None
    session: str = "{}"
    model_in_url: bool = True


class OpenAIRealtime:
    """OpenAI Realtime over WebSocket: `openai` is the official service, a ws:// URL any server."""

    kind: ClassVar[str] = "openai"
    version: ClassVar[str] = "1"
    declared: ClassVar[Profile] = Profile(
        pacing="burst", turns=("vad", "manual"), user_transcript=True, cancel=True, truncate=True, history=True
    )

    def __init__(self, options: PeerOptions, clock: Clock) -> None:
        self._clock = clock
        self._options = options
        self.settings = read_settings(Settings, options.settings, "this peer has no setting")
        hosted = not options.target or urlsplit(options.target).hostname == OFFICIAL_HOST
        model = options.model or (DEFAULT_MODEL if hosted else None)
        self._endpoint = Endpoint(
            options,
            default_url=OFFICIAL_URL,
            default_key_env=DEFAULT_KEY_ENV,
            path="/v1/realtime",
            query={"model": model if self.settings.model_in_url else None},
            ca=self.settings.ca,
        )
        self.url = self._endpoint.url
        self._session = self._extra()

    @property
    def label(self) -> str:
        if self._endpoint.official:
            return f"openai-{self._options.model or DEFAULT_MODEL}"
        return f"openai-{self._endpoint.netloc}"

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
            extra={**configure.extra, **self._session},
        )
        try:
            return await self._open(configure, self._endpoint.secret.guard(sink))
        except ConnectorError as exc:
            raise self._endpoint.secret.scrubbed(exc) from exc

    async def _open(self, configure: Configure, sink: Sink) -> CodecConnection:
        codec = OpenAIRealtimeClient(dialect=self.settings.dialect)
        connection = CodecConnection(
            codec, sink, self._clock, output_rate_hz=self.declared.output_rate_hz, wire=self._options.wire
        )
        connection.transport = await open_websocket(
            self.url,
            clock=self._clock,
            on_message=connection.on_message,
            on_phase=lambda phase, t_ns: sink(ConnectionPhase(t_ns=t_ns, phase=phase)),
            on_rtt=lambda t_ns, rtt_ns: sink(RoundTrip(t_ns=t_ns, rtt_ns=rtt_ns)),
            on_closed=connection.on_closed,
            headers=self._headers(),
            tls=self._endpoint.tls(),
            timeout_s=self._options.timeout_s,
        )
        try:
            await connection.configure(configure, self._options.timeout_s)
        except BaseException:
            await connection.close()
            raise
        return connection

    def _extra(self) -> dict[str, Any]:
        try:
            return msgspec.json.decode(self.settings.session, type=dict[str, Any])
        except msgspec.DecodeError as exc:
            raise ConfigError(f"--set session=…: not a JSON object ({exc})") from exc

    def _headers(self) -> dict[str, str]:
        headers = self._endpoint.headers()
        if self.settings.dialect == "beta":
            headers["OpenAI-Beta"] = "realtime=v1"
        return headers
