"""Chat completions with audio over HTTP: the whole query goes up in one request, the answer streams down (SSE)."""

from __future__ import annotations

from types import TracebackType
from typing import Any, ClassVar, Literal, Self
from urllib.parse import urlsplit, urlunsplit

import msgspec

from connectors.chat_session import ChatConnection
from connectors.codecs.chat_completions import ChatCompletionsClient, History
from connectors.codecs.chat_dialects import DIALECTS, DialectName
from connectors.endpoint import Endpoint
from connectors.settings import read_object, read_settings
from connectors.transports.http import HttpClient
from harness.core.clock import Clock
from harness.core.commands import Configure
from harness.core.connector import PeerOptions, Sink
from harness.core.errors import ConfigError, ConnectorError
from harness.core.events import ConnectionPhase
from harness.core.profile import Profile

PATH = "/chat/completions"


class ChatSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What `--set` takes. format: of the answer's audio. history: how earlier answers stand in the next request.
    body: JSON object laid over every request. ca: PEM file to trust."""

    dialect: DialectName = "openai"
    format: Literal["pcm16", "pcm", "wav"] | None = None
    history: History = "text"
    input_rate_hz: int | None = None
    body: str = "{}"
    ca: str | None = None


class ChatCompletions:
    """Chat completions with audio over SSE: OpenAI's, or `chat:http://host/v1?dialect=…` (dashscope, vllm-omni)."""

    kind: ClassVar[str] = "chat"
    version: ClassVar[str] = "1"
    evidence: ClassVar[str] = "golden only"
    settings_kind: ClassVar[type[msgspec.Struct]] = ChatSettings
    declared: ClassVar[Profile] = Profile(
        pacing="burst", turns=(), upload=True, text="with_audio", cancel=True, history=True, flush_on=()
    )

    def __init__(self, options: PeerOptions, clock: Clock) -> None:
        self._clock = clock
        self._options = options
        self.settings = read_settings(ChatSettings, options.settings, "this peer has no setting")
        self.dialect = DIALECTS[self.settings.dialect]
        if not options.target and not self.dialect.url:
            raise ConfigError(f"everybody runs their own {self.dialect.name}: name it, chat:http://HOST:PORT/v1")
        self._endpoint = Endpoint(
            options,
            default_url=self.dialect.url,
            default_key_env=self.dialect.key_env,
            path="/v1",
            schemes=("http", "https"),
            ca=self.settings.ca,
        )
        self.url = _with_path(self._endpoint.url)
        self._model = options.model or self.dialect.model
        self._body = read_object("body", self.settings.body)
        self._rate_hz = self.settings.input_rate_hz or self.dialect.input_rate_hz
        if not 8_000 <= self._rate_hz <= 48_000:
            raise ConfigError("input_rate_hz: must lie between 8000 and 48000")

    @property
    def label(self) -> str:
        if self._endpoint.official:
            return f"chat-{self._model}"
        return f"chat-{self._endpoint.netloc}"

    @property
    def profile(self) -> Profile:
        return msgspec.structs.replace(self.declared, input_rate_hz=self._rate_hz)

    @property
    def config(self) -> dict[str, Any]:
        return {
            "url": self.url,
            "model": self._model,
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

    async def connect(self, configure: Configure, sink: Sink) -> ChatConnection:
        sink = self._endpoint.secret.guard(sink)
        codec = ChatCompletionsClient(
            self.dialect,
            model=self._model,
            audio_format=self.settings.format,
            input_rate_hz=self._rate_hz,
            output_rate_hz=self.declared.output_rate_hz,
            history=self.settings.history,
            extra=self._body,
        )
        connection = ChatConnection(codec, sink, self._clock, wire=self._options.wire)
        connection.client = HttpClient(
            self.url,
            clock=self._clock,
            on_phase=lambda phase, t_ns: sink(ConnectionPhase(t_ns=t_ns, phase=phase)),
            headers=self._endpoint.headers(),
            tls=self._endpoint.tls(),
            timeout_s=self._options.timeout_s,
        )
        try:
            await connection.configure(configure)
        except ConnectorError as exc:
            await connection.client.close()
            raise self._endpoint.secret.scrubbed(exc) from exc
        except BaseException:
            await connection.client.close()
            raise
        return connection


def _with_path(url: str) -> str:
    """The base URL's endpoint; a URL that names it already stays."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=path if path.endswith(PATH) else path + PATH))
