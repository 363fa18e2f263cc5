"""The running transcript of a live session: what the peer understood, and what it answers. Bounded, for the eye."""

from __future__ import annotations

from collections import deque
from typing import Literal

import msgspec

from harness.core.events import Event, TextReceived, UserTranscript

LINES = 40
LONGEST = 2_000
"""Characters of a line; an answer that never ends keeps its last ones."""


class Line(msgspec.Struct, frozen=True, array_like=True):
    """text: a peer's words, not to be trusted with a terminal or a page."""

    who: Literal["user", "agent"]
    text: str


class Transcript:
    """`take` every event of the session."""

    def __init__(self) -> None:
        self._lines: deque[tuple[str, Line]] = deque(maxlen=LINES)
        self._kinds: deque[tuple[str, str]] = deque(maxlen=LINES)

    @property
    def lines(self) -> tuple[Line, ...]:
        return tuple(line for _, line in self._lines)

    def take(self, event: Event) -> None:
        if isinstance(event, UserTranscript):
            self._understood(event)
        elif isinstance(event, TextReceived) and event.text:
            self._written(event)

    def _understood(self, event: UserTranscript) -> None:
        """A final text takes the place of what was understood of the same item so far."""
        key = f"user {event.item}"
        before = next((at for at, (name, _) in enumerate(self._lines) if name == key), None)
        text = event.text
        if before is not None:
            if not event.final:
                text = self._lines[before][1].text + text
            self._lines[before] = (key if not event.final else "", Line("user", text[-LONGEST:]))
        elif text.strip():
            self._lines.append(("" if event.final else key, Line("user", text[-LONGEST:])))

    def _written(self, event: TextReceived) -> None:
        """Of a peer that sends its text twice, as the model's and as its voice's, the one that came first counts."""
        kind = next((kind for name, kind in self._kinds if name == event.response and name), None)
        if kind is None:
            self._kinds.append((event.response, event.kind))
        elif kind != event.kind:
            return
        key = f"agent {event.response}"
        if self._lines and self._lines[-1][0] == key:
            text = self._lines[-1][1].text + event.text
            self._lines[-1] = (key, Line("agent", text[-LONGEST:]))
        elif event.text.strip():
            self._lines.append((key, Line("agent", event.text.lstrip()[-LONGEST:])))
