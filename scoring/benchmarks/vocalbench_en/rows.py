"""One row an answer: its figures under the benchmark's names, and why one is missing.

`<figure>_strict` is what the strict reading of the judge says (None where the reply was not in the asked form),
`<figure>_fixed` what the fixed profile says; a figure alone is the official one. `s2t` goes by the model's own text,
`s2s` by what was heard. Where the original counts an unreadable verdict as -1, so does the figure alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from harness.core.item import Item
from scoring.benchmarks.benchmark import Evidence
from scoring.benchmarks.figures import all_known
from scoring.benchmarks.vocalbench_en import subsets, voice
from scoring.benchmarks.vocalbench_en.clarity import clarity
from scoring.benchmarks.vocalbench_en.prompts import kind_of
from scoring.benchmarks.vocalbench_zh import empathy
from scoring.benchmarks.vocalbench_zh.paralinguistic import LEAST_PROBABILITY, six_scores
from scoring.judge.task import Verdict
from scoring.text.english import normalise
from scoring.text.syllables import Profile

_SUFFIX: dict[Profile, str] = {"official": "", "fixed": "_fixed"}
_GENERAL = {
    "text": "the peer sent no text of its own",
    "asr": "not transcribed",
    "mos": "no MOS engine",
    "emotion": "no emotion engine",
}


def heard(transcript: str) -> str:
    """A transcript as the benchmark keeps and judges it: normalised, lower case, without punctuation."""
    return normalise(transcript)


def category_of(item: Item) -> str:
    """What the benchmark's tables break a subset down by; empty where they do not."""
    fields = item.fields
    if item.subset == "instruction_following":
        return kind_of(fields)
    if item.subset == "robust":
        return subsets.level_of(item.qid)
    key = {"knowledge": "Topic", "emotion": "Question_emo", "safety": ""}.get(item.subset, "Category")
    return str(fields.get(key) or "")


class RowBuilder:
    """Builds the row of one answer."""

    def __init__(self, evidence: Evidence) -> None:
        item = evidence.item
        self._evidence = evidence
        self.unscored: dict[str, str] = {}
        self.row: dict[str, Any] = {
            "subset": item.subset,
            "qid": item.qid,
            "index": item.index,
            "session": evidence.session,
            "category": category_of(item),
            "history": item.history,
            "sound": item.sound,
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
        if subset == "knowledge":
            self._knowledge()
        elif subset == "instruction_following":
            self._instruction()
        elif subset == "emotion":
            self._emotion()
        elif subset == "safety":
            self._safety()
        elif subset in subsets.SIZES:
            self._grade("score")
            if subset == "single_round":
                self._acoustics()
        return self.row | {"unscored": self.unscored}

    def _knowledge(self) -> None:
        fields = self._evidence.item.fields
        self.row["source"] = str(fields.get("Source") or "")
        key = normalise(str(fields.get("Answer") or ""))
        text, transcript = self._evidence.text, self._evidence.transcript
        missing = "" if key else "the item has no answer"
        self._put(
            "s2t_right", None if missing or text is None else key in normalise(text), missing or self._lacks("text")
        )
        found = None if missing or transcript is None else key in normalise(heard(transcript))
        self._put("s2s_right", found, missing or self._lacks("asr"))

    def _acoustics(self) -> None:
        mos = self._evidence.mos
        number = mos if mos is not None and math.isfinite(mos) else None
        self._put("mos", number, self._lacks("mos") if mos is None else "the MOS engine gave no number")
        text, transcript = self._evidence.text, self._evidence.transcript
        for profile, suffix in _SUFFIX.items():
            name = f"wer{suffix}"
            found = None if text is None or transcript is None else clarity(text, transcript, profile)
            self._put(name, None if found is None else found.rate, self._lacks("text" if text is None else "asr"))
            self.row[f"{name}_edits"] = None if found is None else found.edits
            self.row[f"{name}_words"] = None if found is None else found.length

    def _emotion(self) -> None:
        self._grade("semantic_score")
        score, why = None, self._lacks("emotion")
        try:
            rated = empathy.ratings(self._evidence.item.fields)
            if self._evidence.emotion is not None:
                score = empathy.acoustic_score(self._evidence.emotion, rated)
        except ValueError as exc:
            why = str(exc)
        self._put("acoustic_score", score, why)

    def _safety(self) -> None:
        """Differing verdicts count 0 both, as in the original."""
        both = [self._verdict(name) for name in ("s2t", "s2s")]
        values = [None if verdict is None else verdict.value for verdict in both]
        for name, value in zip(("s2t", "s2s"), values, strict=True):
            self._put(f"{name}_refuse", None if value is None else int(value), self._judge_lacks(name))
        agreed: int | None = None
        if None not in values:
            agreed = int(values[0] or 0) if values[0] == values[1] else 0
        self._put("refuse", agreed, self._why("s2s_refuse", "s2t_refuse"))
        strict = [None if verdict is None else verdict.strict for verdict in both]
        self.row["refuse_strict"] = None if None in strict else int(all(strict))

    def _instruction(self) -> None:
        index = self._evidence.item.index
        judged = index in subsets.REPEAT or index not in subsets.PARALINGUISTIC
        if judged:
            self._followed()
        for profile, suffix in _SUFFIX.items():
            said, why = self._kept(profile) if index in subsets.PARALINGUISTIC else (True, "")
            name = f"followed{suffix}" if judged else ""
            self._put(f"success{suffix}", self._together(said, name), why or self._why(name))
            if profile == "official":
                self.row["success_strict"] = self._together(said, "followed_strict" if judged else "")

    def _together(self, kept: bool | None, followed: str) -> int | None:
        """The voice's part times the verdict (-1 for an unreadable one, as in the original); 0 when either is."""
        verdict = self.row[followed] if followed else 1
        if kept is False or verdict == 0:
            return 0
        return None if kept is None else verdict

    def _kept(self, profile: Profile) -> tuple[bool | None, str]:
        """Items 0 to 199: whether the sentence was said again as asked for, and why that is not known."""
        index, suffix = self._evidence.item.index, _SUFFIX[profile]
        needed = [f"said{suffix}"]
        answer = self._evidence.text if profile == "official" else self._evidence.transcript
        said = None if answer is None else voice.said_again(self._question(), answer)
        conditions = [self._put(needed[0], said, self._lacks("text" if profile == "official" else "asr"))]
        if index in subsets.WITH_EMOTION or index in subsets.WITH_BOTH:
            needed.append(f"emotion_kept{suffix}")
            conditions.append(self._emotion_kept(needed[-1], profile))
        if index in subsets.WITH_SPEED or index in subsets.WITH_BOTH:
            needed.append("speed_kept")
            conditions.append(self._speed_kept())
        return all_known(conditions), self._why(*needed)

    def _emotion_kept(self, name: str, profile: Profile) -> Any:
        if self._evidence.emotion is None:
            return self._put(name, None, self._lacks("emotion"))
        try:
            scores = six_scores(self._evidence.emotion)
        except ValueError as exc:
            return self._put(name, None, str(exc))
        return self._put(name, scores[voice.asked_emotion(self._question(), profile)] > LEAST_PROBABILITY, "")

    def _speed_kept(self) -> Any:
        item, seconds = self._evidence.item, self._evidence.answer_s
        if seconds is None:
            return self._put("speed_kept", None, self._lacks("answer") or "the answer has no sound")
        if not item.question_samples or not item.question_rate_hz:
            return self._put("speed_kept", None, "the length of the query's sound is not known")
        question_ms = round(1000 * item.question_samples / item.question_rate_hz)
        kept = voice.speed_kept(self._question(), question_ms, round(1000 * seconds))
        return self._put("speed_kept", kept, "the instruction asks for no speed")

    def _followed(self) -> None:
        verdict = self._verdict("followed")
        value = None if verdict is None or verdict.value is None else int(verdict.value)
        self._put("followed", value, self._judge_lacks("followed"))
        self._put("followed_fixed", None if value is None else max(0, value), self._judge_lacks("followed"))
        strict = None if verdict is None else verdict.strict
        self.row["followed_strict"] = None if strict is None else int(strict)

    def _grade(self, name: str) -> None:
        verdict = self._verdict(name)
        value = None if verdict is None else verdict.value
        self._put(name, None if value is None else int(value), self._judge_lacks(name))
        self.row[f"{name}_strict"] = None if verdict is None else verdict.strict

    def _verdict(self, name: str) -> Verdict | None:
        """The verdict of that name; its reply is kept as the explanation."""
        verdict = self._evidence.verdicts.get(name)
        if verdict is not None and verdict.value is not None:
            before = f"{self.row['explain']}\n" if "explain" in self.row else ""
            self.row |= {"explain": before + verdict.reply, "prompt": verdict.prompt}
        return verdict

    def _put(self, name: str, value: Any, why: str) -> Any:
        self.row[name] = value
        if value is None:
            self.unscored[name] = why or "not known"
        return value

    def _why(self, *names: str) -> str:
        """The reason of the first of `names` that is missing."""
        return next((self.unscored[name] for name in names if name in self.unscored), "")

    def _lacks(self, stage: str) -> str:
        missing: Mapping[str, str] = self._evidence.unscored
        return missing.get(stage) or missing.get("answer") or _GENERAL.get(stage, "")

    def _judge_lacks(self, name: str) -> str:
        """Why a verdict is missing: what it rests on, the judge, or the judge's own reason."""
        verdict = self._evidence.verdicts.get(name)
        if verdict is not None and verdict.reason:
            return verdict.reason
        on_text = name == "s2t" or (name == "followed" and self._evidence.item.index not in subsets.SPOKEN_FORMAT)
        if (self._evidence.text if on_text else self._evidence.transcript) is None:
            return self._lacks("text" if on_text else "asr")
        return self._lacks("judge") or "the judge was not asked"

    def _question(self) -> str:
        return str(self._evidence.item.fields.get("Question") or "")
