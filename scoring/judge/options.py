"""Which judge, how it is asked, and what it costs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import msgspec

from harness.core.errors import ConfigError

PATH = "/chat/completions"
PER = 1_000_000
"""Tokens that a price is for."""
_OWN_FIELDS = {
    "model": "see --judge-model",
    "messages": "the benchmark writes them",
    "temperature": "judges are asked at 0; null leaves it out, for models that refuse it",
    "stream": "replies are read whole",
    "n": "one reply is read",
}
"""Fields that `--judge-extra` may only take out, and why."""
_SECRET_NAME = re.compile(r"key|token|secret|passw|auth|sig(nature)?$", re.IGNORECASE)


class Price(NamedTuple):
    """Of a million tokens, in the user's currency."""

    prompt: float
    completion: float

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / PER


def parse_price(text: str) -> Price:
    """`IN,OUT` per million tokens. Raises ConfigError.

    >>> parse_price("2.4,9.6")
    Price(prompt=2.4, completion=9.6)
    """
    try:
        prompt, completion = (float(part) for part in text.split(","))
    except ValueError:
        prompt = completion = math.nan
    if not (0 <= prompt < math.inf and 0 <= completion < math.inf):
        raise ConfigError(f"--judge-price {text}: write the price of a million tokens in and out, such as 2.4,9.6")
    return Price(prompt, completion)


def parse_extra(pairs: Iterable[str]) -> dict[str, Any]:
    """Fields of a request's body from `NAME=JSON`; what is no JSON is taken as text. Raises ConfigError.

    >>> parse_extra(["enable_thinking=false", "reasoning_effort=low"])
    {'enable_thinking': False, 'reasoning_effort': 'low'}
    """
    found: dict[str, Any] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name.isidentifier():
            raise ConfigError("--judge-extra: write it as NAME=JSON, such as enable_thinking=false")
        if _SECRET_NAME.search(name) and "tokens" not in name:
            raise ConfigError(f"--judge-extra {name}: put no key here, name an environment variable (--judge-key-env)")
        try:
            found[name] = msgspec.json.decode(value)
        except msgspec.DecodeError:
            found[name] = value
        if name in _OWN_FIELDS and found[name] is not None:
            raise ConfigError(f"--judge-extra {name}: {_OWN_FIELDS[name]}")
    return found


class JudgeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """An OpenAI-compatible chat endpoint and how it is asked.

    url: base URL (`https://api.openai.com/v1`) or the whole one. key_env: name of the environment variable that holds
    the key; None for a server that wants none. extra: laid over every request's body; a None value takes the field out.
    concurrency: requests at a time. attempts: per call, when the service fails; being told to wait is no failure.
    backoff_s: before the second attempt, doubled from there on. price: None where only tokens are wanted. ca: PEM file
    to trust. Raises ConfigError.
    """

    url: str
    model: str
    key_env: str | None = None
    temperature: float = 0
    max_tokens: int | None = None
    seed: int | None = None
    extra: Mapping[str, Any] = msgspec.field(default_factory=dict)
    concurrency: int = 8
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout_s: float = 120.0
    attempts: int = 6
    backoff_s: float = 1.0
    price: Price | None = None
    ca: str | None = None

    def __post_init__(self) -> None:
        _ = self.endpoint
        if not self.model.strip():
            raise ConfigError("--judge-model: name the judge's model")
        positive = {
            "concurrency": self.concurrency,
            "attempts": self.attempts,
            "timeout": self.timeout_s,
            "max-tokens": self.max_tokens,
            "requests-per-minute": self.requests_per_minute,
            "tokens-per-minute": self.tokens_per_minute,
        }
        for name, value in positive.items():
            if value is not None and not 0 < value < math.inf:
                raise ConfigError(f"judge {name}: must be more than 0")

    @property
    def endpoint(self) -> str:
        """The URL that questions are posted to."""
        example = "it looks like https://api.openai.com/v1"
        try:
            parts = urlsplit(self.url.strip())
            _ = parts.port
        except ValueError as exc:
            raise ConfigError(f"--judge: the URL's host or port cannot be read; {example}") from exc
        names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
        if parts.username or parts.password or any(_SECRET_NAME.search(name) for name in names):
            raise ConfigError("--judge: put no key into the URL, name an environment variable with --judge-key-env")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"--judge {self.url!r} is no HTTP URL; {example}")
        path = parts.path.rstrip("/") or "/v1"
        return urlunsplit(parts._replace(path=path if path.endswith(PATH) else path + PATH, fragment=""))

    @property
    def host(self) -> str:
        """Host, and port where one is given."""
        return urlsplit(self.endpoint).netloc

    @property
    def name(self) -> str:
        """Model and host, as results name the judge."""
        return f"{self.model} ({self.host})"
