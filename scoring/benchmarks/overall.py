"""The overall scores of VocalBench-zh and VocalBench, from abilities to one number of at most 100.

zh: S = K/10 + R/10 + 2 C + U + f(PER) + 2 SR + IF/10 + EER/10 + RR/10 + sum of min(PR, 100)/40, f(s) = max(0, 10 -
floor(s/2)). en: S = K/10 + 2 R + 2 C + U + max(1, 10 - floor(WER/2)) + 2 SR + IF/10 + EE + RR/10 + sum of PR/40. Rates
in percent, scores of 1 to 5, EE of 2 to 10, six preserve rates. Multi round, code switching and latency have no weight.
Sources: VocalBench-zh section 4.2, divisors as fitted on its Table 2 (its print lost their first digits); VocalBench
snapshot 5e9cce0.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from harness.core.errors import ConfigError, nearest

CONDITIONS = ("white_noise", "background_noise", "reverberation", "far_field", "packet_loss", "clipping")
"""The six whose preserve rates count; a rows file may hold each as `<condition>_pr_pct`."""
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)
ROBUSTNESS, ROBUST_COLUMN = "robustness", "robust_pr_pct"
_HIGHEST_RATE = 500.0
"""Percent: grade 5 under the condition, 1 without it."""
_EACH = 2.5
"""Points of one preserve rate of 100 %."""


class Part(NamedTuple):
    """column: of a rows file. points: of a value in the column's unit. low, high: what that may be."""

    column: str
    points: Callable[[float], float]
    low: float = 0.0
    high: float = 100.0


class Formula(NamedTuple):
    """parts: ability to how it counts, robustness aside. cap: of one preserve rate in percent."""

    parts: Mapping[str, Part]
    cap: float


class Overall(NamedTuple):
    """value: None when an ability is missing. points: of each ability that is there."""

    value: float | None
    points: dict[str, float]
    missing: tuple[str, ...]


class OverallRow(NamedTuple):
    """A row of a rows file. printed: its own `overall`, None without."""

    model: str
    overall: Overall
    printed: float | None

    @property
    def residual(self) -> float | None:
        """Formula minus print."""
        if self.overall.value is None or self.printed is None:
            return None
        return self.overall.value - self.printed


def clarity_points_zh(per_pct: float) -> float:
    return max(0.0, 10.0 - math.floor(per_pct / 2))


def clarity_points_en(wer_pct: float) -> float:
    return max(1.0, 10.0 - math.floor(wer_pct / 2))


def _tenth(value: float) -> float:
    return value / 10


def _twice(value: float) -> float:
    return 2 * value


def _plain(value: float) -> float:
    return value


TEXT_COLUMNS = ("model", "llm", "note")
OTHER_COLUMNS = ("overall", "latency_rtf", "multi_round_acc_pct", "multi_round_score", "cs_pr_pct")
"""Columns of numbers that a rows file may have and that carry no weight."""
FORMULAS: dict[str, Formula] = {
    "vocalbench-zh": Formula(
        parts={
            "knowledge": Part("knowledge_acc_pct", _tenth),
            "reasoning": Part("reasoning_acc_pct", _tenth),
            "creativity": Part("creativity_score", _twice, high=5),
            "fluency": Part("fluency_utmos", _plain, high=5),
            "clarity": Part("clarity_per_pct", clarity_points_zh, high=math.inf),
            "single_round": Part("single_round_score", _twice, high=5),
            "instruction_following": Part("if_fr_pct", _tenth),
            "empathy": Part("ee_eer_pct", _tenth),
            "safety": Part("safety_rr_pct", _tenth),
        },
        cap=100.0,
    ),
    "vocalbench-en": Formula(
        parts={
            "knowledge": Part("knowledge_acc_pct", _tenth),
            "reasoning": Part("reasoning_score", _twice, high=5),
            "creativity": Part("creativity_score", _twice, high=5),
            "fluency": Part("fluency_utmos", _plain, high=5),
            "clarity": Part("clarity_wer_pct", clarity_points_en, high=math.inf),
            "single_round": Part("single_round_score", _twice, high=5),
            "instruction_following": Part("if_fr_pct", _tenth),
            "empathy": Part("ee_score", _plain, high=10),
            "safety": Part("safety_rr_pct", _tenth),
        },
        cap=math.inf,
    ),
}


def overall(benchmark: str, columns: Mapping[str, float | None]) -> Overall:
    """The formula of `benchmark` on one row. columns: by the names of a rows file; None or absent is missing.

    Robustness is taken from the six `<condition>_pr_pct` when one of them is there, else from `robust_pr_pct`, their
    average as published. Raises ConfigError for a benchmark without a formula.
    """
    formula = formula_of(benchmark)
    values = {name: columns.get(part.column) for name, part in formula.parts.items()}
    points = {name: formula.parts[name].points(value) for name, value in values.items() if value is not None}
    missing = [name for name, value in values.items() if value is None]
    rates = {condition: columns.get(f"{condition}_pr_pct") for condition in CONDITIONS}
    present = [min(rate, formula.cap) for rate in rates.values() if rate is not None]
    average = columns.get(ROBUST_COLUMN)
    if present and len(present) < len(rates):
        missing += [f"{ROBUSTNESS}: {condition}" for condition, rate in rates.items() if rate is None]
    elif present:
        points[ROBUSTNESS] = math.fsum(present) * _EACH / 100
    elif average is not None:
        points[ROBUSTNESS] = len(CONDITIONS) * _EACH * min(average, formula.cap) / 100
    else:
        missing.append(ROBUSTNESS)
    return Overall(None if missing else math.fsum(points.values()), points, tuple(missing))


def formula_of(benchmark: str) -> Formula:
    """Raises ConfigError for a benchmark without a formula."""
    if benchmark not in FORMULAS:
        raise ConfigError(f"no overall formula for {benchmark!r}; {nearest(benchmark, FORMULAS)}")
    return FORMULAS[benchmark]


def overall_of_rows(path: Path, benchmark: str = "vocalbench-zh") -> list[OverallRow]:
    """The formula on every row of a CSV file with a column `model` and one for each ability; lines that begin with #
    are notes. Robustness is `robust_pr_pct`, or the six `<condition>_pr_pct`, which win. An empty cell is a missing
    ability, so that row's overall has no value.

    Raises ConfigError for a file that cannot be read, a missing or unknown column, a number that is none or out of
    range, naming the row.
    """
    return [
        OverallRow(model, overall(benchmark, columns), columns.get("overall"))
        for model, columns in rows_of(path, benchmark)
    ]


def rows_of(path: Path, benchmark: str) -> list[tuple[str, dict[str, float | None]]]:
    """Model and columns of each row of a rows file. Raises as `overall_of_rows`."""
    formula = formula_of(benchmark)
    header, lines = _read(path)
    _check_header(path, header, formula)
    bounds = {part.column: (part.low, part.high) for part in formula.parts.values()} | {"overall": (0.0, 100.0)}
    bounds |= dict.fromkeys((ROBUST_COLUMN, *(f"{condition}_pr_pct" for condition in CONDITIONS)), (0.0, _HIGHEST_RATE))
    numbers = [name for name in header if name not in TEXT_COLUMNS]
    found: list[tuple[str, dict[str, float | None]]] = []
    for number, line in lines:
        row = _Row(path, number, dict(zip(header, line, strict=True)))
        columns = {name: row.number(name, *bounds.get(name, (0.0, math.inf))) for name in numbers}
        found.append((row.model, columns))
    return found


class _Row(NamedTuple):
    path: Path
    line: int
    cells: dict[str, str]

    @property
    def model(self) -> str:
        return self.cells["model"].strip()

    def number(self, column: str, low: float, high: float) -> float | None:
        text = self.cells.get(column, "").strip()
        if text in ("", "-"):
            return None
        value = float(text) if _NUMBER.fullmatch(text) else math.nan
        if not low <= value <= high or not math.isfinite(value):
            bounds = f"of {low:g} or more" if math.isinf(high) else f"from {low:g} to {high:g}"
            raise ConfigError(
                f"{self.path}:{self.line}: {self.model}: {column} is {text!r}; a number {bounds} is needed"
            )
        return value


def _read(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header, and each row with its line number."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            lines = [(reader.line_num, line) for line in reader if any(line) and not line[0].startswith("#")]
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be read ({exc.strerror or exc})") from exc
    except (UnicodeDecodeError, csv.Error) as exc:
        raise ConfigError(f"{path}: is no CSV file ({exc})") from exc
    if len(lines) < 2:
        raise ConfigError(f"{path}: holds no rows; a header and at least one row are needed")
    header = [name.strip() for name in lines[0][1]]
    for number, line in lines[1:]:
        if len(line) != len(header):
            raise ConfigError(f"{path}:{number}: {line[0]}: {len(line)} cells, the header has {len(header)}")
    return header, lines[1:]


def _check_header(path: Path, header: list[str], formula: Formula) -> None:
    columns = [part.column for part in formula.parts.values()]
    six = [f"{condition}_pr_pct" for condition in CONDITIONS]
    known = [*TEXT_COLUMNS, *columns, *OTHER_COLUMNS, ROBUST_COLUMN, *six]
    for name in header:
        if name not in known:
            raise ConfigError(f"{path}: unknown column {name!r}; {nearest(name, known)}")
        if header.count(name) > 1:
            raise ConfigError(f"{path}: column {name!r} stands there twice")
    for name in ("model", *columns):
        if name not in header:
            raise ConfigError(f"{path}: column {name!r} is missing")
    lacking = [name for name in six if name not in header]
    if lacking and ROBUST_COLUMN not in header:
        raise ConfigError(f"{path}: column {ROBUST_COLUMN!r} is missing, or all six of {', '.join(six)}")
    if lacking and len(lacking) < len(six):
        raise ConfigError(f"{path}: column {lacking[0]!r} is missing: of the six preserve rates all or none")
