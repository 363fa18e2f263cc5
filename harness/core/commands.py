"""What a client can tell a peer, independent of any wire protocol. Codecs turn these into bytes and back."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="command"):
    """Base of all commands."""


class Configure(Command, frozen=True, kw_only=True, tag="configure"):
    """Session settings. turn: who finds the end of the user's turn. extra: peer-specific keys, passed on as they are.

    language: of the user's speech (BCP 47 primary tag), a hint for the peer's recogniser.
    """

    turn: Literal["manual", "vad"] = "vad"
    instructions: str | None = None
    voice: str | None = None
    model: str | None = None
    language: str | None = None
    transcribe: bool = True
    silence_ms: int | None = None
    extra: dict[str, Any] = msgspec.field(default_factory=dict)


class AppendAudio(Command, frozen=True, kw_only=True, tag="append_audio"):
    """User audio, PCM16 little-endian mono at the profile's input rate."""

    pcm: bytes


class Commit(Command, frozen=True, kw_only=True, tag="commit"):
    """The user's turn is over (manual turns)."""


class ClearInput(Command, frozen=True, kw_only=True, tag="clear_input"):
    """Forget the user audio that has not been committed."""


class CreateResponse(Command, frozen=True, kw_only=True, tag="create_response"):
    """Answer now."""


class Cancel(Command, frozen=True, kw_only=True, tag="cancel"):
    """Stop the answer that is under way."""

    response: str | None = None


class Truncate(Command, frozen=True, kw_only=True, tag="truncate"):
    """Only `audio_end_ms` of answer item `item` was heard."""

    item: str
    audio_end_ms: int
    content_index: int = 0


class AddHistory(Command, frozen=True, kw_only=True, tag="add_history"):
    """Put a text message of the past into the conversation."""

    role: Literal["system", "user", "assistant"]
    text: str


AnyCommand = Configure | AppendAudio | Commit | ClearInput | CreateResponse | Cancel | Truncate | AddHistory
