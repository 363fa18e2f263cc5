"""VocalBench (English) as the scoring pipeline sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.core.item import Item
from scoring.benchmarks.benchmark import Evidence, Stage
from scoring.benchmarks.overall import CONDITIONS
from scoring.benchmarks.summary import by_subset, overall_score, picked, provenance
from scoring.benchmarks.vocalbench_en import subsets, tables
from scoring.benchmarks.vocalbench_en.prompts import Prompts
from scoring.benchmarks.vocalbench_en.rows import RowBuilder, heard
from scoring.benchmarks.vocalbench_zh.tables import rtf
from scoring.judge.task import JudgeTask

_JUDGED_SPEECH = ("reasoning", "creativity", "single_round", "multi_round", "emotion", "robust", "robust_clean")
"""Graded subsets: the headline figure is that of the speech."""


class VocalBenchEn:
    """Implements `Benchmark`. data: the benchmark's checkout, for the judge prompts that it ships.

    Raises ConfigError when a prompt of the checkout cannot be read, PrerequisiteError without the extra `score`.
    """

    name = "vocalbench-en"
    version = 1
    subsets = tuple(subsets.SIZES)

    def __init__(self, data: Path | None = None) -> None:
        self._prompts = Prompts(data)
        heard("")  # a missing normaliser is found out before hours of ASR

    def needs(self, item: Item) -> frozenset[Stage]:
        """Which stages the item's row rests on."""
        subset, index = item.subset, item.index
        if subset == "instruction_following":
            return _instruction_needs(index)
        stages: dict[str, set[Stage]] = {name: {"asr", "judge"} for name in (*_JUDGED_SPEECH, "safety")}
        stages["knowledge"] = {"asr"}
        stages["single_round"].add("mos")
        stages["emotion"].add("emotion")
        return frozenset(stages.get(subset, set()))

    def text_tasks(self, item: Item, text: str) -> tuple[JudgeTask, ...]:
        """What to ask about the model's own words."""
        if item.subset == "safety":
            return (self._prompts.refused("s2t", item, text),)
        if item.subset == "instruction_following" and item.index not in subsets.SPOKEN_FORMAT:
            alone = item.index in subsets.PARALINGUISTIC and item.index not in subsets.REPEAT
            return () if alone else (self._prompts.followed(item, text),)
        return ()

    def speech_tasks(self, item: Item, text: str | None, transcript: str) -> tuple[JudgeTask, ...]:
        """What to ask about what was heard, normalised as the benchmark does."""
        if item.subset in _JUDGED_SPEECH:
            return (self._prompts.grade(item, heard(transcript)),)
        if item.subset == "safety":
            return (self._prompts.refused("s2s", item, heard(transcript)),)
        if item.subset == "instruction_following" and item.index in subsets.SPOKEN_FORMAT:
            return (self._prompts.followed(item, heard(transcript)),)
        return ()

    def row(self, evidence: Evidence) -> dict[str, Any]:
        """The item's row; fields in `rows`."""
        return RowBuilder(evidence).finished()

    def summary(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """All tables, the leaderboard's columns (`abilities`), the overall score and what they rest on."""
        by = by_subset(rows, self.subsets)
        made = {
            "knowledge": tables.knowledge(by),
            **{name: tables.grades(by, name) for name in ("reasoning", "creativity", "single_round", "multi_round")},
            "instruction_following": tables.instruction_following(by),
            "emotion": tables.emotion(by),
            "safety": tables.safety(by),
            "robust_clean": tables.grades(by, "robust_clean"),
            "robust": tables.robustness(by),
        }
        acoustics = tables.acoustics(by)
        abilities = _abilities(made, acoustics) | {"latency_rtf": rtf(by["single_round"])}
        return {
            "subsets": {
                subset: _headlines(subset, made[subset], acoustics) | {"rtf": rtf(by[subset])}
                for subset in self.subsets
                if by[subset]
            },
            "categories": {name: table for name, table in made.items() if by[name]},
            "abilities": abilities,
            "overall": overall_score(self.name, abilities),
            **provenance(rows, by, subsets.SIZES),
        }


def _instruction_needs(index: int) -> frozenset[Stage]:
    if index in subsets.SPOKEN_FORMAT:
        return frozenset({"asr", "judge"})
    if index not in subsets.PARALINGUISTIC:
        return frozenset({"judge"})
    stages: set[Stage] = {"asr"}
    if index in subsets.REPEAT:
        stages.add("judge")
    if index in subsets.WITH_EMOTION or index in subsets.WITH_BOTH:
        stages.add("emotion")
    return frozenset(stages)


def _headlines(subset: str, table: tables.Table, acoustics: tables.Table) -> tables.Table:
    """The figures of a subset as a whole."""
    if subset in ("knowledge", "emotion", "safety", "robust"):
        return {name: figure for name, figure in table.items() if name in _WHOLE[subset] or _other_reading(name)}
    called = "following_rate" if subset == "instruction_following" else "score"
    found = picked(table, "total", called)
    return found | acoustics if subset == "single_round" else found


_WHOLE = {
    "knowledge": ("s2s", "s2t"),
    "emotion": ("total", "acoustic_score", "semantic_score"),
    "safety": ("refusal_rate", "s2t_refusal_rate", "s2s_refusal_rate"),
    "robust": ("average_pr", "clean_score", *(f"{name}_pr" for name in CONDITIONS)),
}


def _other_reading(name: str) -> bool:
    return name.endswith(("_strict", "_fixed"))


def _abilities(made: Mapping[str, tables.Table], acoustics: tables.Table) -> tables.Table:
    """The columns of the published leaderboard, the six preserve rates among them."""
    columns = {
        **picked(made["knowledge"], "s2s", "knowledge_acc_pct"),
        **picked(made["reasoning"], "total", "reasoning_score"),
        **picked(made["creativity"], "total", "creativity_score"),
        **picked(acoustics, "utmos", "fluency_utmos"),
        **picked(acoustics, "wer", "clarity_wer_pct"),
        **picked(made["single_round"], "total", "single_round_score"),
        **picked(made["multi_round"], "total", "multi_round_score"),
        **picked(made["instruction_following"], "total", "if_fr_pct"),
        **picked(made["emotion"], "total", "ee_score"),
        **picked(made["safety"], "refusal_rate", "safety_rr_pct"),
    }
    columns |= {f"{name}_pr_pct": made["robust"][f"{name}_pr"] for name in CONDITIONS}
    return columns | {"robust_pr_pct": made["robust"]["average_pr"]}
