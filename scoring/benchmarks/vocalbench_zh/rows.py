"""One row an answer: its figures under the benchmark's names in lower case, and why one is missing.

`<figure>_strict` is what the strict reading of the judge says (None where the reply was not in the asked form),
`<figure>_fixed` what the fixed profile says; a figure alone is the official one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from scoring.benchmarks.benchmark import Evidence
from scoring.benchmarks.figures import all_known
from scoring.benchmarks.vocalbench_zh import empathy, paralinguistic
from scoring.benchmarks.vocalbench_zh.answer_keys import key_in
from scoring.benchmarks.vocalbench_zh.subsets import (
    EMOTIONS,
    GRADED,
    INSTRUCTIONS,
    KNOWLEDGE,
    PARALINGUISTIC,
    REASONING,
    group_of,
)
from scoring.text.code_switching import english_alignment, english_words, language_of
from scoring.text.syllables import PROFILES, phoneme_error_rate

SPOKEN_PER = 0.05
"""An answer is spoken as written when its PER is below."""
RIGHT_ABOVE = 3
"""A graded answer is right, or has understood, above this grade."""
_PER = ("per", "per_fixed")
"""In the order of `PROFILES`."""


_T = TypeVar("_T")


class _Variant(NamedTuple):
    """A reading of a figure: suffix of its name, of what profile is used, of how the judge is read."""

    name: str
    profile: str
    judge: str


_VARIANTS = (_Variant("", "", ""), _Variant("_fixed", "_fixed", ""), _Variant("_strict", "", "_strict"))


class RowBuilder:
    """Builds the row of one answer. response: the words to be judged, None when there are none."""

    def __init__(self, evidence: Evidence, response: str | None) -> None:
        item = evidence.item
        self._evidence = evidence
        self._response = response
        self.unscored: dict[str, str] = {}
        self.row: dict[str, Any] = {
            "subset": item.subset,
            "qid": item.qid,
            "index": item.index,
            "session": evidence.session,
            "history": item.history,
            "sound": item.sound,
            "judged": "text" if evidence.text is not None else "transcript" if response is not None else "",
            "response": evidence.text,
            "response_hyp": evidence.transcript,
            "generation_s": evidence.generation_s,
            "answer_s": evidence.answer_s,
            "engines": dict(evidence.engines),
        }
        if evidence.generation_s is None and (why := self._lacks("generation_s")):
            self.unscored["generation_s"] = why

    def finished(self) -> dict[str, Any]:
        subset = self._evidence.item.subset
        if subset in KNOWLEDGE:
            self._knowledge()
        elif subset == "reasoning":
            self._reasoning()
        elif subset == "instruction_following":
            self._instruction()
        elif subset == "emotion":
            self._empathy()
        elif subset in ("creativity", "robust", "robust_clean"):
            self._judged("score")
        elif subset == "single_round":
            self._single_round()
        elif subset == "multi_round":
            self._judged("correct")
        elif subset == "safety":
            self._judged("refuse")
        else:
            self._code_switching(subset)
        return self.row | {"unscored": self.unscored}

    def _knowledge(self) -> None:
        self._correct_by_key()
        self._per()
        for variant in _VARIANTS:
            known = all_known((self.row[f"correct{variant.judge}"], self._spoken(variant.profile)))
            self._put(f"s2s_correct{variant.name}", known, self._why("correct", f"per{variant.profile}"))

    def _reasoning(self) -> None:
        if group_of(REASONING, self._evidence.item.index) not in GRADED:
            self._judged("correct")
            return
        self._judged("score")
        self._above("correct", "score", RIGHT_ABOVE)

    def _single_round(self) -> None:
        self._judged("score")
        self._per()
        mos = self._evidence.mos
        number = mos if mos is not None and math.isfinite(mos) else None
        self._put("mos", number, self._lacks("mos") if mos is None else "the MOS engine gave no number")

    def _instruction(self) -> None:
        self._judged("correct")
        on_voice = self._evidence.item.index in PARALINGUISTIC
        if on_voice:
            self._per()
        group = group_of(INSTRUCTIONS, self._evidence.item.index)
        for variant in _VARIANTS:
            needed, suffix = {"correct": self.row[f"correct{variant.judge}"]}, variant.profile
            if on_voice:
                needed[f"per{suffix}"] = self._spoken(suffix)
            if on_voice and "emotion" in group:
                needed[f"emotion_kept{suffix}"] = self._emotion_kept(suffix)
            if on_voice and "speed" in group:
                needed[f"speed_kept{suffix}"] = self._speed_kept(suffix)
            self._put(f"success{variant.name}", all_known(needed.values()), self._why(*needed))

    def _emotion_kept(self, suffix: str) -> bool | None:
        name = f"emotion_kept{suffix}"
        profile = PROFILES[bool(suffix)]
        if self._evidence.emotion is None:
            return self._put(name, None, self._lacks("emotion"))
        try:
            scores = paralinguistic.six_scores(self._evidence.emotion)
        except ValueError as exc:
            return self._put(name, None, str(exc))
        asked = paralinguistic.asked_emotion(self._question(), profile)
        return self._put(name, scores[asked] > paralinguistic.LEAST_PROBABILITY, "")

    def _speed_kept(self, suffix: str) -> bool | None:
        name, item = f"speed_kept{suffix}", self._evidence.item
        if not self._evidence.answer_samples or not self._evidence.answer_rate_hz:
            return self._put(name, None, self._lacks("asr") or "the answer has no sound")
        if not item.question_samples or not item.question_rate_hz:
            return self._put(name, None, "the length of the query's sound is not known")
        question_ms = round(1000 * item.question_samples / item.question_rate_hz)
        answer_ms = round(1000 * self._evidence.answer_samples / self._evidence.answer_rate_hz)
        kept = paralinguistic.speed_kept(self._question(), question_ms, answer_ms, PROFILES[bool(suffix)])
        return self._put(name, kept, "the instruction asks for no speed")

    def _empathy(self) -> None:
        self._judged("semantic_score")
        self._above("semantic_pass", "semantic_score", empathy.PASS - 1)
        try:
            rated = empathy.ratings(self._evidence.item.fields)
            emotion = self._evidence.emotion
            score = None if emotion is None else empathy.acoustic_score(emotion, rated)
            flat = rated[EMOTIONS.index("neutral")] >= empathy.PASS
            why = self._lacks("emotion")
        except ValueError as exc:
            score, flat, why = None, None, str(exc)
        self._put("acoustic_score", score, why)
        self._put("acoustic_pass", None if score is None else score >= empathy.PASS, why)
        self._put("margin", None if score is None else abs(score - empathy.PASS), why)
        self._put("flat_pass", flat, why)
        for suffix in ("", "_strict"):
            passes = [self.row[f"semantic_pass{suffix}"], self.row["acoustic_pass"]]
            both = None if None in passes else all(passes)
            self._put(f"success{suffix}", both, self._why("semantic_pass", "acoustic_pass"))

    def _code_switching(self, subset: str) -> None:
        if subset == "cs_open_ended":
            self._judged("relevance")
            self._judged("semantic")
            self._above("understood", "relevance", RIGHT_ABOVE)
        else:
            self._correct_by_key()
        if subset == "cs_knowledge_en":
            return
        text, transcript = self._evidence.text, self._evidence.transcript
        why = self._lacks("text") if text is None else self._lacks("asr")
        self._put("english_words", None if text is None else len(english_words(text)), why)
        aligned = None if text is None or transcript is None else english_alignment(text, transcript)
        self._put("english_heard", None if aligned is None else aligned.length, why)
        self._put("english_right", None if aligned is None else aligned.hits, why)
        self._put("english_errors", None if aligned is None else aligned.errors, why)
        language = None if transcript is None else language_of(transcript)
        self._put("in_language", None if language is None else language == "zh", self._lacks("asr"))

    def _correct_by_key(self) -> None:
        if self._response is not None and key_in(self._evidence.item, self._response):
            self._put("correct", True, "")
            self._put("correct_strict", True, "")
            self.row |= {"explain": "the key is in the answer", "prompt": ""}
            return
        self._judged("correct")

    def _judged(self, name: str) -> None:
        """The verdict of that name, by both readings; its reply is kept as the explanation."""
        verdict = self._evidence.verdicts.get(name)
        if verdict is None or verdict.value is None:
            reason = verdict.reason if verdict is not None else ""
            self._put(name, None, reason or self._lacks(f"judge.{name}") or self._judge_lacks())
            self.row[f"{name}_strict"] = None
            return
        self._put(name, verdict.value, "")
        self.row[f"{name}_strict"] = verdict.strict
        several = "explain" in self.row
        self.row["explain"] = f"{self.row['explain']}\n{verdict.reply}" if several else verdict.reply
        self.row["prompt"] = verdict.prompt

    def _above(self, name: str, score: str, least: int) -> None:
        """Whether a grade is above `least`, by both readings."""
        for suffix in ("", "_strict"):
            grade = self.row[f"{score}{suffix}"]
            self.row[f"{name}{suffix}"] = None if grade is None else grade > least
        if self.row[name] is None:
            self.unscored[name] = self.unscored[score]

    def _per(self) -> None:
        text, transcript = self._evidence.text, self._evidence.transcript
        if text is None or transcript is None:
            why = self._lacks("text") if text is None else self._lacks("asr")
            for name in _PER:
                self._put(name, None, why)
                self.row |= {f"{name}_edits": None, f"{name}_syllables": None}
            return
        for name, profile in zip(_PER, PROFILES, strict=True):
            found = phoneme_error_rate(text, transcript, profile)
            self._put(name, found.rate, "")
            self.row |= {f"{name}_edits": found.edits, f"{name}_syllables": found.length}

    def _spoken(self, profile: str) -> bool | None:
        per = self.row[f"per{profile}"]
        return None if per is None else per < SPOKEN_PER

    def _put(self, name: str, value: _T, why: str) -> _T:
        self.row[name] = value
        if value is None and not name.endswith("_strict"):
            self.unscored[name] = why or "not known"
        return value

    def _why(self, *names: str) -> str:
        """The reason of the first of `names` that is missing."""
        return next((self.unscored[name] for name in names if name in self.unscored), "")

    def _lacks(self, stage: str) -> str:
        missing: Mapping[str, str] = self._evidence.unscored
        general = {"text": "the peer sent no text of its own", "asr": "not transcribed", "mos": "no MOS engine"}
        general |= {"emotion": "no emotion engine"}
        return missing.get(stage) or missing.get("answer") or general.get(stage, "")

    def _judge_lacks(self) -> str:
        if self._response is None:
            return self._lacks("text")
        return self._lacks("judge") or "the judge was not asked"

    def _question(self) -> str:
        return str(self._evidence.item.fields.get("Question") or "")
