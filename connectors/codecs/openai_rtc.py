"""OpenAI Realtime's events on a data channel: as over WebSocket, but audio goes on the tracks. Sans-IO.

Source: protocol sheet, section 3.
"""

from __future__ import annotations

from typing import Any

import msgspec

from connectors.codecs.client import Message
from connectors.codecs.openai_realtime import OpenAIRealtimeClient
from connectors.codecs.opus import RATE_HZ
from harness.core import commands
from harness.core.commands import Command, Configure
from harness.core.events import AudioReceived, Event, RawReceived

STRAY_AUDIO = "response.output_audio.delta"


class OpenAIRtcClient(OpenAIRealtimeClient):
    """One session. Binary messages are the user's audio for the track; an empty one ends the stream for now."""

    def __init__(self) -> None:
        super().__init__(output_rate_hz=RATE_HZ)

    def encode(self, command: Command) -> list[Message]:
        match command:
            case commands.AppendAudio():
                return [command.pcm]
            case commands.Configure():
                return [_encode(without_formats(msgspec.json.decode(message))) for message in super().encode(command)]
            case commands.Commit():
                return [*super().encode(command), b""]
            case commands.Cancel():
                # Both are wanted: the one stops the model, the other what it has said already.
                return [*super().encode(command), _encode({"type": "output_audio_buffer.clear"})]
            case _:
                return super().encode(command)

    def decode(self, data: str | bytes, t_ns: int, first_byte_ns: int, is_text: bool = True) -> list[Event]:
        """Audio that a server sends here as well is left out: what is heard is the track."""
        return [_muted(event) for event in super().decode(data, t_ns, first_byte_ns, is_text)]

    def session(self, configure: Configure) -> dict[str, Any]:
        """The session object that goes up with the offer."""
        (message,) = super().encode(configure)
        body: dict[str, Any] = without_formats(msgspec.json.decode(message))["session"]
        return body


def without_formats(body: dict[str, Any]) -> dict[str, Any]:
    """A `session.update` without audio formats: on the tracks SDP has settled them."""
    for side in body["session"].get("audio", {}).values():
        side.pop("format", None)
    return body


def _muted(event: Event) -> Event:
    if not isinstance(event, AudioReceived):
        return event
    return RawReceived(
        name=STRAY_AUDIO, t_ns=event.t_ns, first_byte_ns=event.first_byte_ns, wire_bytes=event.wire_bytes
    )


def _encode(body: dict[str, Any]) -> str:
    return msgspec.json.encode(body).decode()
