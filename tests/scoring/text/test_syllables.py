"""PER over tonal syllables: published item values bit for bit, and readings that nobody in the process can change."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pypinyin
import pytest

from scoring.text.error_rate import pooled
from scoring.text.syllables import _pypinyin, phoneme_error_rate, reader_version, syllables

pytestmark = pytest.mark.unit
SHARED = Path(__file__).parents[4] / "shared"
SAMPLE = SHARED / "data" / "vocalbench-zh" / "model_output" / "qwen3-omni"


@pytest.mark.skipif(not SAMPLE.is_dir(), reason="shared data is not here: vocalbench-zh")
def test_published_item_rates_bit_for_bit():
    heard = json.loads((SAMPLE / "json_asr" / "chinese_knowledge.json").read_text(encoding="utf-8"))
    published = json.loads((SAMPLE / "result" / "chinese_knowledge.json").read_text(encoding="utf-8"))
    with (SHARED / "golden" / "vocalbench_zh_per_sample.csv").open(encoding="utf-8") as file:
        counts = {row["qid"]: row for row in csv.DictReader(file)}
    assert len(heard) == len(published) == len(counts) == 5
    for answer, result in zip(heard, published, strict=True):
        rate = phoneme_error_rate(answer["Response"], answer["Response_hyp"])
        row = counts[answer["Qid"]]
        assert rate.rate == result["PER"] == float(row["per_published"])
        assert (rate.edits, rate.length) == (int(row["edit_distance"]), int(row["reference_syllables"]))
    together = pooled(phoneme_error_rate(answer["Response"], answer["Response_hyp"]) for answer in heard)
    assert (together.edits, together.length) == (29, 815)


def test_homophones_are_free_and_a_tone_costs_a_syllable():
    assert phoneme_error_rate("商阳穴", "商羊穴").edits == 0
    assert phoneme_error_rate("妈妈", "马妈").edits == 1
    assert syllables("我的") == ["wo3", "de"]


def test_profiles_differ_where_a_number_is_misread():
    official, fixed = (phoneme_error_rate("有15个", "有十五个", profile) for profile in ("official", "fixed"))
    assert (official.edits, official.length) == (1, 4)
    assert (fixed.edits, fixed.length) == (0, 4)


def test_latin_letters_and_signs_do_not_count():
    assert phoneme_error_rate("**Transformer**很好。", "很好").rate == 0.0


def test_an_empty_reference_is_no_error_whatever_was_heard():
    assert phoneme_error_rate("OK!", "你好").rate == 0.0


def test_phrases_added_to_the_shared_dictionary_change_nothing():
    before = syllables("中国银行")
    pypinyin.load_phrases_dict({"中国银行": [["a"], ["b"], ["c"], ["d"]]})
    try:
        assert syllables("中国银行") == before == ["zhong1", "guo2", "yin2", "hang2"]
    finally:
        del pypinyin.constants.PHRASES_DICT["中国银行"]
    assert _pypinyin() is not pypinyin
    assert reader_version() == f"pypinyin {pypinyin.__version__}"
