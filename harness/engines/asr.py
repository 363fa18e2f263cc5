"""Speech recognition: the `Recognizer` interface and Whisper through faster-whisper (extra `asr`)."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from harness.core.audio import Float32
from harness.core.errors import ConfigError
from harness.engines import store
from harness.engines.extras import require
from harness.engines.pinned import WHISPER_BASE
from harness.engines.resample import resample

WHISPER_RATE_HZ = 16_000
SIMPLIFIED_PROMPTS = {"zh": "以下是普通话的句子，请用简体中文。"}
"""Without a simplified prompt Whisper base answers Mandarin in traditional characters."""


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """One recognised word and where it lies in the input, in samples at the input's rate."""

    text: str
    start_sample: int
    end_sample: int


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """What was recognised; `words` is None where the recogniser gives no times; `model` names model and decoding."""

    text: str
    words: tuple[Word, ...] | None
    model: str


class Recognizer(Protocol):
    """Turns speech into text."""

    def transcribe(self, pcm: Float32, rate_hz: int, language: str) -> Transcript:
        """Transcribe mono float32 in [-1, 1], shape (n,), any rate; language `en` or `zh`. Blocks; not for a loop."""


class FasterWhisper:
    """Whisper on CTranslate2, int8 on the CPU, greedy, without fallback temperatures: the same input, the same text.

    model: name of a pinned model, local folder, or hub id of a CTranslate2 conversion. Raises PrerequisiteError when
    the packages of the extra `asr` or the weights are missing.
    """

    def __init__(self, model: str = WHISPER_BASE.name, *, threads: int = 1, word_times: bool = False) -> None:
        self._module = require("faster_whisper", "asr")
        require("zhconv", "asr")
        folder = store.resolve_with(model, ("model.bin", "config.json"))
        self._word_times = word_times
        self._whisper: Any = self._module.WhisperModel(
            str(folder), device="cpu", compute_type="int8", cpu_threads=threads
        )
        self.name = f"{model} (faster-whisper {self._module.__version__}, int8, beam 1)"

    def transcribe(self, pcm: Float32, rate_hz: int, language: str) -> Transcript:
        """As `Recognizer.transcribe`; Mandarin comes out in simplified characters. Raises ConfigError for a language
        that Whisper does not know."""
        if language not in self._whisper.supported_languages:
            raise ConfigError(f"Whisper knows no language {language!r}")
        segments, _ = self._whisper.transcribe(
            resample(pcm, rate_hz, WHISPER_RATE_HZ),
            language=language,
            beam_size=1,
            temperature=0.0,
            initial_prompt=SIMPLIFIED_PROMPTS.get(language),
            condition_on_previous_text=False,
            word_timestamps=self._word_times,
        )
        listed = list(segments)
        words = None
        if self._word_times:
            words = tuple(
                Word(
                    text=_in_script(word.word.strip(), language),
                    start_sample=round(word.start * rate_hz),
                    end_sample=round(word.end * rate_hz),
                )
                for segment in listed
                for word in segment.words or ()
            )
        text = _in_script("".join(segment.text for segment in listed).strip(), language)
        return Transcript(text=text, words=words, model=self.name)


def simplified(text: str) -> str:
    """Traditional characters as simplified ones, the rest untouched. Raises PrerequisiteError without the extra."""
    return str(require("zhconv", "asr").convert(text, "zh-cn"))


def _in_script(text: str, language: str) -> str:
    return simplified(text) if language == "zh" else text
