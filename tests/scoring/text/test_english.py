"""English words: clean-up, Whisper's normaliser, and the words of mixed answers."""

from __future__ import annotations

import pytest

from scoring.text.code_switching import english_alignment, english_words, language_of
from scoring.text.english import normalise, word_error_rate, words

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "normalised"),
    [
        ("<|en|>  It's twenty-five colours .", "it is 25 colors"),
        ("The Wizard-of-Oz!", "the wizard of oz"),
        ("I won't go to Dr. Smith", "i will not go to doctor smith"),
        ("the cause of it, kinda", "the cause of it kinda"),
        ("", ""),
    ],
)
def test_text_is_normalised_as_openai_does(text: str, normalised: str):
    assert normalise(text) == normalised


def test_word_error_rate_counts_words_of_the_text():
    rate = word_error_rate("Leonardo da Vinci painted it.", "leonardo da vinchy painted it")
    assert (rate.edits, rate.length) == (1, 5)
    assert words("...") == []


def test_only_english_words_of_a_mixed_answer_are_aligned():
    text, heard = "Transformer的self-attention机制，it's好用", "transformer的 self a tension 机制 it's好用"
    assert english_words(text) == ["transformer", "self", "attention", "it's"]
    found = english_alignment(text, heard)
    assert (found.hits, found.errors, found.length) == (3, 2, 4)


@pytest.mark.parametrize(
    ("text", "language"), [("用GPU训练", "zh"), ("I like 猫", "en"), ("…", ""), ("用 the model", "en"), ("好 ok", "zh")]
)
def test_language_of_an_answer(text: str, language: str):
    assert language_of(text) == language
