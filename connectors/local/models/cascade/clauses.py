"""Cuts a stream of text into clauses that can be spoken one by one, each as soon as it is known to be whole."""

from __future__ import annotations

import re

_SENTENCE_END = ".!?;:。！？；：\n…"
_PAUSE = ",，、"
_FULL_WIDTH = "。！？；：，、…\n"
"""Ends a clause whatever follows; after the others a space must come: 3.5 and 17,000 are one word."""
FIRST_LETTERS, LETTERS = 12, 40
"""Least length of a clause that ends with a pause and not with a sentence, in letters (a CJK character counts three):
the first is short, since the listener waits for it; later ones sound better long."""
LONGEST = 240
"""Letters after which a clause is cut at the last space, or here: a synthesizer has limits."""
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_MARKUP = str.maketrans("", "", "*`#_~|<>")
_THINKING = re.compile(r"<think>.*?(</think>|$)", re.DOTALL)


def is_chinese(text: str) -> bool:
    """Whether `text` is written in Chinese characters (a Latin name in it changes nothing)."""
    return _CJK.search(text) is not None


def spoken(text: str) -> str:
    """`text` without what is not said: markup, and all of it where no letter or digit is left."""
    plain = " ".join(text.translate(_MARKUP).split())
    return plain if any(char.isalnum() for char in plain) else ""


class Clauses:
    """Feed it pieces of text in order; take the clauses that they complete. The clauses joined are the text."""

    def __init__(self) -> None:
        self._rest = ""
        self._count = 0

    def push(self, text: str) -> list[str]:
        """Clauses that are complete now."""
        self._rest += text
        found = []
        while (end := self._end()) is not None:
            found.append(self._rest[:end])
            self._rest = self._rest[end:]
            self._count += 1
        return found

    def flush(self) -> list[str]:
        """What is left when the text is over."""
        rest, self._rest = self._rest, ""
        return [rest] if rest.strip() else []

    def _end(self) -> int | None:
        least = LETTERS if self._count else FIRST_LETTERS
        letters = 0
        for at, char in enumerate(self._rest):
            letters += 3 if _CJK.match(char) else char.isalnum()
            if letters >= LONGEST:
                return self._rest.rfind(" ", 0, at) + 1 or at + 1
            if char not in _SENTENCE_END and char not in _PAUSE:
                continue
            following = self._rest[at + 1 : at + 2]
            whole = char in _FULL_WIDTH or following.isspace()
            if whole and letters and (char in _SENTENCE_END or letters >= least):
                return at + 1
        return None
