"""What a peer looks like to the runner: a `Peer` for the whole run, a `Connection` for one session.

The runner paces and stamps; a connector only moves bytes. `send` never waits, so it can be called from a timer
callback at the exact instant; whether the bytes have left is told by `when_drained`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, ClassVar, Protocol, Self

import msgspec

from harness.core.clock import Clock
from harness.core.commands import Command, Configure
from harness.core.events import Event
from harness.core.profile import Profile

Sink = Callable[[Event], None]
"""Takes each stamped event of a session, in order of arrival; called inside the receive hook, returns at once."""

Prepared = Any
"""Wire bytes made ready ahead of their deadline; opaque to the runner."""


class PeerOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the user said about a peer. target: the name's rest or the URL; settings: `--set`, checked by the peer.

    key_env: name of the environment variable that holds the secret (never the secret itself). wire: raw text messages
    are handed to the sink too, as `WireFrame`. alias: what tells this peer from another of its name, for its label.
    headers: `Name: value` lines for every HTTP request and upgrade (`Name: $VARIABLE` keeps the value secret).
    """

    target: str = ""
    model: str | None = None
    key_env: str | None = None
    insecure: bool = False
    timeout_s: float = 30.0
    alias: str = ""
    wire: bool = False
    headers: tuple[str, ...] = ()
    settings: dict[str, str] = msgspec.field(default_factory=dict)


class Connection(Protocol):
    """One session with a peer. Made by `Peer.connect`, closed once by whoever asked for it."""

    def prepare(self, command: Command) -> Prepared:
        """Encode (and mask, and frame) ahead of time. Raises ConfigError for a command that the peer has not."""
        ...

    def send(self, prepared: Prepared) -> int:
        """Hand the bytes to the transport without waiting; return how many bytes it has not passed on yet.

        Raises ConnectorError when the connection is gone.
        """
        ...

    def when_drained(self, callback: Callable[[int], None]) -> None:
        """Call `callback(t_ns)` once the transport's write buffer is empty (at once if it is)."""
        ...

    def ping(self) -> None:
        """Ask for a round trip; the answer arrives as a `RoundTrip` event. Nothing where the wire has none."""
        ...

    async def close(self) -> None:
        """End the session politely and release everything; never raises for a connection that is already gone."""
        ...


class Peer(Protocol):
    """A peer for the length of a run; owns what its sessions share (a server process, a loaded model).

    Entry point group `firstpacket.connectors`: a class called with `(options, clock)`. Its docstring's first line is
    what `firstpacket peers` prints. Raises ConfigError for bad options, PrerequisiteError for what is missing.

    Optional: `settings_kind`, the struct of its settings, whose field names are also taken from a URL's query.
    `ignores`: which of `model`, `instructions` and `voice` it has no place for; a session that was given one says so.
    """

    kind: ClassVar[str]
    version: ClassVar[str]

    @property
    def label(self) -> str:
        """Short name for tables and directories, without secrets."""
        ...

    @property
    def profile(self) -> Profile: ...

    @property
    def config(self) -> dict[str, Any]:
        """Resolved options for the session header, without secrets."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def connect(self, configure: Configure, sink: Sink) -> Connection:
        """Open one session and return when it is configured.

        Emits ConnectionPhase and SessionReady events on the way. Raises ConnectorError.
        """
        ...


PeerFactory = Callable[[PeerOptions, Clock], Peer]
