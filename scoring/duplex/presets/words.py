"""When the agent said which word, from whichever recogniser is at hand; its name goes with every figure."""

from __future__ import annotations

import msgspec

from harness.core.audio import int16_to_float, samples_to_ns
from harness.core.errors import PrerequisiteError
from harness.core.scorer import Unscored
from harness.engines.asr import FasterWhisper, Recognizer
from scoring.duplex.presets.voices import Channel, agent_channel
from scoring.timing.recording import Recording

NO_WORDS = Unscored(reason="no words: the agent was not transcribed")


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """One word, [start_ns, end_ns) on the session's clock."""

    text: str
    start_ns: int
    end_ns: int


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """The agent's words in order of their start. asr: recogniser, model and decoding."""

    words: tuple[Word, ...]
    asr: str


def words_of(recording: Recording, recognizer: Recognizer, language: str = "") -> Words | Unscored:
    """The words of the agent as heard. language: `en` or `zh`, by default that of the session's first query."""
    channel = agent_channel(recording)
    if not isinstance(channel, Channel):
        return channel
    spoken = language or next(iter(recording.session.header.languages), "") or "en"
    transcript = recognizer.transcribe(int16_to_float(channel.samples), channel.rate_hz, spoken)
    if transcript.words is None:
        return Unscored(reason=f"{transcript.model} gives no word times")
    words = [
        Word(
            text=word.text,
            start_ns=channel.origin_ns + samples_to_ns(word.start_sample, channel.rate_hz),
            end_ns=channel.origin_ns + samples_to_ns(word.end_sample, channel.rate_hz),
        )
        for word in transcript.words
    ]
    return Words(words=tuple(sorted(words, key=lambda word: word.start_ns)), asr=transcript.model)


def recognizer_at_hand() -> Recognizer | Unscored:
    """faster-whisper with word times, or what must be installed for it."""
    try:
        return FasterWhisper(word_times=True)
    except PrerequisiteError as exc:
        return Unscored(reason=f"no words: {exc}")
