"""A dialect's audio: user PCM16 into the bytes of an append, the bytes of a delta into PCM16. Rates in Hz, mono."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from connectors.codecs.bounds import make_room
from connectors.codecs.openai_dialects import Coding
from connectors.codecs.pcm_stream import PcmStream
from connectors.codecs.wav import wav_header


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
        return wav_header(self._rate_hz, len(pcm)) + pcm


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


class Piece(NamedTuple):
    """What one delta held. rate_hz: what the audio itself says, 0 for nothing. skipped: samples before these that were
    no sound."""

    pcm: bytes
    rate_hz: int
    skipped: int


class AnswerAudio:
    """The audio of one session's answers: a stream for each response and item, or one for all where the coding is so.

    rate_hz: at which a coding that can choose is decoded.
    """

    def __init__(self, coding: Coding, rate_hz: int) -> None:
        self.streams: dict[tuple[str, str], PcmStream] = {}
        self._whole = whole_down(coding, rate_hz)
        self._skipped = 0

    def push(self, data: bytes, response: str, item: str) -> Piece | None:
        """The samples that `data` completes; None once the stream of all answers is broken."""
        if self._whole is None:
            stream = self._stream(response, item)
            pcm = stream.push(data)
            return Piece(pcm, stream.rate_hz, 0)
        pcm = self._whole.push(data)
        if self._whole.broken:
            return None
        before, self._skipped = self._skipped, self._whole.skipped
        return Piece(pcm, self._whole.rate_hz, self._skipped - before)

    def forget(self, response: str) -> None:
        """The response is over: its streams go."""
        self.streams = {key: stream for key, stream in self.streams.items() if key[0] != response}

    def _stream(self, response: str, item: str) -> PcmStream:
        stream = self.streams.get((response, item))
        if stream is None:
            make_room(self.streams)
            stream = self.streams[(response, item)] = PcmStream()
        return stream
