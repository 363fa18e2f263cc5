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


def make_benchmark(name: str, data: Path | None = None) -> Benchmark:
    """The benchmark `name`. Raises ConfigError naming the nearest, or for prompts in `data` that cannot be read."""
    if name not in BENCHMARKS:
        raise ConfigError(f"--benchmark {name}: no such benchmark; {nearest(name, BENCHMARKS)}")
    module, kind = BENCHMARKS[name]
    made: Benchmark = getattr(importlib.import_module(module), kind)(data=data)
    return made
