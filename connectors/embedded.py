"""The embedded agent as a peer: starts its server in a process of its own and speaks one of its protocols to it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import Mapping
from types import TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

import msgspec

from connectors.openai import OpenAIRealtime
from harness.core.clock import Clock
from harness.core.commands import Configure
from harness.core.connector import Connection, Peer, PeerOptions, Sink
from harness.core.errors import ConfigError, ConnectorError, PrerequisiteError, nearest
from harness.core.plugins import CONNECTORS, load
from harness.core.profile import Profile

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 5.0
OWN_SETTINGS = ("protocol", "tls", "truth", "realtime")
"""protocol: which of the agent's protocols to speak. tls: serve wss. truth: file for the true instants. realtime:
schedule the agent's loop as SCHED_FIFO where allowed, so that a calibration on a busy machine does not measure the
agent's own waiting."""
PATHS = {
    "openai": ("ws", "/v1/realtime"),
    "openai-webrtc": ("http", "/v1/realtime/calls"),
    "openai-live": ("ws", "/v1/live/sessions"),
    "gemini": ("ws", "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"),
    "moshi": ("ws", "/api/chat"),
    "chat": ("http", "/v1/chat/completions"),
    "small-webrtc": ("http", "/api/offer"),
}
"""By connector: scheme and path at the agent."""
FIFO_LEVEL = 10


class Listening(msgspec.Struct, frozen=True):
    """The one line that the agent prints when it listens."""

    url: str
    pid: int
    ca: str | None = None


class EmbeddedAgent:
    """The embedded voice agent, started here; `--set` takes its knobs (`firstpacket serve --knobs`)."""

    kind: ClassVar[str] = "agent"
    version: ClassVar[str] = "1"
    evidence: ClassVar[str] = "interop-tested"
    declared: ClassVar[Profile] = msgspec.structs.replace(OpenAIRealtime.declared, user_transcript=False)

    def __init__(self, options: PeerOptions, clock: Clock) -> None:
        if options.target:
            raise ConfigError("the embedded agent takes no target; settings go into --set key=value")
        if options.model:
            raise ConfigError("the embedded agent is one model: leave --model away, or name another --peer")
        self._options = options
        self._clock = clock
        self.protocol = options.settings.get("protocol", "openai")
        if self.protocol not in PATHS:
            raise ConfigError(f"protocol={self.protocol}: {nearest(self.protocol, PATHS)}")
        self._kind: Any = load(CONNECTORS, self.protocol)
        rest = {key: value for key, value in options.settings.items() if key not in OWN_SETTINGS}
        self._client, self._knobs = self._shared_out(rest)
        self._tls = _yes(options.settings, "tls")
        self._profile = self._profile_of(self._speaker("127.0.0.1:1", self._client))
        self._realtime = _yes(options.settings, "realtime")
        self.truth = options.settings.get("truth")
        self._process: asyncio.subprocess.Process | None = None
        self._peer: Peer | None = None

    @property
    def label(self) -> str:
        return f"agent ({self._options.alias})" if self._options.alias else "agent"

    @property
    def ignores(self) -> tuple[str, ...]:
        found = getattr(self._kind, "ignores", ())
        return found if isinstance(found, tuple) else ()

    @property
    def profile(self) -> Profile:
        return self._profile

    @property
    def config(self) -> dict[str, Any]:
        return {"tls": self._tls, **self._client, **self._knobs, "protocol": self.protocol}

    async def __aenter__(self) -> Self:
        command = [sys.executable, "-P", "-m", "connectors.agent", "--port", "0", "--exit-with-stdin"]
        for key, value in self._knobs.items():
            command += ["--set", f"{key}={value}"]
        if self._tls:
            command.append("--tls")
        if self.truth:
            command += ["--truth", self.truth]
        with tempfile.TemporaryFile() as complaints:
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=complaints,
                start_new_session=True,  # Ctrl-C is ours to handle: the agent ends with our end of its input
            )
            try:
                listening = await self._listening(complaints)
            except BaseException:
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()
                await self._process.wait()
                raise
        if self._realtime and hasattr(os, "sched_setscheduler"):
            with contextlib.suppress(PermissionError):
                os.sched_setscheduler(listening.pid, os.SCHED_FIFO, os.sched_param(FIFO_LEVEL))
        settings = dict(self._client)
        if listening.ca:
            settings["ca"] = listening.ca
        self._peer = await self._speaker(urlsplit(listening.url).netloc, settings).__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._peer is not None:
            await self._peer.__aexit__(kind, error, trace)
        process = self._process
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def connect(self, configure: Configure, sink: Sink) -> Connection:
        if self._peer is None:
            raise ConnectorError("the embedded agent is not running", kind="connect")
        return await self._peer.connect(configure, sink)

    def _speaker(self, netloc: str, settings: dict[str, str]) -> Peer:
        """The connector that speaks to the agent at `netloc`. Raises ConfigError for a setting that it refuses."""
        scheme, path = PATHS[self.protocol]
        target = f"{scheme}{'s' if self._tls else ''}://{netloc}{path}"
        options = msgspec.structs.replace(self._options, target=target, settings=settings, key_env=None)
        peer: Peer = self._kind(options, self._clock)
        return peer

    def _profile_of(self, speaker: Peer) -> Profile:
        """The connector's own, as its settings make it; the agent only writes what it is told that the user said."""
        declared = speaker.profile
        if declared.pacing == "burst" and self._knobs.get("delivery") == "paced":
            declared = msgspec.structs.replace(declared, pacing="paced")
        told = bool(self._knobs.get("user_transcript"))
        return msgspec.structs.replace(declared, user_transcript=declared.user_transcript and told)

    def _shared_out(self, settings: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """Settings of the client, and knobs of the agent: all the rest. What is none, the agent refuses."""
        known = {field.name for field in msgspec.structs.fields(self._kind.settings_kind)}
        both = {"dialect"} if self.protocol == "openai" else set()
        client = {key: value for key, value in settings.items() if key in known}
        return client, {key: value for key, value in settings.items() if key not in known or key in both}

    async def _listening(self, complaints: Any) -> Listening:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                line = await process.stdout.readline()
            return msgspec.json.decode(line, type=Listening)
        except (TimeoutError, msgspec.DecodeError) as exc:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            code = await process.wait()
            complaints.seek(0)
            said = complaints.read().decode("utf-8", "replace").strip().splitlines()
            why = said[-1] if said else f"exit code {code}"
            if code in (2, 3):
                raise (ConfigError if code == 2 else PrerequisiteError)(why) from exc
            raise ConnectorError(f"the embedded agent did not start: {why}", kind="connect") from exc


def _yes(settings: Mapping[str, str], name: str) -> bool:
    value = settings.get(name, "false").lower()
    if value not in ("true", "false", "1", "0", "yes", "no"):
        raise ConfigError(f"{name}={value}: write true or false")
    return value in ("true", "1", "yes")
