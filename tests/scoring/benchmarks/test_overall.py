"""Overall formulas on published rows, and rows files that are wrong."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import ConfigError
from scoring.benchmarks.leaderboard import published_rows
from scoring.benchmarks.overall import (
    CONDITIONS,
    FORMULAS,
    clarity_points_en,
    clarity_points_zh,
    overall,
    overall_of_rows,
)

pytestmark = pytest.mark.unit
GOLDEN = Path(__file__).parents[4] / "shared" / "golden"
here = pytest.mark.skipif(not GOLDEN.is_dir(), reason="shared data is not here: golden tables")
BEST = {part.column: part.high for part in FORMULAS["vocalbench-zh"].parts.values()} | {"clarity_per_pct": 0.0}


@here
def test_table_2_within_a_thousandth_and_the_inconsistent_row_named():
    rows = overall_of_rows(GOLDEN / "vocalbench_zh_table2.csv")
    assert len(rows) == 15
    off = {row.model: row.residual for row in rows if row.residual is None or abs(row.residual) > 0.001}
    assert list(off) == ["Qwen3-Omni"]
    assert off["Qwen3-Omni"] == pytest.approx(-0.0543, abs=1e-4)


@here
def test_table_2_with_the_six_preserve_rates_of_table_15(tmp_path: Path):
    with (GOLDEN / "table15.csv").open(encoding="utf-8") as file:
        rates = {row["model"]: row for row in csv.DictReader(file)}
    with (GOLDEN / "vocalbench_zh_table2.csv").open(encoding="utf-8") as file:
        rows = [
            row | {f"{c}_pr_pct": rates[row["model"]][f"{c}_pr_pct"] for c in CONDITIONS}
            for row in csv.DictReader(file)
        ]
    path = tmp_path / "rows.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [name for name in rows[0] if name != "robust_pr_pct"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    found = {row.model: row for row in overall_of_rows(path)}
    assert found["MiMo-Audio-Instruct"].overall.value == pytest.approx(76.178, abs=1e-4)
    # Three of Baichuan's rates are above 100 and count as 100.
    assert found["Baichuan-Omni-1.5"].overall.points["robustness"] == pytest.approx((5 * 100 + 96.14) / 40)
    assert [row.model for row in found.values() if abs(row.residual) > 0.001] == ["Qwen3-Omni"]


@here
def test_the_packaged_rows_are_those_of_table_2():
    packaged, source = published_rows("vocalbench-zh")
    with (GOLDEN / "vocalbench_zh_table2.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            mine = packaged[row["model"]]
            assert all(mine[name] == (float(cell) if cell else None) for name, cell in row.items() if name in mine)
    assert "Table 2" in source


@here
def test_clarity_ladders():
    vectors = json.loads((GOLDEN / "computed_vectors.json").read_text(encoding="utf-8"))
    assert all(clarity_points_zh(rate) == points for rate, points in vectors["clarity_zh"])
    assert all(clarity_points_en(rate) == points for rate, points in vectors["clarity_en"])


def test_the_english_rows_within_a_thousandth_but_one():
    rows, _ = published_rows("vocalbench-en")
    off = {}
    for model, columns in rows.items():
        found = overall("vocalbench-en", columns).value
        if abs(found - columns["overall"]) > 0.00105:
            off[model] = found - columns["overall"]
    assert off == {"Kimi-Audio": pytest.approx(-0.041, abs=1e-3)}
    # Its safety of 83.35 should have been 83.75.
    mended = overall("vocalbench-en", rows["Kimi-Audio"] | {"safety_rr_pct": 83.75}).value
    assert mended == pytest.approx(rows["Kimi-Audio"]["overall"], abs=0.0011)


def test_the_best_there_is_scores_100():
    assert overall("vocalbench-zh", BEST | {"robust_pr_pct": 100.0}).value == 100.0


def test_missing_parts_are_named_and_never_zero():
    found = overall("vocalbench-zh", BEST | {"fluency_utmos": None})
    assert found.value is None
    assert found.missing == ("fluency", "robustness")
    assert found.points["safety"] == 10.0
    five = {f"{name}_pr_pct": 90.0 for name in CONDITIONS[:-1]}
    assert overall("vocalbench-zh", BEST | five).missing == ("robustness: clipping",)


@given(st.floats(0, 200), st.floats(0, 200))
def test_a_lower_error_rate_never_costs_points(first: float, second: float):
    low, high = sorted((first, second))
    for points in (clarity_points_zh, clarity_points_en):
        assert 0 <= points(high) <= points(low) <= 10


HEADER = ",".join(["model", *BEST, "robust_pr_pct"])
CELLS = ["m", *(str(value) for value in BEST.values()), "100"]


def _file(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_an_empty_cell_leaves_that_row_without_an_overall(tmp_path: Path):
    path = _file(tmp_path, "# a note", HEADER, ",".join(CELLS), ",".join(["n", "", *CELLS[2:]]))
    first, second = overall_of_rows(path)
    assert first.overall.value == 100.0
    assert first.printed is None
    assert first.residual is None
    assert second.overall.value is None
    assert second.overall.missing == ("knowledge",)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            [HEADER.replace("safety_rr_pct", "safety_pct"), ",".join(CELLS)],
            "unknown column 'safety_pct'.*safety_rr_pct",
        ),
        ([HEADER.replace(",safety_rr_pct", ""), ",".join(CELLS[:-1])], "column 'safety_rr_pct' is missing"),
        ([HEADER.replace(",robust_pr_pct", ""), ",".join(CELLS[:-1])], "'robust_pr_pct' is missing, or all six"),
        ([f"{HEADER},clipping_pr_pct", ",".join([*CELLS, "9"])], "'white_noise_pr_pct' is missing: .* all or none"),
        ([f"{HEADER},overall,overall", ",".join([*CELLS, "9", "9"])], "'overall' stands there twice"),
        ([HEADER, ",".join(["Kimi", "59,6x", *CELLS[2:]])], "rows.csv:2: Kimi: 12 cells, the header has 11"),
        ([HEADER, ",".join(["Kimi", "59x", *CELLS[2:]])], "rows.csv:2: Kimi: knowledge_acc_pct is '59x'"),
        ([HEADER, ",".join(["Kimi", "5_0", *CELLS[2:]])], "rows.csv:2: Kimi: knowledge_acc_pct is '5_0'"),
        ([HEADER, ",".join([*CELLS[:-1], "501"])], "rows.csv:2: m: robust_pr_pct is '501'; .* from 0 to 500"),
        ([HEADER, ",".join(["Kimi", "nan", *CELLS[2:]])], "rows.csv:2: Kimi: knowledge_acc_pct is 'nan'"),
        ([HEADER, ",".join(CELLS), ",".join(["Kimi", "101", *CELLS[2:]])], "rows.csv:3: Kimi: .* from 0 to 100"),
        ([HEADER], "holds no rows"),
        (["model,\x00"], "holds no rows|is no CSV"),
    ],
)
def test_a_wrong_file_is_one_clear_line(tmp_path: Path, lines: list[str], message: str):
    with pytest.raises(ConfigError, match=message) as caught:
        overall_of_rows(_file(tmp_path, *lines))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_and_an_unknown_benchmark(tmp_path: Path):
    with pytest.raises(ConfigError, match="cannot be read"):
        overall_of_rows(tmp_path / "none.csv")
    with pytest.raises(ConfigError, match="vocalbench-zh"):
        overall_of_rows(tmp_path / "none.csv", "vocalbench-zn")
