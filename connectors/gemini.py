"""Gemini Live over WebSocket: generativelanguage.googleapis.com, Vertex AI, or any server that speaks its messages."""

from __future__ import annotations

import re
from types import TracebackType
from typing import Any, ClassVar, Self

import msgspec

from connectors.codecs.gemini_live import INPUT_RATE_HZ, OUTPUT_RATE_HZ, GeminiLiveClient
from connectors.endpoint import Endpoint
from connectors.session import CodecConnection
from connectors.settings import read_object, read_settings
from connectors.websocket_session import open_session
from harness.core.clock import Clock
from harness.core.commands import Configure
from harness.core.connector import PeerOptions, Sink
from harness.core.errors import ConnectorError
from harness.core.events import Event, WireFrame
from harness.core.profile import Profile
from harness.core.secret import unescaped

HOST = "generativelanguage.googleapis.com"
SERVICE = "/ws/google.ai.generativelanguage.{}.GenerativeService.BidiGenerateContent"
PATH = SERVICE.format("v1beta")
TOKEN_PATH = SERVICE.format("v1alpha") + "Constrained"
VERTEX_HOST = "aiplatform.googleapis.com"
TOKEN_MARK = "auth_tokens/"
DEFAULT_MODEL = "gemini-2.5-flash-native-audio-preview-12-2025"
DEFAULT_KEY_ENV = "GEMINI_API_KEY"
_HANDLE = re.compile(r'("(?:newHandle|new_handle|handle)"\s*:\s*")(?:[^"\\]|\\.)*')


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What `--set` takes. silence_ms: the detector's end-of-speech silence. language_hint: tell the recogniser the
    user's language. resumable: ask for handles to go on with the session. ca: PEM file to trust. setup: JSON object
    merged into the setup."""

    silence_ms: int | None = None
    transcribe: bool = True
    language_hint: bool = False
    resumable: bool = True
    ca: str | None = None
    setup: str = "{}"


class GeminiLive:
    """Gemini Live over WebSocket: `gemini` is the official service, `gemini:wss://…` Vertex AI or any server."""

    kind: ClassVar[str] = "gemini"
    version: ClassVar[str] = "1"
    evidence: ClassVar[str] = "golden only"
    settings_kind: ClassVar[type[msgspec.Struct]] = Settings
    declared: ClassVar[Profile] = Profile(
        pacing="burst",
        turns=("vad", "manual"),
        input_rate_hz=INPUT_RATE_HZ,
        output_rate_hz=OUTPUT_RATE_HZ,
        chunk_ms=20,
        confirms_commit=False,
        says_endpoint=False,
        flush_on=("interrupted",),
        text="with_audio",
        user_transcript=True,
        cancel=True,
        history=True,
    )

    def __init__(self, options: PeerOptions, clock: Clock) -> None:
        self._clock = clock
        self._options = options
        self.settings = read_settings(Settings, options.settings, "this peer has no setting")
        self._endpoint = self._at(PATH)
        self._ephemeral = (self._endpoint.key or "").startswith(TOKEN_MARK)
        if self._ephemeral and not options.target:
            self._endpoint = self._at(TOKEN_PATH)
        self.url = self._endpoint.url
        self._extra = read_object("setup", self.settings.setup)

    def _at(self, path: str) -> Endpoint:
        return Endpoint(
            self._options,
            default_url=f"wss://{HOST}{path}",
            default_key_env=DEFAULT_KEY_ENV,
            path=path,
            ca=self.settings.ca,
        )

    @property
    def label(self) -> str:
        if self._endpoint.official:
            return f"gemini-{self._options.model or DEFAULT_MODEL}"
        return f"gemini-{self._endpoint.netloc}"

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
            "setup": without_handle(self.settings.setup),
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
        try:
            return await self._open(configure, _guard(self._endpoint.secret.guard(sink)))
        except ConnectorError as exc:
            raise self._endpoint.secret.scrubbed(exc) from exc

    async def _open(self, configure: Configure, sink: Sink) -> CodecConnection:
        codec = GeminiLiveClient(
            model=self._options.model or DEFAULT_MODEL,
            resumable=self.settings.resumable,
            language_hint=self.settings.language_hint,
        )
        return await open_session(
            codec, self._endpoint, configure, sink, clock=self._clock, options=self._options, headers=self._headers()
        )

    def _headers(self) -> dict[str, str]:
        """The key never stands in the URL, though the service would take it there too."""
        if self._ephemeral:
            return self._endpoint.headers("Authorization", "Token ")
        if self._endpoint.host.endswith(VERTEX_HOST):
            return self._endpoint.headers()
        return self._endpoint.headers("x-goog-api-key", "")


def without_handle(text: str) -> str:
    """JSON without the value of a resumption handle: whoever has it can go on with the session."""
    plain = unescaped(text) if "\\u" in text else text
    return _HANDLE.sub(r"\1[handle]", plain if _HANDLE.search(plain) else text)


def _guard(sink: Sink) -> Sink:
    """A sink that records no resumption handle."""

    def guarded(event: Event) -> None:
        if isinstance(event, WireFrame):
            event = msgspec.structs.replace(event, text=without_handle(event.text))
        sink(event)

    return guarded
