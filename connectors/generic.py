"""Any WebSocket server that a small TOML map describes (`--peer generic:ws://host/path --set map=FILE.toml`).

The map's language stands in `docs/generic.md`; ready-made maps lie in `maps/` and are called by their name.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

import msgspec

from connectors.codecs.generic_client import GenericClient
from connectors.codecs.generic_map import Map, environment, named_values, read_map
from connectors.endpoint import Endpoint
from connectors.session import CodecConnection
from connectors.settings import read_settings
from connectors.websocket_session import open_session
from harness.core.clock import Clock
from harness.core.commands import Configure
from harness.core.connector import PeerOptions, Sink
from harness.core.errors import ConfigError, ConnectorError, PrerequisiteError, nearest
from harness.core.events import Note
from harness.core.profile import Profile
from harness.core.secret import Secret

MAPS = Path(__file__).parent / "maps"
MAX_MAP_BYTES = 1 << 20


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What `--set` takes. map: a TOML file, or the name of a ready-made one. silence_ms: for the map's messages. ca:
    PEM file to trust."""

    map: str = ""
    silence_ms: int | None = None
    ca: str | None = None


class GenericWebSocket:
    """Any WebSocket server, described by a TOML map: `generic:ws://host/path --set map=FILE.toml`."""

    kind: ClassVar[str] = "generic"
    version: ClassVar[str] = "1"
    evidence: ClassVar[str] = "golden only"
    settings_kind: ClassVar[type[Settings]] = Settings

    def __init__(self, options: PeerOptions, clock: Clock) -> None:
        self._clock = clock
        self._options = options
        self.settings = read_settings(Settings, options.settings, "this peer has no setting")
        self.map = load_map(self.settings.map)
        if not options.target and not self.map.url:
            raise ConfigError("say where the server is: --peer generic:ws://HOST:PORT/PATH")
        key = self.map.key
        path = urlsplit(self.map.url).path if self.map.url else "/"
        self._endpoint = Endpoint(
            options,
            default_url=self.map.url,
            default_key_env=key.env if key else None,
            path=path or "/",
            query={name: options.model if value == "$model" else value for name, value in self.map.query.items()},
            ca=self.settings.ca,
        )
        self.url = self._endpoint.url
        self._environment = _read_environment(self.map)
        self._secret = Secret(*self._environment.values())

    @property
    def label(self) -> str:
        return self.map.title or f"generic-{self._endpoint.netloc}"

    @property
    def ignores(self) -> tuple[str, ...]:
        """What no message of the map, nor its URL, has a place for."""
        said = named_values(self.map) | {value[1:] for value in self.map.query.values() if value[:1] == "$"}
        return tuple(name for name in ("model", "instructions", "voice") if name not in said)

    @property
    def profile(self) -> Profile:
        return self.map.profile

    @property
    def config(self) -> dict[str, Any]:
        return {
            "url": self.url,
            "model": self._options.model,
            "key_env": self._endpoint.key_env,
            "headers": sorted(self._endpoint.extra_headers),
            "insecure": self._options.insecure,
            **msgspec.structs.asdict(self.settings),
            "described": msgspec.to_builtins(self.map),
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
            model=self._options.model,
            silence_ms=configure.silence_ms if configure.silence_ms is not None else self.settings.silence_ms,
        )
        sink = self._endpoint.secret.guard(self._secret.guard(sink))
        try:
            return await self._open(configure, sink)
        except ConnectorError as exc:
            raise self._endpoint.secret.scrubbed(self._secret.scrubbed(exc)) from exc

    async def _open(self, configure: Configure, sink: Sink) -> CodecConnection:
        codec = GenericClient(self.map, self._environment)
        key = self.map.key
        connection = await open_session(
            codec,
            self._endpoint,
            configure,
            sink,
            clock=self._clock,
            options=self._options,
            output_rate_hz=self.map.output.rate_hz,
            headers=self._endpoint.headers(key.header, key.scheme) if key else None,
            subprotocols=self.map.subprotocols,
        )
        if not self.map.means("response_done") and not self.map.continuous:
            message = "the map has no rule for the answer's end: each turn lasts until its time limit"
            sink(Note(t_ns=self._clock.now_ns(), code="no_end_rule", message=message))
        return connection


def load_map(wanted: str) -> Map:
    """The map in file `wanted`, or the ready-made one of that name. Raises ConfigError."""
    if not wanted:
        raise ConfigError("generic needs --set map=FILE.toml, the description of your server")
    path = Path(wanted)
    ready = MAPS / f"{wanted}.toml"
    if path.suffix != ".toml" and wanted.replace("-", "").isalnum() and not path.exists():
        if not ready.is_file():
            known = [file.stem for file in MAPS.glob("*.toml")]
            raise ConfigError(f"map={wanted}: no such file, and no ready-made map: {nearest(wanted, known)}")
        path = ready
    try:
        with path.open("rb") as file:
            data = file.read(MAX_MAP_BYTES + 1)
        text = data.decode()
    except OSError as exc:
        raise ConfigError(f"map={wanted}: {exc.strerror or 'cannot be read'}") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"map={wanted}: not UTF-8 text") from exc
    if len(data) > MAX_MAP_BYTES:
        raise ConfigError(f"map={wanted}: too large for a map")
    return read_map(text, path.name)


def _read_environment(described: Map) -> dict[str, str]:
    values: dict[str, str] = {}
    for name in environment(described):
        if not os.environ.get(name, "").strip():
            raise PrerequisiteError(f"set the environment variable {name}: the map's messages name it")
        values[name] = os.environ[name].strip()
    return values
