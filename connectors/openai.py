"""OpenAI Realtime over WebSocket: api.openai.com, or any server that speaks its names (`--peer ws://host/v1/realtime`)."""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from types import TracebackType
from typing import Any, ClassVar, Literal, Self
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from connectors.codecs.openai_realtime import OpenAIRealtimeClient
from connectors.secret import Secret
from connectors.settings import read_settings
from connectors.transports.websocket import WebSocketTransport, open_websocket
from harness.core.clock import Clock
from harness.core.commands import AppendAudio, Command, Configure
from harness.core.connector import PeerOptions, Sink
from harness.core.errors import ConfigError, ConnectorError, PrerequisiteError
from harness.core.events import (
    ClosedBy,
    ConnectionClosed,
    ConnectionPhase,
    Note,
    PeerError,
    RoundTrip,
    SessionReady,
    WireFrame,
)
from harness.core.profile import Profile

OFFICIAL_URL = "wss://api.openai.com/v1/realtime"
OFFICIAL_HOST = "api.openai.com"
DEFAULT_MODEL = "gpt-realtime"
DEFAULT_KEY_ENV = "OPENAI_API_KEY"
SECRET_NAME = re.compile(r"key|token|secret|passw|auth|sig(nature)?$", re.IGNORECASE)
"""Names of URL parameters that carry secrets. What stands in a URL would be recorded."""
BUSY_CODES = frozenset({"session_limit_reached", "rate_limit_exceeded", "server_error", "overloaded"})
"""Errors while setting up that may pass: a server that is busy, or has not freed the session before."""
UPDATED_WAIT_S = 5.0
"""How long to wait for `session.updated`; some servers never send it."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What `--set` takes. silence_ms: server VAD's end-of-speech silence. ca: PEM file to trust. session: JSON object
    merged into the session settings. model_in_url: put the model into the URL's query."""

    dialect: Literal["ga", "beta"] = "ga"
    silence_ms: int | None = None
    transcribe: bool = True
    ca: str | None = None
    session: str = "{}"
    model_in_url: bool = True


class OpenAIConnection:
    """One session: codec and transport joined."""

    def __init__(self, codec: OpenAIRealtimeClient, sink: Sink, clock: Clock, *, wire: bool) -> None:
        self._codec = codec
        self._sink = sink
        self._clock = clock
        self._wire = wire
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._updated: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.transport: WebSocketTransport

    def prepare(self, command: Command) -> bytes:
        messages = self._codec.encode(command)
        if self._wire and not isinstance(command, AppendAudio):  # what was said stands in the user's sound file
            for message in messages:
                self._sink(WireFrame(t_ns=self._clock.now_ns(), direction="out", text=message))
        return b"".join(self.transport.prepare(message) for message in messages)

    def send(self, prepared: bytes) -> int:
        return self.transport.write(prepared)

    def when_drained(self, callback: Any) -> None:
        self.transport.when_drained(callback)

    def ping(self) -> None:
        self.transport.ping()

    async def close(self) -> None:
        await self.transport.close()

    async def configure(self, configure: Configure, timeout_s: float) -> None:
        """Wait for the session, send our settings, wait for the peer's yes."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._ready
        except TimeoutError as exc:
            raise ConnectorError(f"no session.created within {timeout_s:g} s", kind="timeout", retryable=True) from exc
        self.send(self.prepare(configure))
        try:
            async with asyncio.timeout(min(timeout_s, UPDATED_WAIT_S)):
                await self._updated
        except TimeoutError:
            message = f"the peer did not confirm the settings within {UPDATED_WAIT_S:g} s; went on without"
            self._sink(Note(t_ns=self._clock.now_ns(), code="unconfirmed", message=message))
            self._sink(ConnectionPhase(t_ns=self._clock.now_ns(), phase="configured"))

    def on_message(self, message: bytes, is_text: bool, t_ns: int, first_byte_ns: int) -> None:
        if self._wire:
            self._sink(WireFrame(t_ns=t_ns, direction="in", text=message.decode("utf-8", "replace")))
        for event in self._codec.decode(message, t_ns, first_byte_ns):
            self._sink(event)
            if isinstance(event, SessionReady):
                waiting = self._ready if event.phase == "created" else self._updated
                if not waiting.done():
                    waiting.set_result(None)
                    self._sink(ConnectionPhase(t_ns=t_ns, phase="ready" if event.phase == "created" else "configured"))
                    self._check_rate(event)
            elif isinstance(event, PeerError):
                self._fail(f"{event.code}: {event.message}" if event.code else event.message, "peer", event.code)

    def _check_rate(self, ready: SessionReady) -> None:
        """A reader must know when the peer declares another rate than was asked for: durations rest on it."""
        asked = OpenAIRealtime.declared.output_rate_hz
        if ready.phase == "updated" and ready.output_rate_hz not in (0, asked):
            message = f"the peer declares {ready.output_rate_hz} Hz for its audio, {asked} Hz were asked for"
            self._sink(Note(t_ns=ready.t_ns, code="rate", message=message + "; durations follow its word"))

    def on_closed(self, t_ns: int, by: ClosedBy, code: int | None, reason: str) -> None:
        self._sink(ConnectionClosed(t_ns=t_ns, by=by, code=code, reason=reason))
        self._fail(f"closed while setting up ({code or by}{': ' + reason if reason else ''})", "connect", None)

    def _fail(self, message: str, kind: Literal["peer", "connect"], code: str | None) -> None:
        """Whoever still waits for the set-up learns that it failed."""
        retryable = kind == "connect" or code in BUSY_CODES
        for waiting in (self._ready, self._updated):
            if not waiting.done():
                waiting.set_exception(ConnectorError(message, kind=kind, retryable=retryable, code=code))
                waiting.exception()  # seen: no warning when nobody waits


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
        self.url = self._url(options.target or OFFICIAL_URL)
        self._host = urlsplit(self.url).hostname or ""
        official = self._host == OFFICIAL_HOST
        self._key_env = options.key_env or (DEFAULT_KEY_ENV if official else None)
        self._session = self._extra()
        self._key = self._read_key()
        self._secret = Secret(self._key)

    @property
    def label(self) -> str:
        if self._host == OFFICIAL_HOST:
            return f"openai-{self._options.model or DEFAULT_MODEL}"
        return f"openai-{urlsplit(self.url).netloc}"

    @property
    def profile(self) -> Profile:
        return self.declared

    @property
    def config(self) -> dict[str, Any]:
        return {
            "url": self.url,
            "model": self._options.model,
            "key_env": self._key_env,
            "insecure": self._options.insecure,
            **msgspec.structs.asdict(self.settings),
        }

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def connect(self, configure: Configure, sink: Sink) -> OpenAIConnection:
        configure = msgspec.structs.replace(
            configure,
            silence_ms=configure.silence_ms if configure.silence_ms is not None else self.settings.silence_ms,
            transcribe=self.settings.transcribe,
            extra={**configure.extra, **self._session},
        )
        try:
            return await self._open(configure, self._secret.guard(sink))
        except ConnectorError as exc:
            raise self._secret.scrubbed(exc) from exc

    async def _open(self, configure: Configure, sink: Sink) -> OpenAIConnection:
        codec = OpenAIRealtimeClient(dialect=self.settings.dialect)
        connection = OpenAIConnection(codec, sink, self._clock, wire=self._options.wire)
        connection.transport = await open_websocket(
            self.url,
            clock=self._clock,
            on_message=connection.on_message,
            on_phase=lambda phase, t_ns: sink(ConnectionPhase(t_ns=t_ns, phase=phase)),
            on_rtt=lambda t_ns, rtt_ns: sink(RoundTrip(t_ns=t_ns, rtt_ns=rtt_ns)),
            on_closed=connection.on_closed,
            headers=self._headers(),
            tls=self._tls(),
            timeout_s=self._options.timeout_s,
        )
        try:
            await connection.configure(configure, self._options.timeout_s)
        except BaseException:
            await connection.close()
            raise
        return connection

    def _url(self, target: str) -> str:
        try:
            parts = urlsplit(target)
            _ = parts.port
        except ValueError as exc:
            raise ConfigError("--peer: the URL's host or port cannot be read; write ws://HOST:PORT/PATH") from exc
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        if parts.username or parts.password or any(SECRET_NAME.search(name) for name in query):
            raise ConfigError("put no key into the URL: name an environment variable with --key-env")
        if parts.scheme not in ("ws", "wss") or not parts.hostname:
            raise ConfigError(f"{target!r} is no WebSocket URL; it looks like ws://127.0.0.1:8000/v1/realtime")
        model = self._options.model or (DEFAULT_MODEL if parts.hostname == OFFICIAL_HOST else None)
        if model and self.settings.model_in_url:
            query["model"] = model
        path = parts.path if parts.path not in ("", "/") else "/v1/realtime"
        return urlunsplit((parts.scheme, parts.netloc, path, urlencode(query), ""))

    def _extra(self) -> dict[str, Any]:
        try:
            return msgspec.json.decode(self.settings.session, type=dict[str, Any])
        except msgspec.DecodeError as exc:
            raise ConfigError(f"--set session=…: not a JSON object ({exc})") from exc

    def _read_key(self) -> str | None:
        if self._key_env is None:
            return None
        if not self._key_env.isidentifier():
            raise ConfigError("--key-env takes the name of an environment variable, not a key")
        key = os.environ.get(self._key_env, "").strip()
        if not key:
            raise PrerequisiteError(f"set the environment variable {self._key_env} to the key for {self._host}")
        if not key.isascii() or not key.isprintable():
            raise ConfigError(f"{self._key_env} holds characters that no key has; set it again")
        return key

    def _headers(self) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        if self.settings.dialect == "beta":
            headers["OpenAI-Beta"] = "realtime=v1"
        return headers

    def _tls(self) -> ssl.SSLContext | None:
        if not self.url.startswith("wss:"):
            return None
        try:
            context = ssl.create_default_context(cafile=self.settings.ca)
        except (OSError, ssl.SSLError) as exc:
            raise ConfigError(f"--set ca={self.settings.ca}: not a readable PEM file") from exc
        if self._options.insecure:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context
