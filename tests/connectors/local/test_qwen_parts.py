"""Parts of Qwen's Omni models that need no network: prompts, text pieces, blocks, a turn's audio."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from connectors.local.models.qwen_blocks import Blocks, Window
from connectors.local.models.qwen_hearing import Hearing
from connectors.local.models.qwen_stock import one_shot
from connectors.local.models.qwen_tokens import (
    ASSISTANT,
    IM_END,
    IM_START,
    NEWLINE,
    SYSTEM,
    USER,
    AudioMarks,
    Exchange,
    Pieces,
    prompt,
    stand_in,
)

MARKS = AudioMarks(begin=1, audio=2, end=3)


def test_a_prompt_by_hand():
    opening = [IM_START, ASSISTANT, NEWLINE]
    assert prompt([], [Exchange(2)], MARKS) == [IM_START, USER, NEWLINE, 1, 2, 2, 3, IM_END, NEWLINE, *opening]
    two = prompt([7, 8], [Exchange(1, [50, 51]), Exchange(1)], MARKS)
    heard = [IM_START, USER, NEWLINE, 1, 2, 3, IM_END, NEWLINE, *opening]
    system = [IM_START, SYSTEM, NEWLINE, 7, 8, IM_END, NEWLINE]
    assert two == [*system, *heard, 50, 51, IM_END, NEWLINE, *heard]


def test_an_answer_cut_off_before_its_first_word_still_has_an_end():
    ids = prompt([], [Exchange(1, []), Exchange(1, [])], MARKS)
    assert ids[8:13] == [IM_START, ASSISTANT, NEWLINE, IM_END, NEWLINE]
    assert ids[-3:] == [IM_START, ASSISTANT, NEWLINE]


class Letters:
    """A tokenizer of bytes: id 300 is a mark."""

    def decode(self, ids, skip_special_tokens):
        assert skip_special_tokens
        return bytes(token for token in ids if token < 256).decode(errors="replace")


def test_a_character_comes_with_the_token_that_completes_it():
    pieces = Pieces(Letters())
    assert [pieces.push(token) for token in "aé中".encode()] == ["a", "", "é", "", "", "中"]
    assert pieces.push(300) == ""
    assert pieces.push(ord("b")) == "b"


def test_bytes_that_are_no_character_are_shown_in_the_end():
    pieces = Pieces(Letters())
    said = [pieces.push(0x80) for _ in range(8)]
    assert said[:7] == [""] * 7
    assert set(said[7]) == {"\ufffd"}
    assert pieces.push(ord("c")) == "c"


def test_the_stand_in_tokenizer_has_the_real_ones_format():
    pytest.importorskip("torch")  # which comes with transformers
    tokenizer = stand_in()
    text = "say: é 中\nok"
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert len(ids) == len(text.encode())
    assert tokenizer.decode(ids, skip_special_tokens=True) == text
    assert tokenizer.encode("\n", add_special_tokens=False) == [NEWLINE]
    assert tokenizer.decode([IM_START, IM_END]) == "<|im_start|><|im_end|>"
    assert tokenizer.decode([IM_START, IM_END, 151_670], skip_special_tokens=True) == ""
    words = [tokenizer.decode([token]) for token in range(256, 151_643, 131)]
    assert len(set(words)) == len(words)
    assert all(word.startswith(" ") and word.strip().isalpha() for word in words)


def cut(blocks, lengths, final_at):
    """Windows as frames come one by one."""
    windows = []
    for have in range(1, lengths + 1):
        while (window := blocks.next(have, have == final_at)) is not None:
            windows.append((have, window))
    return windows


def test_blocks_by_hand():
    blocks = Blocks(first=2, largest=4, left=3, right=1)
    assert cut(blocks, 12, 12) == [
        (3, Window(0, 3, 0, 2)),
        (7, Window(0, 7, 2, 6)),
        (11, Window(3, 11, 6, 10)),
        (12, Window(7, 12, 10, 12)),
    ]
    assert blocks.next(12, True) is None


def test_aligned_blocks_start_at_a_multiple():
    blocks = Blocks(first=12, largest=12, left=13, right=12, align=12)
    assert [window for _, window in cut(blocks, 60, 60)] == [
        Window(0, 24, 0, 12),
        Window(0, 36, 12, 24),
        Window(0, 48, 24, 36),
        Window(12, 60, 36, 60),
    ]


def test_a_short_answer_is_one_block():
    assert cut(Blocks(first=12, largest=48, left=24, right=12), 5, 5) == [(5, Window(0, 5, 0, 5))]


def test_a_turn_has_whole_frames_and_a_least_length():
    hearing = Hearing(vad=False)
    assert len(hearing.take()) == 1_600
    assert hearing.push(np.full(1_601, 16_384, dtype=np.int16)) == []
    heard = hearing.take()
    assert heard.dtype == np.float32
    assert len(heard) == 1_760
    np.testing.assert_array_equal(heard, [0.5] * 1_601 + [0.0] * 159)
    assert len(hearing.take()) == 1_600


def test_a_stock_answer_that_makes_no_step_is_given_up():
    held = threading.Event()

    def generate(streamer):
        held.wait(10.0)
        return np.zeros(0, dtype=np.float32)

    with pytest.raises(TimeoutError, match="generate made no step"):
        list(one_shot(generate, None, [], [], silent_s=0.1))
    held.set()
