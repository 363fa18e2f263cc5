"""OpenAI Realtime over WebSocket: api.openai.com, any server that speaks its names (`--peer ws://host/v1/realtime`),
and every dialect of the table in `codecs/openai_dialects.py` as a peer of its own name."""

from __future__ import annotations

import re
from types import TracebackType
from typing import Any, ClassVar, Literal, Self
from urllib.parse import parse_qsl, urlsplit

import msgspec

from connectors.codecs.openai_dialects import DIALECTS, Dialect, dialect_of
from connectors.codecs.openai_realtime import OpenAIRealtimeClient
from connectors.codecs.pcm_stream import HIGHEST_RATE_HZ, LOWEST_RATE_HZ
from connectors.endpoint import Endpoint
from connectors.session import CodecConnection
from connectors.settings import read_object, read_settings
from connectors.websocket_session import open_session
from harness.core.clock import Clock
from harness.core.commands import Configure
from harness.core.connector import PeerOptions, Sink
from harness.core.errors import ConfigError, ConnectorError
from harness.core.profile import Profile

_RESOURCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What `--set` takes. dialect: a row of the table. silence_ms: server VAD's end-of-speech silence.
    transcription_model: the peer's recogniser. input_rate_hz, output_rate_hz: where the dialect leaves a choice.
    binary: audio as binary messages (xAI). auth: how the key is shown. ca: PEM file to trust. session: JSON object
    merged into the session settings. model_in_url: whether the model stands in the URL."""

    dialect: str | None = None
    silence_ms: int | None = None
    transcribe: bool = True
    transcription_model: str | None = None
    input_rate_hz: int | None = None
    output_rate_hz: int | None = None
    binary: bool = False
    auth: Literal["bearer", "api-key"] | None = None
    ca: str | None = None
    session: str = "{}"
    model_in_url: bool | None = None


class OpenAIRealtime:
    """OpenAI Realtime over WebSocket: `openai` is the official service, a ws:// URL any server."""

    kind: ClassVar[str] = "openai"
    version: ClassVar[str] = "1"
    evidence: ClassVar[str] = DIALECTS["openai"].evidence
    declared: ClassVar[Profile] = DIALECTS["openai"].profile
    variants: ClassVar[tuple[Dialect, ...]] = tuple(row for row in DIALECTS.values() if row.name != "openai")
    settings_kind: ClassVar[type[Settings]] = Settings
    own_dialect: ClassVar[str] = "openai"

    def __init__(self, options: PeerOptions, clock: Clock) -> None:
        self._clock = clock
        self._options = options
        self.settings = read_settings(Settings, options.settings, "this peer has no setting")
        self.dialect = dialect_of(self.settings.dialect or self.own_dialect)
        target = _target(self.dialect, options.target)
        official = _at_home(self.dialect, target)
        given = dict(parse_qsl(target.partition("?")[2], keep_blank_values=True))
        self.model = options.model or given.get("model") or (self.dialect.model if official else None)
        if self.dialect.model_needed and self.model is None:
            what = self.dialect.note if self.dialect.note.startswith("--model") else "the name of a model that it has"
            raise ConfigError(f"{self.dialect.name} needs --model: {what}")
        in_url = self.settings.model_in_url
        if in_url is None:
            in_url = self.dialect.model_place == "query"
        self._endpoint = Endpoint(
            msgspec.structs.replace(options, target=target),
            default_url=target if official else "",
            default_key_env=self.dialect.key_env,
            path=self.dialect.path,
            query={key: given.get(key, value) for key, value in self.dialect.query.items()}
            | {"model": self.model if in_url else None},
            ca=self.settings.ca,
        )
        self.url = self._endpoint.url
        self._session = read_object("session", self.settings.session)
        self._profile = self._with_rates()

    @property
    def label(self) -> str:
        name = "openai" if self.dialect.name == "openai-beta" else self.dialect.name
        return f"{name}-{self.model if self._endpoint.official else self._endpoint.netloc}"

    @property
    def ignores(self) -> tuple[str, ...]:
        return ("instructions", "voice") if self.dialect.shape == "none" else ()

    @property
    def profile(self) -> Profile:
        return self._profile

    @property
    def config(self) -> dict[str, Any]:
        return {
            "url": self.url,
            "model": self.model,
            "key_env": self._endpoint.key_env,
            "headers": sorted(self._endpoint.extra_headers),
            "insecure": self._options.insecure,
            **msgspec.structs.asdict(self.settings),
            "dialect": self.dialect.name,
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
            model=self.model,
            silence_ms=configure.silence_ms if configure.silence_ms is not None else self.settings.silence_ms,
            transcribe=self.settings.transcribe,
            extra={**configure.extra, **self._session},
        )
        try:
            return await self._open(configure, self._endpoint.secret.guard(sink))
        except ConnectorError as exc:
            raise self._endpoint.secret.scrubbed(exc) from exc

    async def _open(self, configure: Configure, sink: Sink) -> CodecConnection:
        codec = OpenAIRealtimeClient(
            self.dialect,
            input_rate_hz=self._profile.input_rate_hz,
            output_rate_hz=self._profile.output_rate_hz,
            transcription_model=self.settings.transcription_model,
            binary=self.settings.binary,
        )
        return await open_session(
            codec,
            self._endpoint,
            configure,
            sink,
            clock=self._clock,
            options=self._options,
            output_rate_hz=self._profile.output_rate_hz,
            headers=self._headers(),
            subprotocols=self.dialect.subprotocols,
        )

    def _with_rates(self) -> Profile:
        """The dialect's profile at the rates that were asked for. Raises ConfigError for one that it has not."""
        if self.settings.binary and not self.dialect.binary:
            raise ConfigError(f"binary=true: {self.dialect.name} has no binary audio")
        wanted: dict[str, int] = {}
        for key, can in (
            ("input_rate_hz", self.dialect.input_rates_hz),
            ("output_rate_hz", self.dialect.output_rates_hz),
        ):
            rate_hz = getattr(self.settings, key)
            if rate_hz is None:
                continue
            free = not self.dialect.hosts or not self._endpoint.official
            if rate_hz not in can and not (free and LOWEST_RATE_HZ <= rate_hz <= HIGHEST_RATE_HZ):
                rates = ", ".join(str(rate) for rate in sorted(can))
                raise ConfigError(f"{key}={rate_hz}: {self.dialect.name} has {rates} Hz")
            wanted[key] = rate_hz
        return msgspec.structs.replace(self.dialect.profile, **wanted)

    def _headers(self) -> dict[str, str]:
        shown = {"bearer": ("Authorization", "Bearer "), "api-key": ("api-key", "")}
        name, scheme = shown.get(self.settings.auth or "", (self.dialect.key_header, self.dialect.key_scheme))
        return self.dialect.headers | self._endpoint.headers(name, scheme)


def _target(dialect: Dialect, target: str) -> str:
    """The URL that the user means: the service's own, one at a resource of theirs, or what they wrote."""
    if "{target}" not in dialect.url:
        return target or dialect.url
    if "://" in target:
        return target
    if not _RESOURCE.fullmatch(target):
        address = dialect.url.partition("/v")[0].replace("{target}", "RESOURCE")
        raise ConfigError(f"{dialect.name} needs your resource's name: --peer {dialect.name}:RESOURCE ({address}…)")
    return dialect.url.replace("{target}", target)


def _at_home(dialect: Dialect, target: str) -> bool:
    """Whether the URL is one of the vendor's own hosts, to which its key may go."""
    try:
        host = urlsplit(target).hostname or ""
    except ValueError:
        return False
    return any(host == known or (known.startswith(".") and host.endswith(known)) for known in dialect.hosts)


def peer_of(name: str) -> type[OpenAIRealtime]:
    """The connector that speaks dialect `name` from the start; for entry points."""
    row = dialect_of(name)
    members = {
        "kind": row.name,
        "evidence": row.evidence,
        "declared": row.profile,
        "own_dialect": row.name,
        "variants": (),
        "__doc__": f"{row.title}: OpenAI Realtime over WebSocket in a dialect of its own.",
        "__module__": __name__,
    }
    return type(f"OpenAIRealtime[{row.name}]", (OpenAIRealtime,), members)


Azure = peer_of("azure")
AzureVoiceLive = peer_of("azure-voice-live")
XAI = peer_of("xai")
StepFun = peer_of("stepfun")
QwenOmni = peer_of("qwen-omni")
GLM = peer_of("glm")
VllmOmni = peer_of("vllm-omni")
VllmOmniTurns = peer_of("vllm-omni-turns")
SpeechToSpeech = peer_of("hf-s2s")
Speaches = peer_of("speaches")
LocalAI = peer_of("localai")
Unmute = peer_of("unmute")
