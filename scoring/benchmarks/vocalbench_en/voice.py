"""What the voice must do in the instruction items 0 to 199: say the sentence again, in an emotion, at a speed.

Source: VocalBench `utils/read_score_instruction.py` of snapshot 5e9cce0. Profile `official` compares the model's text
with the sentence and looks for the emotion's name in the whole question; `fixed` compares what was heard and looks in
the instruction alone.
"""

from __future__ import annotations

from scoring.benchmarks.vocalbench_zh.paralinguistic import UNKNOWN
from scoring.benchmarks.vocalbench_zh.subsets import EMOTIONS
from scoring.text.english import word_error_rate
from scoring.text.syllables import Profile

SAID_BELOW = 0.2
"""The sentence was said again when its WER is below."""
LIMITS = {"twice": (0.25, 0.75), "half": (1.5, 2.5)}
"""The answer's length over that of the sentence in the query, exclusive, by the word that asks for it."""


def instruction_and_sentence(question: str) -> tuple[str, str]:
    """The two parts of a question, divided at the first full stop."""
    instruction, _, sentence = question.partition(".")
    return instruction, sentence


def said_again(question: str, answer: str) -> bool:
    """Whether `answer` is the sentence of the question."""
    return word_error_rate(instruction_and_sentence(question)[1], answer).rate < SAID_BELOW


def asked_emotion(question: str, profile: Profile) -> str:
    """The first emotion, in the order of `EMOTIONS`, whose name stands there; `unknown` without one."""
    text = question if profile == "official" else instruction_and_sentence(question)[0]
    return next((name for name in EMOTIONS if name in text.lower()), UNKNOWN)


def speed_kept(question: str, question_ms: int, answer_ms: int) -> bool | None:
    """Whether the answer has the asked speed; None when the instruction asks for none.

    The sentence is taken for the share of the query's sound that its words are of all words.
    """
    instruction, sentence = instruction_and_sentence(question)
    asked = next((word for word in LIMITS if word in instruction.lower()), None)
    if asked is None:
        return None
    low, high = LIMITS[asked]
    sentence_ms = question_ms * len(sentence.split()) / len(question.split())
    return low * sentence_ms < answer_ms < high * sentence_ms
