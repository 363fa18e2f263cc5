"""Moshi's socket and its fork PersonaPlex: full-duplex models that have no turns and are clocked by our audio."""

from __future__ import annotations

from types import TracebackType
from typing import Any, ClassVar, Self

import msgspec

from connectors.codecs.moshi import RATE_HZ, UNIT_MS, MoshiClient
from connectors.endpoint import Endpoint
from connectors.session import CodecConnection
from connectors.settings import read_settings
from connectors.websocket_session import open_session
from harness.core.clock import Clock
from harness.core.commands import Configure
from harness.core.connector import PeerOptions, Sink
from harness.core.errors import ConfigError, ConnectorError
from harness.core.profile import Profile

PATH = "/api/chat"
UNIT_DELAY = 1
"""The first unit of input is taken for the past and gives no output (protocol sheet, section 7.1)."""
DEFAULT_VOICE = "NATF2.pt"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What `--set` takes. ca: PEM file to trust. unit_delay: units of input before the first of output. The others go
    into the URL as they are; the Rust servers know them, the Python server does not."""

    ca: str | None = None
    unit_delay: int = UNIT_DELAY
    text_temperature: float | None = None
    text_topk: int | None = None
    audio_temperature: float | None = None
    audio_topk: int | None = None
    max_steps: int | None = None
    text_seed: int | None = None
    audio_seed: int | None = None
    pad_mult: float | None = None
    repetition_penalty: float | None = None
    repetition_penalty_context: int | None = None


class PersonaPlexSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What `--set` takes. ca, unit_delay: as for Moshi. voice_prompt: a file in the server's folder of voices.
    text_prompt: who the model is to be; the session's instructions, where there are any, take its place."""

    ca: str | None = None
    unit_delay: int = UNIT_DELAY
    voice_prompt: str = DEFAULT_VOICE
    text_prompt: str = ""


class Moshi:
    """Moshi over its own WebSocket (`--peer moshi:ws://HOST:8998/api/chat`), the Python server or the Rust ones."""

    kind: ClassVar[str] = "moshi"
    version: ClassVar[str] = "1"
    evidence: ClassVar[str] = "interop-tested"
    settings_kind: ClassVar[type[msgspec.Struct]] = Settings
    ignores: ClassVar[tuple[str, ...]] = ("model", "instructions", "voice")
    declared: ClassVar[Profile] = Profile(
        pacing="input_clocked",
        turns=("vad",),
        continuous=True,
        input_rate_hz=RATE_HZ,
        output_rate_hz=RATE_HZ,
        chunk_ms=UNIT_MS,
        unit_ms=UNIT_MS,
        unit_delay=UNIT_DELAY,
        encoder_lookahead_samples=MoshiClient().lookahead_samples,
        flush_on=(),
        text="with_audio",
    )
    _settings: ClassVar[type[Settings | PersonaPlexSettings]] = Settings

    def __init__(self, options: PeerOptions, clock: Clock) -> None:
        if not options.target:
            raise ConfigError(f"name the server: --peer {self.kind}:ws://127.0.0.1:8998{PATH}")
        self._clock = clock
        self._options = options
        self.settings = read_settings(self._settings, options.settings, "this peer has no setting")
        if not 0 <= self.settings.unit_delay <= 100:
            raise ConfigError(f"unit_delay={self.settings.unit_delay}: must lie between 0 and 100")
        self._endpoint = self._at(Configure())
        self.url = self._endpoint.url

    @property
    def label(self) -> str:
        return f"{self.kind}-{self._endpoint.netloc}"

    @property
    def profile(self) -> Profile:
        return msgspec.structs.replace(self.declared, unit_delay=self.settings.unit_delay)

    @property
    def config(self) -> dict[str, Any]:
        return {
            "url": self.url,
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
        endpoint = self._at(configure)
        try:
            sink = endpoint.secret.guard(sink)
            return await open_session(
                MoshiClient(), endpoint, configure, sink, clock=self._clock, options=self._options
            )
        except ConnectorError as exc:
            raise endpoint.secret.scrubbed(exc) from exc

    def _at(self, configure: Configure) -> Endpoint:
        return Endpoint(self._options, path=PATH, query=self._query(configure), ca=self.settings.ca)

    def _query(self, configure: Configure) -> dict[str, str | None]:
        """What the URL says of the session; None: nothing."""
        own = msgspec.structs.asdict(self.settings)
        return {name: None if own[name] is None else str(own[name]) for name in own if name not in ("ca", "unit_delay")}


class PersonaPlex(Moshi):
    """PersonaPlex, NVIDIA's fork of Moshi: a voice and a role by prompt (`--peer personaplex:wss://HOST:8998/api/chat`)."""

    kind: ClassVar[str] = "personaplex"
    evidence: ClassVar[str] = "golden only"
    settings_kind: ClassVar[type[msgspec.Struct]] = PersonaPlexSettings
    ignores: ClassVar[tuple[str, ...]] = ("model",)
    _settings: ClassVar[type[Settings | PersonaPlexSettings]] = PersonaPlexSettings

    def _query(self, configure: Configure) -> dict[str, str | None]:
        """Both prompts are always there: the server wants both keys, empty or not (protocol sheet, section 7.3)."""
        own = self.settings
        assert isinstance(own, PersonaPlexSettings)
        instructions = configure.instructions
        return {
            "voice_prompt": configure.voice or own.voice_prompt,
            "text_prompt": own.text_prompt if instructions is None else instructions,
        }
