"""The benchmarks by name."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path

from harness.core.errors import ConfigError, nearest
from scoring.benchmarks.benchmark import Benchmark

BENCHMARKS: Mapping[str, tuple[str, str]] = {
    "vocalbench-zh": ("scoring.benchmarks.vocalbench_zh.benchmark", "VocalBenchZh"),
    "vocalbench-en": ("scoring.benchmarks.vocalbench_en.benchmark", "VocalBenchEn"),
}
"""Name to module and class; a class is made with `data=` (the benchmark's checkout, for its prompts, or None)."""
JUDGES_TEXT = ("vocalbench-zh",)
"""Those whose judge reads the model's own text throughout; they take `transcripts=` as well."""


def make_benchmark(name: str, data: Path | None = None, *, transcripts: bool = False) -> Benchmark:
    """The benchmark `name`. transcripts: judge what was heard where a peer sends no text of its own.

    Raises ConfigError naming the nearest, for a benchmark that judges what was heard anyway, or for prompts in `data`
    that cannot be read.
    """
    if name not in BENCHMARKS:
        raise ConfigError(f"--benchmark {name}: no such benchmark; {nearest(name, BENCHMARKS)}")
    if transcripts and name not in JUDGES_TEXT:
        raise ConfigError(
            f"--judge-transcripts is for {', '.join(JUDGES_TEXT)}: {name} has rules of its own for speech"
        )
    module, kind = BENCHMARKS[name]
    more = {"transcripts": True} if transcripts else {}
    made: Benchmark = getattr(importlib.import_module(module), kind)(data=data, **more)
    return made
