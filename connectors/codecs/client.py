"""What every client codec is to a connection: commands in, messages out; messages in, stamped events out. Sans-IO."""

from __future__ import annotations

from typing import Literal, Protocol

from harness.core.commands import Command
from harness.core.events import Event

Message = str | bytes
"""One message of the wire: text as str, binary as bytes."""

Opening = Literal["created_first", "created_only", "configure_first", "configure_only", "handshake"]
"""How a session is set up.

created_first: the peer says that the session exists, we send the settings, it confirms them. created_only: it never
confirms them. configure_first: the settings are our first message, any `SessionReady` confirms them. configure_only:
the peer says nothing at all. handshake: the peer's word alone is enough; its settings went with the address.
"""


class ClientCodec(Protocol):
    """One session of one protocol. Nothing that a peer sends may raise: what cannot be read is a `PeerError`."""

    opening: Opening

    def decode(self, data: bytes, t_ns: int, first_byte_ns: int, is_text: bool = True) -> list[Event]:
        """The events that one message means, in order, all with the message's instants (ns) and length."""
        ...

    def encode(self, command: Command) -> list[Message]:
        """The messages that carry out `command`; none where the protocol needs none for it.

        Raises ConfigError for a command that the protocol cannot carry out at all.
        """
        ...

    def replies(self) -> list[Message]:
        """What the messages decoded so far demand as an answer (an application's ping, say); emptied by the call."""
        ...
