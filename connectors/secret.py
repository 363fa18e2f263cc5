"""A key that a peer sends back (in a refusal, an error, a close reason) is taken out before anything is recorded."""

from __future__ import annotations

import msgspec

from harness.core.connector import Sink
from harness.core.errors import ConnectorError
from harness.core.events import Event

MASK = "[key]"


class Secret:
    """One key, or none. `scrub` works on text, `guard` on a sink, `scrubbed` on an error."""

    def __init__(self, key: str | None) -> None:
        self._key = key or ""

    def scrub(self, text: str) -> str:
        return text.replace(self._key, MASK) if self._key else text

    def guard(self, sink: Sink) -> Sink:
        """A sink that hands events on without the key; free of cost where there is none."""
        if not self._key:
            return sink

        def guarded(event: Event) -> None:
            sink(self._clean(event))

        return guarded

    def scrubbed(self, error: ConnectorError) -> ConnectorError:
        """The same error without the key in its message."""
        return ConnectorError(self.scrub(str(error)), kind=error.kind, retryable=error.retryable, code=error.code)

    def _clean(self, event: Event) -> Event:
        found = {
            name: self.scrub(value)
            for name in event.__struct_fields__
            if isinstance(value := getattr(event, name), str) and self._key in value
        }
        return msgspec.structs.replace(event, **found) if found else event
