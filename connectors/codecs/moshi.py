"""Moshi's socket as a client sees it: binary messages of one tag byte and a payload, an Ogg-Opus stream each way.

Sans-IO. PersonaPlex speaks the same; the Rust servers add tags. Source: protocol sheet, sections 7.1 to 7.3.
"""

from __future__ import annotations

from typing import Any

from connectors.codecs.bounds import name
from connectors.codecs.client import Message, Opening
from connectors.codecs.ogg_opus import OggOpusDecoder, OggOpusEncoder
from harness.core import commands
from harness.core.audio import PCM16_BYTES
from harness.core.commands import Command
from harness.core.errors import ConfigError
from harness.core.events import AudioReceived, Event, PeerError, RawReceived, SessionReady, TextReceived

RATE_HZ = 24_000
UNIT_MS = 80
"""One step of the model: 12.5 a second."""

HANDSHAKE, AUDIO, TEXT, CONTROL, METADATA, ERROR = range(6)
OTHER_TAGS = {METADATA: "metadata", 6: "ping", 7: "coloured text", 8: "image", 9: "codes"}
CONTROLS = ("start", "end turn", "pause", "restart")
UNREADABLE = "unreadable"


class MoshiClient:
    """One session's codec: keeps both Opus streams."""

    opening: Opening = "handshake"

    def __init__(self) -> None:
        self._encoder = OggOpusEncoder(RATE_HZ)
        self._decoder = OggOpusDecoder(RATE_HZ)

    @property
    def lookahead_samples(self) -> int:
        """How far the user's audio lies behind in its packets, at `RATE_HZ`."""
        return self._encoder.lookahead_samples

    def decode(self, data: bytes, t_ns: int, first_byte_ns: int, is_text: bool = True) -> list[Event]:
        """Events of one message, in order: often one, never none. Unknown tags come out as `RawReceived`."""
        at: dict[str, Any] = {"t_ns": t_ns, "first_byte_ns": first_byte_ns, "wire_bytes": len(data)}
        if is_text or not data:
            return [RawReceived(name="text message" if is_text else "empty message", **at)]
        tag, payload = data[0], data[1:]
        if tag == AUDIO:
            return self._audio(payload, at)
        if tag == TEXT:
            return [_text(payload, at)]
        if tag == HANDSHAKE:
            return [SessionReady(phase="created", model=_versions(payload), **at)]
        if tag == ERROR:
            said = " ".join(payload.decode("utf-8", "replace").split())
            return [PeerError(code="error", message=said, **at)]
        return [RawReceived(name=_tag_name(tag, payload), **at)]

    def encode(self, command: Command) -> list[Message]:
        """User audio as Opus packets, which it must fill; there is nothing to say to a model that only listens.

        Raises ConfigError for a chunk that is no whole number of packets, and for what Moshi has not.
        """
        match command:
            case commands.AppendAudio():
                pages = self._encoder.push_whole(command.pcm)
                return [bytes((AUDIO,)) + pages] if pages else []
            case commands.Configure() | commands.Commit() | commands.CreateResponse():
                return []
            case _:
                raise ConfigError(f"Moshi has no {type(command).__name__}: it takes audio alone")

    def replies(self) -> list[Message]:
        return []

    def _audio(self, payload: bytes, at: dict[str, Any]) -> list[Event]:
        decoder = self._decoder
        skipped, failures, broken = decoder.skipped, decoder.lost_bytes + decoder.errors, decoder.broken
        pcm = decoder.push(payload)
        audio = AudioReceived(
            samples=len(pcm) // PCM16_BYTES, rate_hz=RATE_HZ, skipped=decoder.skipped - skipped, pcm=pcm, **at
        )
        if broken or decoder.lost_bytes + decoder.errors == failures:
            return [audio]
        message = "the audio is no Ogg-Opus stream" + ("; given up" if decoder.broken else "")
        return [audio, PeerError(code=UNREADABLE, message=message, fatal=decoder.broken, **at)]


def _text(payload: bytes, at: dict[str, Any]) -> Event:
    try:
        return TextReceived(text=payload.decode(), kind="token", **at)
    except UnicodeDecodeError:
        return PeerError(code=UNREADABLE, message="a piece of text is no UTF-8", **at)


def _versions(payload: bytes) -> str:
    """Protocol and model version, which the Rust servers name (two little-endian 32-bit numbers)."""
    if len(payload) < 8:
        return ""
    protocol, model = (int.from_bytes(payload[at : at + 4], "little") for at in (0, 4))
    return f"protocol {protocol}, model {model}"


def _tag_name(tag: int, payload: bytes) -> str:
    if tag == CONTROL:
        which = payload[0] if payload else -1
        return name(f"control: {CONTROLS[which] if 0 <= which < len(CONTROLS) else which}")
    return OTHER_TAGS.get(tag, f"tag 0x{tag:02x}")
