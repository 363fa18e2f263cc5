"""Token ids of Qwen's Omni models: a conversation as a prompt, an answer as text, a tokenizer where there is none.

The chat format (ChatML) and the ids of its marks are those of Qwen2's tokenizer, which 2.5-Omni and 3-Omni share;
source: `tokenizer_config.json` of Qwen/Qwen2.5-Omni-7B and Qwen/Qwen3-Omni-30B-A3B-Instruct.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from harness.engines.extras import require

IM_START, IM_END, NEWLINE = 151_644, 151_645, 198
SYSTEM, USER, ASSISTANT = 8_948, 872, 77_091
WORDS = 151_643
"""Ids below this are words and bytes; marks follow."""
HELD_TOKENS = 8
"""A character takes at most four bytes, so at most four tokens: what is still broken after this many is shown so."""


class AudioMarks(NamedTuple):
    """Ids around user audio, and the placeholder that stands once for each encoder output."""

    begin: int
    audio: int
    end: int


class Exchange(NamedTuple):
    """One turn of a conversation. audio_tokens: how many encoder outputs the user's audio has; answer: ids, without
    the final mark; that of the last turn is what the model is to say."""

    audio_tokens: int
    answer: Sequence[int] = ()


def prompt(system: Sequence[int], exchanges: Sequence[Exchange], marks: AudioMarks) -> list[int]:
    """The conversation up to the point where the model speaks. system: ids of the system message, empty for none."""
    ids: list[int] = []
    if system:
        ids += [IM_START, SYSTEM, NEWLINE, *system, IM_END, NEWLINE]
    for index, exchange in enumerate(exchanges):
        audio = [marks.begin, *[marks.audio] * exchange.audio_tokens, marks.end]
        ids += [IM_START, USER, NEWLINE, *audio, IM_END, NEWLINE, IM_START, ASSISTANT, NEWLINE]
        if index < len(exchanges) - 1:
            ids += [*exchange.answer, IM_END, NEWLINE]
    return ids


class Pieces:
    """Text of a token stream, token by token; a character whose bytes are spread over tokens comes with the last."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._held: list[int] = []

    def push(self, token: int) -> str:
        """The text that `token` completes; empty for marks and for part of a character."""
        self._held.append(token)
        text = str(self._tokenizer.decode(self._held, skip_special_tokens=True))
        if text.endswith("\ufffd") and len(self._held) < HELD_TOKENS:
            return ""
        self._held = []
        return text


def stand_in() -> Any:
    """A tokenizer in Qwen2's format (byte-level BPE, the marks at their ids) with made-up words in place of learned
    ones and no merges: it reads any text byte by byte, and every id below `WORDS` has a text. For random weights."""
    tokenizers = require("tokenizers", "local")
    transformers = require("transformers", "local")
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: index for index, letter in enumerate(letters)}
    line = vocabulary["\u010a"]
    vocabulary["\u010a"] = NEWLINE
    vocabulary[letters[NEWLINE]] = line
    for token in range(len(letters), WORDS):
        vocabulary[_word(token)] = token
    marks = [f"<|mark_{token}|>" for token in range(WORDS, IM_START + 30)]
    marks[IM_START - WORDS], marks[IM_END - WORDS] = "<|im_start|>", "<|im_end|>"
    vocabulary |= {mark: WORDS + index for index, mark in enumerate(marks)}
    core = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    core.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = tokenizers.decoders.ByteLevel()
    core.add_special_tokens(marks)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=core, clean_up_tokenization_spaces=False)


def _word(token: int) -> str:
    """A made-up word of its own for each number: a space, then three or more syllables."""
    text = ""
    while token or len(text) < 6:
        token, index = divmod(token, 75)
        text += "bdfgklmnprstvwz"[index // 5] + "aeiou"[index % 5]
    return f"\u0120{text}"
