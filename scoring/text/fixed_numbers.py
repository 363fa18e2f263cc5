"""Digits to Mandarin as they are said: the reader of the `fixed` profile.

Cardinals with 十, 零 and 两 in their places, years and codes digit by digit, dates, clock times, percentages,
fractions, ranges, thousands separators and negative numbers. Where a reading depends on meaning the commoner one is
taken: four digits before 年 are a year unless they end in 000, two numbers joined by a dash are a range.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from scoring.text.official_numbers import DIGITS, digit_by_digit

_GROUP_UNITS = ("", "万", "亿", "万亿")
_LONGEST = 4 * len(_GROUP_UNITS)
"""Longer runs of digits are codes."""
_MEASURES = (
    "个位只次年天种条张本名家座部杯块件台辆岁倍周层栋颗粒匹头双对份盒瓶碗斤吨米克升秒款项句首篇支枝把间场届套组轮步"
)
_NUMBER = r"\d+(?:\.\d+)?"
_DASH = r"\s*[-‐-―−~～]\s*"


def read_numbers(text: str) -> str:
    """`text` with every number replaced by how it is said. Digits of any script count by their value."""
    text = re.sub(r"\d", lambda match: str(int(match[0])), text)
    for pattern, spoken in _RULES:
        text = pattern.sub(spoken, text)
    return text


def cardinal(digits: str) -> str:
    """The cardinal of ASCII `digits`; digit by digit when it begins with 0 or is longer than 16."""
    if len(digits) > _LONGEST or (len(digits) > 1 and digits[0] == "0"):
        return digit_by_digit(digits)
    if digits == "0":
        return DIGITS[0]
    spoken, gap = "", False
    for group in range((len(digits) - 1) // 4, -1, -1):
        value = int(digits[-4 * (group + 1) : len(digits) - 4 * group])
        if value == 0:
            gap = True
            continue
        if spoken and (gap or value < 1000):
            spoken += DIGITS[0]
        spoken, gap = spoken + _group(value) + _GROUP_UNITS[group], False
    # 一十 at the very start is said 十; a leading 2 before 千, 万 or 亿 is said 两.
    spoken = spoken.removeprefix("一") if spoken.startswith("一十") else spoken
    return "两" + spoken[1:] if re.match("二[千万亿]", spoken) else spoken


def _group(value: int) -> str:
    """One to 9999, inner zeros once, trailing zeros not at all."""
    spoken = ""
    for place, unit in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = value // place % 10
        if digit:
            spoken += DIGITS[digit] + unit
        elif spoken and value % place and not spoken.endswith(DIGITS[0]):
            spoken += DIGITS[0]
    return spoken


def _say(number: str) -> str:
    whole, _, decimals = number.partition(".")
    return cardinal(whole) + (f"点{digit_by_digit(decimals)}" if decimals else "")


def _date(match: re.Match[str]) -> str:
    year, month, day = match.groups()
    said_day = f"{cardinal(str(int(day)))}日" if day else ""
    return f"{digit_by_digit(year)}年{cardinal(str(int(month)))}月{said_day}"


def _clock(match: re.Match[str]) -> str:
    hour, minute = str(int(match[1])), match[2]
    if minute == "00":
        return f"{cardinal(hour)}点"
    said = digit_by_digit(minute) if minute[0] == "0" else cardinal(minute)
    return f"{cardinal(hour)}点{said}分"


def _percent(match: re.Match[str]) -> str:
    low, high, sign = match.groups()
    of = "千分之" if sign == "‰" else "百分之"
    return of + (f"{_say(low)}到" if low else "") + _say(high)


def _plain(match: re.Match[str]) -> str:
    number = match[0]
    mobile = re.fullmatch(r"1[3-9]\d{9}", number) and not number.endswith("000")
    return digit_by_digit(number) if mobile else _say(number)


_RULES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern), spoken)
    for pattern, spoken in (
        (r"(?<=\d),(?=\d{3}(?!\d))", lambda match: ""),
        (r"(?<!\d)(\d{4})[-/.](1[0-2]|0?[1-9])[-/.](3[01]|[12]\d|0?[1-9])(?!\d)", _date),
        (r"(?<!\d)(\d{4})-(1[0-2]|0[1-9])()(?!\d)", _date),
        (rf"(?<=[\d%％年月日号时点分]){_DASH}(?=[\d零一二三四五六七八九])", lambda match: "到"),
        (r"(?<![\d:.])([01]?\d|2[0-4])[:：]([0-5]\d)(?![\d:.])", _clock),
        (r"(?<!\d)(?!\d000)\d{4}(?=\s*年|到\d{4}\s*年)", lambda match: digit_by_digit(match[0])),
        (rf"(?:(?<![\d.])({_NUMBER})到)?({_NUMBER})\s*([%％‰])", _percent),
        (r"(?<![\d./])(\d{1,3})/(\d{1,3})(?![\d./])", lambda match: f"{cardinal(match[2])}分之{cardinal(match[1])}"),
        (r"\d+(?:\.\d+){2,}", lambda match: "点".join(map(digit_by_digit, match[0].split(".")))),
        (r"(?<![\w)\]])[-−](?=\d)", lambda match: "负"),
        (rf"(?<![\d.第])2(?=\s*(?:[{_MEASURES}]|小时|分钟))", lambda match: "两"),
        (_NUMBER, _plain),
    )
)
"""Tried in this order; each leaves Hanzi where it found digits."""
