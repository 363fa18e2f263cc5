"""What the two VocalBenches consist of: subsets, sizes, Qids, and what a judge is asked about each.

Sources: VocalBench-zh (arXiv 2511.08230) and its repository of 2026-01-15, VocalBench (English) of 2025-06-12.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from harness.core.errors import ConfigError, nearest
from scenarios.benchmarks.conditions import CONDITIONS, canonical

ROBUST, CLEAN = "robust", "robust_clean"


class Subset(msgspec.Struct, frozen=True, kw_only=True):
    """One query file. items: as published. prefixes: what stands before the number of a Qid, in published order; the
    items are shared out evenly among them. counted: part of the published total, and of a run that names no subset (the
    items of Mandarin's `robust_clean` are asked in `single_round` already). judge_calls: to the judge for each
    answer, without repeats. own_qids: no other subset uses the same ones. digits: of a Qid's number."""

    name: str
    items: int
    prefixes: tuple[str, ...]
    language: str
    counted: bool = True
    judge_calls: float = 1.0
    own_qids: bool = True
    digits: int = 3

    def index(self, qid: str) -> int | None:
        """Position in the published file; None for a Qid that this subset has not."""
        prefix, _, number = qid.rpartition("-")
        prefix = canonical(prefix) if self.name == ROBUST else prefix
        if prefix not in self.prefixes or not re.fullmatch(rf"[0-9]{{{self.digits}}}", number):
            return None
        each = self.items // len(self.prefixes)
        ordinal = int(number)
        return self.prefixes.index(prefix) * each + ordinal if ordinal < each else None

    def query_id(self, qid: str) -> str:
        """A name that no other query of the benchmark has."""
        return qid if self.own_qids else f"{self.name}-{qid.rpartition('-')[2]}"

    def example(self) -> str:
        """A Qid as it should be."""
        return f"{self.prefixes[0]}-{0:0{self.digits}d}"


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark's subsets, in the order in which they are run. qid_key, answer_key: how its model outputs call an
    item and the model's text. transcript_key: what ASR heard of it."""

    name: str
    subsets: tuple[Subset, ...]
    language: str
    qid_key: str
    answer_key: str
    transcript_key: str

    @property
    def total(self) -> int:
        """How many queries the paper counts."""
        return sum(subset.items for subset in self.subsets if subset.counted)

    def subset(self, name: str) -> Subset:
        """One by name. Raises ConfigError with the nearest right name."""
        for subset in self.subsets:
            if subset.name == name:
                return subset
        known = [subset.name for subset in self.subsets]
        raise ConfigError(f"{self.name} has no subset {name!r}; {nearest(name, known)}")

    def choose(self, names: Sequence[str]) -> tuple[Subset, ...]:
        """Those named, in the benchmark's order; without a name those counted. Raises ConfigError as `subset` does."""
        chosen = {self.subset(name).name for name in names}
        return tuple(each for each in self.subsets if (each.name in chosen if chosen else each.counted))


def _subset(
    name: str,
    items: int,
    prefix: str = "",
    *,
    language: str = "zh",
    counted: bool = True,
    judge_calls: float = 1.0,
    own_qids: bool = True,
    digits: int = 3,
) -> Subset:
    return Subset(
        name=name,
        items=items,
        prefixes=(prefix or name,),
        language=language,
        counted=counted,
        judge_calls=judge_calls,
        own_qids=own_qids,
        digits=digits,
    )


VOCALBENCH_ZH = Catalogue(
    name="vocalbench-zh",
    language="zh",
    qid_key="Qid",
    answer_key="Response",
    transcript_key="Response_hyp",
    subsets=(
        _subset("chinese_knowledge", 1000, digits=4),
        _subset("foreign_knowledge", 1000, digits=4),
        _subset("general_knowledge", 1000, digits=4),
        _subset("reasoning", 851),
        _subset("creativity", 240),
        _subset("single_round", 200),
        _subset("multi_round", 400),
        _subset("instruction_following", 1000, "instruction"),
        _subset("emotion", 500),
        _subset("safety", 400),
        _subset("cs_knowledge", 362, "codeswitching_knowledge"),
        _subset("cs_knowledge_en", 362, "codeswitching_knowledge", language="en", own_qids=False),
        _subset("cs_open_ended", 200, "codeswitching_open_ended", judge_calls=2.0),
        _subset(CLEAN, 100, counted=False),
        Subset(name=ROBUST, items=3600, prefixes=tuple(CONDITIONS), language="zh"),
    ),
)


VOCALBENCH_EN = Catalogue(
    name="vocalbench-en",
    language="en",
    qid_key="question_id",
    answer_key="prediction",
    transcript_key="asr_pred",
    subsets=(
        _subset("knowledge", 2000, language="en", judge_calls=0.0, digits=4),
        _subset("reasoning", 1000, language="en"),
        _subset("creativity", 400, language="en"),
        _subset("single_round", 200, language="en"),
        _subset("multi_round", 400, language="en"),
        _subset("instruction_following", 900, "instruction", language="en"),
        _subset("emotion", 500, language="en"),
        _subset("safety", 400, language="en", judge_calls=2.0),
        _subset(CLEAN, 100, "robust", language="en"),
        Subset(name=ROBUST, items=3600, prefixes=tuple(CONDITIONS), language="en"),
    ),
)

CATALOGUES = {catalogue.name: catalogue for catalogue in (VOCALBENCH_ZH, VOCALBENCH_EN)}


def catalogue_of(name: str) -> Catalogue:
    """A benchmark by name. Raises ConfigError with the nearest right one."""
    if name not in CATALOGUES:
        raise ConfigError(f"no benchmark {name!r}; {nearest(name, CATALOGUES)}")
    return CATALOGUES[name]
