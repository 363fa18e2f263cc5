"""Base64 that arrives in pieces: each is whole by itself, or they are one text cut anywhere."""

from __future__ import annotations

import base64
import binascii

QUANTUM = 4
"""Characters that make three bytes."""


class Base64Stream:
    """One stream of base64 text. Characters that make no whole quantum wait for the next piece."""

    def __init__(self) -> None:
        self._rest = ""

    def push(self, text: str) -> bytes:
        """The bytes that are complete. Raises ValueError for what is no base64; the stream then begins afresh."""
        text = self._rest + text
        whole = len(text) - len(text) % QUANTUM
        self._rest = text[whole:]
        try:
            return base64.b64decode(text[:whole], validate=True)
        except (binascii.Error, ValueError) as exc:
            self._rest = ""
            raise ValueError(f"no base64: {exc}") from exc
