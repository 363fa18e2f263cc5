"""OpenAI Live over WebSocket, and its near copy Qwen-Audio-Live: full duplex, no turns on the wire."""

from __future__ import annotations

from types import TracebackType
from typing import Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

import msgspec

from connectors.codecs.openai_live import LIVE_DIALECTS, LiveName, OpenAILiveClient
from connectors.endpoint import Endpoint
from connectors.session import CodecConnection
from connectors.settings import read_object, read_settings
from connectors.websocket_session import open_session
from harness.core.clock import Clock
from harness.core.commands import Configure
from harness.core.connector import PeerOptions, Sink
from harness.core.errors import ConfigError, ConnectorError
from harness.core.profile import Profile

OFFICIAL_URL = "wss://api.openai.com/v1/live/sessions"
QWEN_HOST = ".maas.aliyuncs.com"
QWEN_EXAMPLE = "wss://WORKSPACE.ap-southeast-1.maas.aliyuncs.com?dialect=qwen"
MODELS: dict[LiveName, str] = {"openai": "gpt-live-1", "qwen": "qwen-audio-3.1-live"}
KEY_ENVS: dict[LiveName, str] = {"openai": "OPENAI_API_KEY", "qwen": "DASHSCOPE_API_KEY"}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What `--set` takes. rate_hz: of both directions (`openai` only). ca: PEM file to trust. session: JSON object
    merged into the session settings."""

    dialect: LiveName = "openai"
    rate_hz: Literal[16_000, 24_000] | None = None
    ca: str | None = None
    session: str = "{}"


class OpenAILive:
    """OpenAI Live (GPT-Live) over WebSocket, full duplex; `openai-live:wss://…?dialect=qwen` is Qwen-Audio-Live."""

    kind: ClassVar[str] = "openai-live"
    version: ClassVar[str] = "1"
    evidence: ClassVar[str] = "golden only"
    settings_kind: ClassVar[type[msgspec.Struct]] = Settings
    declared: ClassVar[Profile] = Profile(
        pacing="paced",
        turns=("vad",),
        continuous=True,
        chunk_ms=100,
        flush_on=(),
        text="with_audio",
        user_transcript=True,
    )

    def __init__(self, options: PeerOptions, clock: Clock) -> None:
        self._clock = clock
        self._options = options
        self.settings = read_settings(Settings, options.settings, "this peer has no setting")
        qwen = self.settings.dialect == "qwen"
        if qwen and not options.target:
            raise ConfigError(f"Qwen-Audio-Live has an address for each workspace: --peer openai-live:{QWEN_EXAMPLE}")
        if qwen and self.settings.rate_hz is not None:
            raise ConfigError("rate_hz: Qwen-Audio-Live has fixed rates, 16 kHz up and 24 kHz down")
        hosted = qwen and (urlsplit(options.target).hostname or "").endswith(QWEN_HOST)
        self.model = options.model or MODELS[self.settings.dialect]
        self._endpoint = Endpoint(
            options,
            default_url=(options.target if hosted else "") if qwen else OFFICIAL_URL,
            default_key_env=KEY_ENVS[self.settings.dialect],
            path="/api-ws/v1/realtime" if qwen else "/v1/live/sessions",
            query={"model": self.model if qwen else None},
            ca=self.settings.ca,
        )
        self.url = self._endpoint.url
        self._session = read_object("session", self.settings.session)

    @property
    def label(self) -> str:
        return f"{self.settings.dialect}-live-{self.model if self._endpoint.official else self._endpoint.netloc}"

    @property
    def profile(self) -> Profile:
        dialect = LIVE_DIALECTS[self.settings.dialect]
        return msgspec.structs.replace(
            self.declared,
            input_rate_hz=self.settings.rate_hz or dialect.input_rate_hz,
            output_rate_hz=self.settings.rate_hz or dialect.output_rate_hz,
            history=dialect.history,
        )

    @property
    def config(self) -> dict[str, Any]:
        return {
            "url": self.url,
            "model": self.model,
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
        configure = msgspec.structs.replace(configure, extra={**configure.extra, **self._session})
        try:
            return await self._open(configure, self._endpoint.secret.guard(sink))
        except ConnectorError as exc:
            raise self._endpoint.secret.scrubbed(exc) from exc

    async def _open(self, configure: Configure, sink: Sink) -> CodecConnection:
        codec = OpenAILiveClient(self.settings.dialect, model=self.model, input_rate_hz=self.settings.rate_hz)
        rate_hz = self.profile.output_rate_hz
        return await open_session(
            codec, self._endpoint, configure, sink, clock=self._clock, options=self._options, output_rate_hz=rate_hz
        )
