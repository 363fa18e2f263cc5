"""Moshi's socket as its server sees it: the user's Ogg-Opus in, a frame of 80 ms and a piece of text out for each.

Sans-IO. There are no turns, no errors and no end of an answer on this wire, so most events are none.
Source: protocol sheet, sections 7.1 and 7.2.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Literal

import msgspec
from websockets.frames import Frame, Opcode

from connectors.codecs.moshi import AUDIO, ERROR, HANDSHAKE, METADATA, RATE_HZ, TEXT
from connectors.codecs.ogg_opus import OggOpusDecoder, OggOpusEncoder
from connectors.codecs.openai_requests import AppendInput, Invalid, Request
from connectors.codecs.server import ServerEvents, ServerSession


class MoshiEvents(ServerEvents):
    """What the agent says in Moshi's tongue. The text of an answer is not written when the plan says so but kept, and
    goes out a piece at a time, each right behind a frame of the answer's sound (`next_text`)."""

    continuous = True
    mouth_rate_hz = RATE_HZ

    def __init__(self) -> None:
        self._encoder = OggOpusEncoder(RATE_HZ)
        self._pieces: dict[str, deque[str]] = {}
        self.sounding = ""

    @property
    def lookahead_samples(self) -> int:
        """How far sound lies behind in the frames, at the mouth's rate."""
        return self._encoder.lookahead_samples

    def frame(self, payload: bytes) -> bytes:
        return Frame(Opcode.BINARY, payload).serialize(mask=False)

    def session(self, phase: Literal["created", "updated"], session: dict[str, Any]) -> list[bytes]:
        return [bytes((HANDSHAKE,))] if phase == "created" else []

    def transcript_delta(self, response: str, item: str, text: str) -> list[bytes]:
        self._pieces.setdefault(response, deque()).append(text)
        return []

    def response_opened(self, response: str, item: str, previous: str | None) -> list[bytes]:
        self._pieces = {response: deque()}
        return []

    def playback(self, state: Literal["started", "stopped", "cleared"], response: str) -> list[bytes]:
        self.sounding = response if state == "started" else ""
        return []

    def error(self, kind: str, code: str, message: str, *, echo: str | None = None) -> list[bytes]:
        return [bytes((ERROR,)) + f"{code}: {message}".encode()]

    def other(self, name: str, body: dict[str, Any]) -> list[bytes]:
        return [bytes((METADATA,)) + msgspec.json.encode({"name": name, **body})]

    def broken(self) -> list[bytes]:
        return [bytes((TEXT, 0xFF, 0xFE))]

    def sound(self, pcm: bytes) -> bytes:
        """One frame of the stream that never stops."""
        return bytes((AUDIO,)) + self._encoder.push(pcm)

    def next_text(self) -> bytes | None:
        """The piece of text that goes with the frame just sent, if the answer that sounds has one left."""
        pieces = self._pieces.get(self.sounding)
        return bytes((TEXT,)) + pieces.popleft().encode() if pieces else None


class MoshiServerSession(ServerSession):
    """One session at the server's side. As in Kyutai's servers the pre-skip is not taken off the user's audio, so
    that four packets of 20 ms are one frame; sound lies the encoder's look-ahead late in it."""

    input_rate_hz = RATE_HZ

    def __init__(self) -> None:
        self.events = MoshiEvents()
        self.session: dict[str, Any] = {}
        self._decoder = OggOpusDecoder(RATE_HZ, trim=False)
        self._told = False

    def decode(self, data: bytes, is_text: bool = True) -> list[Request | Invalid]:
        """Audio; whatever else a client sends is nothing to a Moshi server."""
        if is_text or data[:1] != bytes((AUDIO,)):
            return []
        pcm = self._decoder.push(data[1:])
        if self._decoder.broken and not self._told:
            self._told = True
            return [Invalid(code="invalid_audio", message="the audio is no Ogg-Opus stream")]
        return [AppendInput(audio=pcm)] if pcm else []
