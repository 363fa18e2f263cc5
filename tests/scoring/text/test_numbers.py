"""Both number readers: published vectors, spoken forms, and a reader back as an independent check."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.text import fixed_numbers, official_numbers
from scoring.text.syllables import hanzi

pytestmark = pytest.mark.unit
VECTORS = Path(__file__).parents[4] / "shared" / "golden" / "vocalbench_zh_number_normaliser.csv"
VALUES = {word: value for value, word in enumerate("零一二三四五六七八九")} | {"两": 2}
SCALES = {"十": 10, "百": 100, "千": 1000}


@pytest.mark.skipif(not VECTORS.is_file(), reason="shared data is not here: golden tables")
def test_the_official_reader_gives_every_published_vector():
    with VECTORS.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 14
    for row in rows:
        assert hanzi(row["input"], "official") == row["upstream_output"]


@pytest.mark.parametrize(
    ("text", "spoken"),
    [("15", "一五"), ("110000", "一一万"), ("00", ""), ("10-20", "一负二十"), ("-0.5", "负零点五"), ("１２", "一二")],
)
def test_defects_of_the_official_reader_are_kept(text: str, spoken: str):
    assert hanzi(text, "official") == spoken


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("15", "十五"),
        ("１１０", "一百一十"),
        ("1000000", "一百万"),
        ("100010", "十万零一十"),
        ("10010000", "一千零一万"),
        ("2000", "两千"),
        ("222", "二百二十二"),
        ("22000", "两万二千"),
        ("12,345,678", "一千二百三十四万五千六百七十八"),
        ("007", "零零七"),
        ("13812345678", "一三八一二三四五六七八"),
        ("13000000000", "一百三十亿"),
        ("3.14", "三点一四"),
        ("1.2.3", "一点二点三"),
        ("2024年", "二零二四年"),
        ("1000年", "一千年"),
        ("公元前221年", "公元前二百二十一年"),
        ("1949-1952年", "一九四九到一九五二年"),
        ("2024-05-01", "二零二四年五月一日"),
        ("2024-05", "二零二四年五月"),
        ("8:05", "八点零五分"),
        ("8:00-9:30", "八点到九点三十分"),
        ("50%", "百分之五十"),
        ("10-20%", "百分之十到二十"),
        ("10%~20%", "百分之十到百分之二十"),
        ("5‰", "千分之五"),
        ("1/3", "三分之一"),
        ("10-20个", "十到二十个"),
        ("0.1～0.2寸", "零点一到零点二寸"),
        ("-5度", "负五度"),
        ("2个", "两个"),
        ("12个", "十二个"),
        ("第2个", "第二个"),
        ("2小时", "两小时"),
        ("2月", "二月"),
        ("没有数字", "没有数字"),
        ("", ""),
    ],
)
def test_the_fixed_reader_says_numbers_as_people_do(text: str, spoken: str):
    assert fixed_numbers.read_numbers(text) == spoken


def _value(spoken: str) -> int:
    """Reads a cardinal back, largest unit first."""
    for unit, scale in (("万亿", 10**12), ("亿", 10**8), ("万", 10**4)):
        if unit in spoken:
            high, _, low = spoken.partition(unit)
            return _value(high) * scale + _value(low)
    total, digit = 0, None
    for word in spoken:
        if word in SCALES:
            total, digit = total + (1 if digit is None else digit) * SCALES[word], None
        else:
            digit = VALUES[word] or None
    return total + (digit or 0)


@given(st.integers(0, 10**15))
def test_what_the_fixed_reader_says_reads_back_as_the_number(number: int):
    assert _value(fixed_numbers.cardinal(str(number))) == number


@given(st.text(alphabet="0123456789.-,%/:年个 a~", max_size=40))
def test_neither_reader_leaves_a_digit_or_fails(text: str):
    for reader in (official_numbers, fixed_numbers):
        assert not any(character.isdigit() for character in reader.read_numbers(text))
