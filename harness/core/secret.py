"""Keys: read from the environment by name, and taken out again wherever a peer sends them back (in a refusal, an error,
a close reason) before anything is recorded."""

from __future__ import annotations

import os
import re
from typing import Any

import msgspec

from harness.core.connector import Sink
from harness.core.errors import ConfigError, ConnectorError, PrerequisiteError
from harness.core.events import Event, WireFrame

MASK = "[key]"
SHORTEST_CUT = 40
"""No bound on a peer's words is shorter (characters); shorter text is whole."""
TELLING = 6
"""Characters of a key at the end of a cut text that count as its beginning."""
LONGEST = 400
"""Characters kept of a peer's own words in an error; cut after the key has been taken out."""


_ESCAPE = re.compile(r"\\u00([2-7][0-9a-fA-F])|\\/")


def unescaped(text: str) -> str:
    """JSON with the escapes of printable ASCII read, but not parsed: works on broken and on endlessly nested text.

    Quotes and backslashes stay escaped.
    """
    return _ESCAPE.sub(_plain, text)


def _plain(escape: re.Match[str]) -> str:
    char = chr(int(escape[1], 16)) if escape[1] else "/"
    return escape[0] if char in '"\\\x7f' else char


def read_key(key_env: str | None, host: str, option: str = "--key-env") -> str | None:
    """The key that the environment variable `key_env` holds; None for None.

    Raises ConfigError for what is no name or no key, PrerequisiteError for one that is not set.
    """
    if key_env is None:
        return None
    if not key_env.isidentifier():
        raise ConfigError(f"{option} takes the name of an environment variable, not a key")
    key = os.environ.get(key_env, "").strip()
    if not key:
        raise PrerequisiteError(f"set the environment variable {key_env} to the key for {host}")
    if not key.isascii() or not key.isprintable():
        raise ConfigError(f"{key_env} holds characters that no key has; set it again")
    return key


class Secret:
    """A key and other secret values, or none. `scrub` works on text, `guard` on a sink, `scrubbed` on an error.

    Found as it is and as JSON escapes it; a peer that encodes it otherwise (base64, in pieces) is not seen through.
    """

    def __init__(self, *keys: str | None) -> None:
        # The longest first: one may be part of another (`Bearer KEY`).
        self._keys = sorted({key for key in keys if key}, key=len, reverse=True)

    def with_also(self, *keys: str) -> Secret:
        """These keys too."""
        return Secret(*self._keys, *keys)

    def scrub(self, text: str) -> str:
        for key in self._keys:
            text = text.replace(key, MASK)
            if len(text) >= SHORTEST_CUT:  # a bound of ours may have cut the text in the middle of the key
                text = _without_beginning(text, key)
        return text

    def guard(self, sink: Sink) -> Sink:
        """A sink that hands events on without the key; free of cost where there is none."""
        if not self._keys:
            return sink

        def guarded(event: Event) -> None:
            sink(self._clean(event))

        return guarded

    def scrubbed(self, error: ConnectorError) -> ConnectorError:
        """The same error without the key in its message and code, cut to a readable length."""
        message = self.scrub(str(error))
        message = message if len(message) <= LONGEST else message[:LONGEST] + "…"
        code = self.scrub(error.code) if error.code else error.code
        return ConnectorError(
            message, kind=error.kind, retryable=error.retryable, code=code, retry_after_s=error.retry_after_s
        )

    def _clean(self, event: Event) -> Event:
        if isinstance(event, WireFrame):
            return self._clean_wire(event)
        found: dict[str, Any] = {}
        for name in event.__struct_fields__:
            value = getattr(event, name)
            if isinstance(value, str | dict):
                cleaned = self._deep(value)
                if cleaned != value:
                    found[name] = cleaned
        return msgspec.structs.replace(event, **found) if found else event

    def _clean_wire(self, event: WireFrame) -> WireFrame:
        """Escapes inside JSON (`\\u0073k-`) are read before the key is looked for."""
        text = event.text
        if "\\" in text:
            try:
                decoded = msgspec.json.decode(text)
                cleaned = self._deep(decoded)
                if cleaned != decoded:
                    text = msgspec.json.encode(cleaned).decode()
            except (msgspec.DecodeError, RecursionError):  # no JSON, or nested beyond measure
                plain = unescaped(text)
                text = text if self.scrub(plain) == plain else plain
        text = self.scrub(text)
        return event if text == event.text else msgspec.structs.replace(event, text=text)

    def _deep(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.scrub(value)
        if isinstance(value, dict):
            return {self._deep(key): self._deep(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._deep(each) for each in value]
        return value


def _without_beginning(text: str, key: str) -> str:
    """`text` with a beginning of `key` that it ends in masked."""
    for length in range(min(len(key) - 1, len(text)), TELLING - 1, -1):
        if text.endswith(key[:length]):
            return text[:-length] + MASK
    return text
