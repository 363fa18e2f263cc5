"""A dialect's audio: user PCM16 into the bytes of an append, the bytes of a delta into PCM16. Rates in Hz, mono."""

from __future__ import annotations

import struct
from typing import Protocol

from connectors.codecs.openai_dialects import Coding
from harness.core.audio import PCM16_BYTES


class AudioUp(Protocol):
    """The user's side of one session."""

    def push(self, pcm: bytes) -> bytes:
        """The bytes to send for `pcm`, all of it. Raises ConfigError for a chunk of a length that the coding lacks."""
        ...


class AudioDown(Protocol):
    """One stream of answer audio. rate_hz: what the stream itself says, 0 for nothing."""

    @property
    def rate_hz(self) -> int: ...

    def push(self, data: bytes) -> bytes: ...


class WholeDown(AudioDown, Protocol):
    """A stream that goes on from answer to answer. skipped: samples that were no sound (a pre-skip). broken: nothing
    more will come out."""

    @property
    def skipped(self) -> int: ...
    @property
    def broken(self) -> bool: ...


class RawUp:
    """PCM16 as it is."""

    def push(self, pcm: bytes) -> bytes:
        return pcm


class OggOpusUp:
    """One Ogg-Opus stream. Opus needs its library, which is imported here only."""

    def __init__(self, rate_hz: int) -> None:
        from connectors.codecs.ogg_opus import OggOpusEncoder

        self._encoder = OggOpusEncoder(rate_hz)

    def push(self, pcm: bytes) -> bytes:
        return self._encoder.push_whole(pcm)


class WavUp:
    """Each piece a complete WAV file."""

    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz

    def push(self, pcm: bytes) -> bytes:
        form = struct.pack("<HHIIHH", 1, 1, self._rate_hz, self._rate_hz * PCM16_BYTES, PCM16_BYTES, 8 * PCM16_BYTES)
        chunks = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(pcm)) + pcm
        return b"RIFF" + struct.pack("<I", len(chunks)) + chunks


def audio_up(coding: Coding, rate_hz: int) -> AudioUp:
    """How user audio at `rate_hz` goes up."""
    if coding == "ogg_opus":
        return OggOpusUp(rate_hz)
    return WavUp(rate_hz) if coding == "wav" else RawUp()


def whole_down(coding: Coding, rate_hz: int) -> WholeDown | None:
    """The one stream of all answers, where the coding has one; else each answer gets a `PcmStream`, which knows PCM16
    cut anywhere, with or without WAV headers."""
    if coding != "ogg_opus":
        return None
    from connectors.codecs.ogg_opus import OggOpusDecoder

    return OggOpusDecoder(rate_hz)
