"""The interface between a benchmark's rules and the pipeline that gathers what they need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from harness.core.item import Item
from scoring.judge.task import JudgeTask, Verdict

Stage = Literal["asr", "mos", "emotion", "judge"]
"""What may have to be computed for an answer before its row can be."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of one answer.

    text: the model's own words; None where the peer sends none. transcript: what ASR heard; None without sound or
    engine. mos: 1 to 5. emotion: label to probability, labels as the engine names them. answer_samples at
    answer_rate_hz: the answer's sound as received. generation_s: from the query's last sample sent to the answer's
    last packet. verdicts: by task name. unscored: stage (or `text`, `answer`, `generation_s`) to the reason why there
    is nothing. engines: stage to the name of the engine that was used (`weights: random` is part of the name).
    """

    item: Item
    session: str
    turn: int = 0
    text: str | None = None
    transcript: str | None = None
    mos: float | None = None
    emotion: Mapping[str, float] | None = None
    answer_samples: int = 0
    answer_rate_hz: int = 0
    generation_s: float | None = None
    verdicts: Mapping[str, Verdict] = msgspec.field(default_factory=dict)
    unscored: Mapping[str, str] = msgspec.field(default_factory=dict)
    engines: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def answer_s(self) -> float | None:
        """Length of the answer's sound in seconds; None without any."""
        return self.answer_samples / self.answer_rate_hz if self.answer_samples and self.answer_rate_hz else None


class Benchmark(Protocol):
    """One published benchmark. Pure: no file but the prompts of `data`, which are read when it is made.

    A row is a flat JSON object with `subset`, `qid`, `index`, `session`, the figures under the benchmark's names (None
    where one could not be computed), and `unscored` (figure to reason). A summary holds `subsets` (name to figures,
    each `{"value", "n", "unit"}` or `{"unscored": reason, "n"}`), `categories` (tables of the paper), `overall`
    (`{"value"}` or `{"unscored", "missing"}`), `engines` and `prompts`.
    """

    name: str
    version: int
    subsets: tuple[str, ...]

    def needs(self, item: Item) -> frozenset[Stage]:
        """Which stages the item's row rests on."""
        ...

    def text_tasks(self, item: Item, text: str) -> tuple[JudgeTask, ...]:
        """What to ask the judge, going by the model's own text; empty where the text alone decides."""
        ...

    def speech_tasks(self, item: Item, text: str | None, transcript: str) -> tuple[JudgeTask, ...]:
        """What to ask the judge about what was heard, once it was transcribed."""
        ...

    def row(self, evidence: Evidence) -> dict[str, Any]:
        """The item's row."""
        ...

    def summary(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """All tables and the overall score."""
        ...
