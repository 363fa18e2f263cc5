"""Subsets, sizes and Qids of the two benchmarks, against the published table."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from harness.core.errors import ConfigError
from scenarios.benchmarks.catalogue import VOCALBENCH_EN, VOCALBENCH_ZH, catalogue_of
from scenarios.benchmarks.conditions import CONDITIONS, spec_of

pytestmark = pytest.mark.unit

SHARED = Path(__file__).parents[4] / "shared"
TABLE = SHARED / "golden" / "vocalbench_zh_subsets.csv"


def test_the_published_total() -> None:
    assert VOCALBENCH_ZH.total == 11_115
    assert len(VOCALBENCH_ZH.subsets) == 15
    assert sum(subset.items for subset in VOCALBENCH_EN.subsets) == 9_500


@pytest.mark.skipif(not TABLE.is_file(), reason="shared data is not here: golden")
def test_sizes_and_qids_are_those_of_the_published_table() -> None:
    with TABLE.open(encoding="utf-8") as file:
        published = {row["file"].removesuffix(".json"): row for row in csv.DictReader(file)}
    assert {subset.name for subset in VOCALBENCH_ZH.subsets} == set(published)
    for subset in VOCALBENCH_ZH.subsets:
        row = published[subset.name]
        assert subset.items == int(row["items"])
        if subset.name != "robust":
            assert subset.example() == row["qid_pattern"]


def test_a_qid_says_its_place_in_the_published_file() -> None:
    subset = VOCALBENCH_ZH.subset("chinese_knowledge")
    assert [subset.index(f"chinese_knowledge-{n}") for n in ("0000", "0999", "1000", "000", "x")] == [
        0,
        999,
        None,
        None,
        None,
    ]
    assert subset.index("foreign_knowledge-0000") is None
    robust = VOCALBENCH_ZH.subset("robust")
    # Conditions and levels by name: background noise first, of its levels -5, 0, 10, 15, 20, 5.
    assert robust.index("robust-background_noise-snr_-5-000") == 0
    assert robust.index("robust-background_noise-snr_5-007") == 507
    assert robust.index("robust-white_noise-snr_5-099") == 3599
    assert robust.index("robust-white_noise-snr_7-000") is None


def test_conditions_are_the_36_impairments() -> None:
    assert len(CONDITIONS) == 36
    expected = {
        "robust-background_noise-snr_-5-000": "noise:babble:snr=-5",
        "robust-white_noise-snr_20-000": "noise:white:snr=20",
        "robust-reverberation-rt60_05-000": "reverb:rt60=0.5",
        "robust-reverberation-rt60_30-000": "reverb:rt60=3",
        "robust-farfield-filter_400hz-000": "far_field:cutoff=400",
        "robust-packet_loss-dropping_0.70-000": "loss:rate=0.7",
        "robust-packet_loss-dropping_70-000": "loss:rate=0.7",  # as the English benchmark writes it
        "robust-distortion-clipping_0.0001-000": "clipping:threshold=0.0001",
    }
    assert {qid: str(spec_of(qid)) for qid in expected} == expected
    assert spec_of("robust_clean-000") is None
    assert VOCALBENCH_EN.subset("robust").index("robust-packet_loss-dropping_70-012") == VOCALBENCH_ZH.subset(
        "robust"
    ).index("robust-packet_loss-dropping_0.70-012")


def test_one_name_for_each_query_although_two_subsets_share_qids() -> None:
    one, other = VOCALBENCH_ZH.subset("cs_knowledge"), VOCALBENCH_ZH.subset("cs_knowledge_en")
    assert one.query_id("codeswitching_knowledge-007") == "codeswitching_knowledge-007"
    assert other.query_id("codeswitching_knowledge-007") == "cs_knowledge_en-007"


def test_names_that_do_not_exist() -> None:
    with pytest.raises(ConfigError, match="no subset 'saftey'; did you mean safety"):
        VOCALBENCH_ZH.choose(["saftey"])
    with pytest.raises(ConfigError, match="no benchmark 'vocalbench-cn'; did you mean vocalbench-"):
        catalogue_of("vocalbench-cn")


def test_what_is_chosen_stands_in_the_benchmarks_order() -> None:
    chosen = VOCALBENCH_ZH.choose(["robust", "safety"])
    assert [subset.name for subset in chosen] == ["safety", "robust"]
    assert "robust_clean" not in [subset.name for subset in VOCALBENCH_ZH.choose([])]
    assert sum(subset.items for subset in VOCALBENCH_ZH.choose([])) == 11_115
