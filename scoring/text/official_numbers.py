"""Digits to Mandarin the way VocalBench-zh reads them, defects and all; `fixed_numbers` reads them correctly.

The published error rates rest on this reader, so it stays as it is. What it gets wrong: 10 to 19 lose the word for ten
(15 reads 一五), as do numbers that begin with 1 at the ten of ten thousands (110000 reads 一一万); 1000000 reads
一百零; years are cardinals; a hyphen before digits is a minus sign; a thousands comma splits the number.
Source: VocalBench-zh snapshot 3524c78, `utils/per.py`.
"""

from __future__ import annotations

import re

DIGITS = "零一二三四五六七八九"
_UNITS = ("", "十", "百", "千", "万", "十", "百", "千", "亿", "十", "百", "千")
_NUMBER = re.compile(r"(-?)(\d+)(?:\.(\d+))?")


def read_numbers(text: str) -> str:
    """`text` with every run of digits replaced by its reading. Digits of any script count by their value."""
    return _NUMBER.sub(_spoken, text)


def digit_by_digit(digits: str) -> str:
    return "".join(DIGITS[int(digit)] for digit in digits)


def _spoken(match: re.Match[str]) -> str:
    sign, whole, decimals = match.groups()
    spoken = ("负" if sign else "") + _integer(whole)
    return spoken if decimals is None else f"{spoken}点{digit_by_digit(decimals)}"


def _integer(digits: str) -> str:
    if digits == "0":
        return DIGITS[0]
    spoken = ""
    for place, digit in zip(range(len(digits) - 1, -1, -1), digits, strict=True):
        unit = _UNITS[place] if place < len(_UNITS) else ""
        if int(digit):
            leading_ten = int(digit) == 1 and unit == "十" and place == len(digits) - 1
            spoken += DIGITS[int(digit)] + ("" if leading_ten else unit)
        elif place and _says_zero(digits, place, unit) and not spoken.endswith(DIGITS[0]):
            spoken += DIGITS[0]
    return spoken


def _says_zero(digits: str, place: int, unit: str) -> bool:
    follower = digits[len(digits) - place]
    return follower != "0" or unit in ("万", "亿")
