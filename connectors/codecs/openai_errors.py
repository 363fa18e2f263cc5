"""What an OpenAI Realtime server says of its errors and warnings, as events. at: the message's instants and length."""

from __future__ import annotations

from typing import Any

from connectors.codecs import openai_frames as frames
from connectors.codecs.bounds import name
from connectors.codecs.openai_names import FATAL_CODES
from harness.core.events import Note, PeerError


def note_of(code: str, says: str, body: frames.ErrorBody | str | None, at: dict[str, Any]) -> Note:
    """A note that `says` something in our words, and the peer's own behind them."""
    error = frames.ErrorBody(message=body) if isinstance(body, str) else body or frames.ErrorBody()
    words = " ".join(part for part in (error_code(error), _line(error)) if part)
    return Note(t_ns=at["t_ns"], code=code, message=f"{says}: {words}" if words else says)


def _line(error: frames.ErrorBody) -> str:
    return " ".join((error.message or "").split())


def error_code(error: frames.ErrorBody) -> str:
    """The error's code, or its type where it has none."""
    return name(str(error.code) if error.code not in (None, "") else error.type)


def peer_error(error: frames.ErrorBody, at: dict[str, Any]) -> PeerError:
    """The error as an event; fatal where its code ends the session."""
    code = error_code(error)
    return PeerError(code=code, message=_line(error), fatal=code in FATAL_CODES, **at)
