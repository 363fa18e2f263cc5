"""How long a busy peer asks us to stay away: a `Retry-After` header, or the words of a rate-limit error. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_WAIT_S = 300.0
"""A peer that asks for more is not waited for: the run would stand still."""
UNSAID_WAIT_S = 1.0
"""After a rate-limit error that names no time."""
RATE_LIMIT_CODES = frozenset(
    {
        "429",
        "rate_limit_exceeded",
        "rate_limit_error",
        "rate_limited",
        "too_many_requests",
        "resource_exhausted",
        "throttling",
        "throttlingexception",
        "concurrency_limit_reached",
    }
)
"""Codes of the services' rate-limit errors, in lower case."""

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SPAN = r"(?:\d+(?:\.\d+)?\s*(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|h)(?![a-z])\s*)+"
_WORDS = re.compile(
    rf"(?:try again|retry|wait|reset|come back)\D{{0,24}}?(?P<span>{_SPAN})|retry.?delay\W+(?P<delay>{_SPAN})",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milli|s|m|h)", re.IGNORECASE)


def read_retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Seconds that a `Retry-After` header names: a number of them, or an HTTP date; None for none or nonsense.

    now: what a date is compared with (aware; None: this machine's wall clock).

    >>> read_retry_after("2.5")
    2.5
    """
    text = (value or "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d+)?", text):
        return float(text)
    try:
        then = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):  # OverflowError: a year or an offset of twenty digits
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return max(0.0, (then - (now or datetime.now(UTC))).total_seconds())


def asked_wait_s(code: str, message: str) -> float | None:
    """Seconds that an error asks us to wait; None for an error that is about no rate limit.

    >>> asked_wait_s("rate_limit_exceeded", "Limit 3/min. Please try again in 1m20s.")
    80.0
    """
    if code.strip().lower() not in RATE_LIMIT_CODES:
        return None
    said = _WORDS.search(message[:2000])
    if said is None:
        return UNSAID_WAIT_S
    span = (said["span"] or said["delay"]).lower()
    parts = [(float(number), "ms" if unit == "milli" else unit) for number, unit in _PART.findall(_short(span))]
    return sum(number * _UNITS_S[unit] for number, unit in parts)


def _short(span: str) -> str:
    """Units by their shortest names."""
    for word, unit in (("milliseconds", "ms"), ("millisecond", "ms"), ("minutes", "m"), ("minute", "m")):
        span = span.replace(word, unit)
    for word, unit in (("mins", "m"), ("min", "m"), ("seconds", "s"), ("second", "s"), ("secs", "s"), ("sec", "s")):
        span = span.replace(word, unit)
    return span.replace("hours", "h").replace("hour", "h")
