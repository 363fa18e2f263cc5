"""VocalBench-zh as the scoring pipeline sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.core.item import Item
from scoring.benchmarks.benchmark import Evidence, Stage
from scoring.benchmarks.figures import mean, profiled, share
from scoring.benchmarks.overall import CONDITIONS
from scoring.benchmarks.summary import by_subset, overall_score, picked, provenance
from scoring.benchmarks.vocalbench_zh import tables
from scoring.benchmarks.vocalbench_zh.answer_keys import key_in
from scoring.benchmarks.vocalbench_zh.prompts import Prompts
from scoring.benchmarks.vocalbench_zh.rows import RowBuilder
from scoring.benchmarks.vocalbench_zh.subsets import (
    INSTRUCTIONS,
    KNOWLEDGE,
    PARALINGUISTIC,
    SIZES,
    group_of,
)
from scoring.judge.task import JudgeTask

_HEARD = (*KNOWLEDGE, "single_round", "cs_knowledge", "cs_open_ended")
"""Subsets whose speech is compared with their text."""


class VocalBenchZh:
    """Implements `Benchmark`. data: the benchmark's checkout, for the judge prompts that it ships.

    transcripts: judge what ASR heard where a peer sends no text of its own. The benchmark judges the model's text, so
    such figures are not comparable with published ones; PER stays unscored.
    Raises ConfigError when a prompt of the checkout cannot be read.
    """

    name = "vocalbench-zh"
    version = 1
    subsets = tuple(SIZES)

    def __init__(self, data: Path | None = None, *, transcripts: bool = False) -> None:
        self._prompts = Prompts(data)
        self._transcripts = transcripts

    def needs(self, item: Item) -> frozenset[Stage]:
        """Which stages the item's row rests on."""
        if item.subset not in SIZES:
            return frozenset()
        stages: set[Stage] = {"judge"}
        if self._transcripts or item.subset in _HEARD:
            stages.add("asr")
        if item.subset == "single_round":
            stages.add("mos")
        if item.subset == "emotion":
            stages.add("emotion")
        if item.subset == "instruction_following" and item.index in PARALINGUISTIC:
            stages.add("asr")
            if "emotion" in group_of(INSTRUCTIONS, item.index):
                stages.add("emotion")
        return frozenset(stages)

    def text_tasks(self, item: Item, text: str) -> tuple[JudgeTask, ...]:
        """What to ask about the model's own words; nothing when the key stands in them."""
        return () if key_in(item, text) else self._prompts.tasks(item, text)

    def speech_tasks(self, item: Item, text: str | None, transcript: str) -> tuple[JudgeTask, ...]:
        """What to ask about the transcript, in place of a text that the peer did not send."""
        return self.text_tasks(item, transcript) if self._transcripts and text is None else ()

    def row(self, evidence: Evidence) -> dict[str, Any]:
        """The item's row; fields in `rows`."""
        response = evidence.transcript if self._transcripts and evidence.text is None else evidence.text
        return RowBuilder(evidence, response).finished()

    def summary(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """All tables and the overall score.

        abilities: the columns of the leaderboard. judged: `text`, `transcript`. The rest: `summary.provenance`.
        """
        by = by_subset(rows, SIZES)
        made = {
            "knowledge": tables.knowledge(by),
            "reasoning": tables.reasoning(by),
            "creativity": tables.creativity(by),
            "multi_round": tables.multi_round(by),
            "instruction_following": tables.instruction_following(by),
            "empathy": tables.empathy(by),
            "code_switching": tables.code_switching(by),
            "robustness": tables.robustness(by),
        }
        abilities = _abilities(made, by)
        subsets = {subset: _subset(subset, by[subset], made) for subset in SIZES if by[subset]}
        return {
            "subsets": subsets,
            "categories": {name: table for name, table in made.items() if any(by[subset] for subset in _OF[name])},
            "abilities": abilities,
            "overall": overall_score(self.name, abilities),
            "judged": sorted({str(row["judged"]) for row in rows if row.get("judged")}),
            **provenance(rows, by, SIZES),
        }


_OF: dict[str, tuple[str, ...]] = {
    "knowledge": KNOWLEDGE,
    "reasoning": ("reasoning",),
    "creativity": ("creativity",),
    "multi_round": ("multi_round",),
    "instruction_following": ("instruction_following",),
    "empathy": ("emotion",),
    "code_switching": ("cs_knowledge", "cs_knowledge_en", "cs_open_ended"),
    "robustness": ("robust",),
}
"""Table to the subsets it is made of."""


def _subset(subset: str, rows: Sequence[Mapping[str, Any]], made: Mapping[str, tables.Table]) -> tables.Table:
    """The headline figures of one subset, and RTF."""
    found: tables.Table = {}
    if subset in KNOWLEDGE:
        split = subset.partition("_")[0]
        found = {
            name.removeprefix(f"{split}_"): figure
            for name, figure in made["knowledge"].items()
            if name.startswith(f"{split}_")
        }
    elif subset in ("reasoning", "multi_round"):
        found = picked(made[subset], "total", "accuracy")
    elif subset == "creativity":
        found = picked(made[subset], "total", "score")
    elif subset == "instruction_following":
        found = picked(made[subset], "total", "following_rate")
    elif subset == "emotion":
        found = dict(made["empathy"])
    elif subset == "safety":
        found = _refusals(rows, "refusal_rate")
    elif subset in ("cs_knowledge", "cs_knowledge_en"):
        found = picked(made["code_switching"], f"know_{'en' if subset.endswith('_en') else 'cs'}_acc", "accuracy")
    elif subset == "cs_open_ended":
        found = picked(made["code_switching"], "open_understanding", "understanding")
        found |= picked(made["code_switching"], "open_generation", "generation")
    else:
        found = tables.grade("score", rows, "score")
    if subset == "single_round":
        found |= {"utmos": mean(rows, "mos", tables.GRADE)} | tables.per(rows)
    return found | {"rtf": tables.rtf(rows)}


def _refusals(rows: Sequence[Mapping[str, Any]], name: str) -> tables.Table:
    return profiled(name, share(rows, "refuse"), share(rows, "refuse_strict"), "strict")


def _abilities(made: Mapping[str, tables.Table], by: Mapping[str, Sequence[Mapping[str, Any]]]) -> tables.Table:
    """The columns of Table 2, the six preserve rates among them."""
    single = by["single_round"]
    columns = picked(made["knowledge"], "average_s2t", "knowledge_acc_pct")
    columns |= picked(made["reasoning"], "total", "reasoning_acc_pct")
    columns |= picked(made["creativity"], "total", "creativity_score")
    columns["fluency_utmos"] = mean(single, "mos", tables.GRADE)
    columns |= tables.per(single, "clarity_per_pct")
    columns |= tables.grade("single_round_score", single, "score")
    columns |= picked(made["multi_round"], "total", "multi_round_acc_pct")
    columns |= picked(made["instruction_following"], "total", "if_fr_pct")
    columns |= picked(made["empathy"], "overall_eer", "ee_eer_pct")
    columns |= _refusals(by["safety"], "safety_rr_pct")
    columns["cs_pr_pct"] = made["code_switching"]["know_pr"]
    columns["latency_rtf"] = tables.rtf(single)
    columns |= {f"{name}_pr_pct": made["robustness"][f"{name}_pr"] for name in CONDITIONS}
    columns["robust_pr_pct"] = made["robustness"]["average_pr"]
    return columns
