"""What the voice must do in the instruction items 0 to 199: the asked emotion, the asked speed.

Source: VocalBench-zh `utils/instruction_full.py` (revision 5189b4b). The `official` profile keeps its defects, `fixed`
does what was meant.
"""

from __future__ import annotations

from collections.abc import Mapping

from scoring.benchmarks.vocalbench_zh.subsets import EMOTIONS
from scoring.text.syllables import Profile, syllables

LEAST_PROBABILITY = 0.5
UNKNOWN = "unknown"
_WORDS = (("生气", "高兴", "中性", "悲伤", "惊喜"), ("生气", "高兴", "中立", "伤心", "惊讶"))
"""Searched in this order, each list in the order of `EMOTIONS`."""
_FASTER, _SLOWER = ("两倍", "快一倍"), ("一半", "慢一倍")
_LIMITS = {"faster": (0.25, 0.75), "slower": (1.5, 2.5)}
"""The answer's length over that of the sentence in the query, exclusive."""
_LABELS = {"<unk>": UNKNOWN, "unk": UNKNOWN, "unknown": UNKNOWN} | {name: name for name in EMOTIONS}


def six_scores(emotion: Mapping[str, float]) -> dict[str, float]:
    """An engine's probabilities for the five emotions and `unknown`, summing to 1.

    The original masks all other labels before the softmax, which is the same as dividing by the sum of the six. Labels
    may be bilingual (`生气/angry`). Raises ValueError when one of the six is missing, negative or all are 0.
    """
    found: dict[str, float] = {}
    for label, probability in emotion.items():
        for part in label.lower().split("/"):
            if part in _LABELS:
                found[_LABELS[part]] = float(probability)
    lacking = [name for name in (*EMOTIONS, UNKNOWN) if name not in found]
    if lacking:
        raise ValueError(f"the emotion engine has no label {lacking[0]!r}")
    total = sum(found.values())
    if not total > 0 or min(found.values()) < 0:
        raise ValueError("the emotion engine's probabilities are no probabilities")
    return {name: found[name] / total for name in (*EMOTIONS, UNKNOWN)}


def asked_emotion(question: str, profile: Profile) -> str:
    """The emotion that the instruction asks for, `unknown` without one; `official` searches the sentence to repeat
    as well."""
    text = question if profile == "official" else _instruction(question)
    for words in _WORDS:
        for name, word in zip(EMOTIONS, words, strict=True):
            if word in text:
                return name
    return UNKNOWN


def asked_speed(question: str, profile: Profile) -> str:
    """`faster`, `slower`, or empty where the instruction asks for neither."""
    text = question if profile == "official" else _instruction(question)
    if any(word in text for word in _FASTER):
        return "faster"
    return "slower" if any(word in text for word in _SLOWER) else ""


def sentence_share(question: str, profile: Profile) -> float:
    """Which share of the query's sound the sentence to repeat takes.

    official: by words between white space, hence 1 for Mandarin. fixed: by syllables, since an even pace is the best
    guess without an alignment.
    """
    sentence = question.partition("。")[2]
    if profile == "official":
        words = len(question.split())
        return len(sentence.split()) / words if words else 0.0
    spoken = len(syllables(question, "fixed"))
    return len(syllables(sentence, "fixed")) / spoken if spoken else 0.0


def speed_kept(question: str, question_ms: int, answer_ms: int, profile: Profile) -> bool | None:
    """Whether the answer has the asked speed; None when the instruction asks for none."""
    speed = asked_speed(question, profile)
    if not speed:
        return None
    low, high = _LIMITS[speed]
    sentence_ms = question_ms * sentence_share(question, profile)
    return low * sentence_ms < answer_ms < high * sentence_ms


def _instruction(question: str) -> str:
    return question.partition("。")[0]
