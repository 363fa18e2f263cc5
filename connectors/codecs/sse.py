"""Server-sent events out of a byte stream that is cut anywhere: an incremental, bounded reader. Sans-IO.

Works on bytes and decodes nothing, so that a character split over two reads is whole again before anybody looks at it.
Source: protocol sheet, section 12; the line rules are those of the HTML standard's event stream.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_EVENT_BYTES = 64 << 20
"""Bytes of one event, or of one line; a peer that sends more is not read on."""
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class SseEvent(NamedTuple):
    """One event. name: of its `event:` field, empty for none. t_ns, first_byte_ns: the reads that completed and began
    it. wire_bytes: length of its lines without their ends."""

    data: bytes
    t_ns: int
    first_byte_ns: int
    name: str = ""
    wire_bytes: int = 0


class SseReader:
    """Feed it a response body's pieces, each with the instant of its read; take the events that they complete.

    Comments, `id:`, `retry:` and unknown fields say nothing. overflow: a line or an event grew beyond `limit` bytes;
    nothing is read any more.
    """

    def __init__(self, limit: int = MAX_EVENT_BYTES) -> None:
        self.overflow = False
        self._limit = limit
        self._fresh = True
        self._after_cr = False
        self._line: list[bytes] = []
        self._line_bytes = 0
        self._forget()

    def feed(self, data: bytes, t_ns: int) -> list[SseEvent]:
        """The events that end in `data`, in order."""
        events: list[SseEvent] = []
        begin = 0
        if data and self._after_cr:
            self._after_cr = False
            if data[:1] == b"\n":  # the other half of the line end that the read before brought
                begin = 1
        while not self.overflow and (end := _LINE_END.search(data, begin)) is not None:
            self._grow(data[begin : end.start()], t_ns)
            self._after_cr = end[0] == b"\r" and end.end() == len(data)
            self._end_line(t_ns, events)
            begin = end.end()
        self._grow(data[begin:], t_ns)
        return events

    def finish(self, t_ns: int) -> list[SseEvent]:
        """The stream ended properly: an event whose blank line the peer left out counts all the same."""
        events: list[SseEvent] = []
        if self._line_bytes:
            self._end_line(t_ns, events)
        self._dispatch(t_ns, events)
        return events

    def _forget(self) -> None:
        self._data: list[bytes] = []
        self._name = ""
        self._first_ns = 0
        self._event_bytes = 0

    def _grow(self, part: bytes, t_ns: int) -> None:
        if not part or self.overflow:
            return
        self._first_ns = self._first_ns or t_ns
        self._line.append(part)
        self._line_bytes += len(part)
        if self._line_bytes + self._event_bytes > self._limit:
            self.overflow = True
            self._line, self._line_bytes = [], 0
            self._forget()

    def _end_line(self, t_ns: int, events: list[SseEvent]) -> None:
        if self.overflow:
            return
        line = self._line[0] if len(self._line) == 1 else b"".join(self._line)
        self._line, self._line_bytes = [], 0
        if self._fresh:
            self._fresh = False
            line = line.removeprefix(_BOM)
        if line[:1] == b":":
            if not self._event_bytes:
                self._first_ns = 0
        elif line:
            self._event_bytes += len(line)
            self._field(line)
        else:
            self._dispatch(t_ns, events)

    def _field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")

    def _dispatch(self, t_ns: int, events: list[SseEvent]) -> None:
        if self._data:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            events.append(SseEvent(data, t_ns, self._first_ns or t_ns, self._name, self._event_bytes))
        self._forget()
