"""What a comparison needs of a run: the stored rows and summaries of every scorer, and what casts doubt on them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from harness.core.errors import ConfigError
from harness.core.run_directory import RunDirectory, RunInfo
from harness.core.weights_mark import MARK, has_random_weights


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """One scorer's files."""

    rows: list[dict[str, Any]]
    summary: dict[str, Any]


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A scored run. label: its peer, with the directory where two runs have the same. stored: by scorer, `timing`,
    `duplex` or `scores`. random_weights: the mark of a peer, the names of engines, that ran on random weights."""

    path: Path
    label: str
    info: RunInfo
    stored: dict[str, Stored]
    random_weights: tuple[str, ...] = ()

    @property
    def free(self) -> bool:
        """Whether a person spoke freely (`firstpacket live`): what was said has no counterpart in another run."""
        return self.info.suite == "live" and "device" in self.info.config

    def summary(self, scorer: str) -> dict[str, Any]:
        """Empty where that scorer has nothing to say of the run."""
        return self.stored[scorer].summary if scorer in self.stored else {}

    def rows(self, scorer: str) -> list[dict[str, Any]]:
        """Without warm-ups."""
        return [row for row in self.stored[scorer].rows if not row.get("warmup")] if scorer in self.stored else []


FILES = {
    "timing": ("metrics.jsonl", "summary.json"),
    "duplex": ("duplex.jsonl", "duplex.json"),
    "scores": ("scores.jsonl", "scores.json"),
}


def load_runs(paths: Iterable[Path]) -> list[Run]:
    """The runs at `paths`; a directory of several peers' runs (one --out) stands for all of them, by name.

    Raises ConfigError for a run that was not scored, SessionFormatError for what is no run or is damaged.
    """
    runs = [_load(path) for given in paths for path in _expanded(given)]
    labels = [run.label for run in runs]
    return [
        msgspec.structs.replace(run, label=f"{run.label} ({run.path.resolve().name})")
        if labels.count(run.label) > 1
        else run
        for run in runs
    ]


def load_run(path: Path) -> Run:
    """The one run at `path`. Raises as `load_runs` does, and ConfigError where there are several."""
    runs = load_runs([path])
    if len(runs) > 1:
        names = ", ".join(run.path.name for run in runs)
        raise ConfigError(f"{path}: holds several runs ({names}); name one of them")
    return runs[0]


def _expanded(path: Path) -> list[Path]:
    inside = sorted(file.parent for file in path.glob("*/run.json"))
    return inside if inside and not (path / "run.json").exists() else [path]


def _load(path: Path) -> Run:
    directory = RunDirectory(path)
    info = directory.info()
    stored = {}
    for scorer, (rows, summary) in FILES.items():
        found = directory.read_json(summary)
        if found is not None:
            stored[scorer] = Stored(rows=directory.read_lines(rows), summary=found)
    if not stored:
        raise ConfigError(f"{path}: was not scored yet; run `firstpacket replay {path} --write` first")
    first = next(directory.load(), None)
    random = [MARK] if first is not None and has_random_weights(first.header.peer.config) else []
    engines = stored["scores"].summary.get("engines") or {} if "scores" in stored else {}
    random += [str(name) for name in engines.values() if MARK in str(name)]
    return Run(
        path=path,
        label=info.peer,
        info=info,
        stored=stored,
        random_weights=tuple(dict.fromkeys(random)),
    )
