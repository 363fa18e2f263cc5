"""The reader of server-sent events against streams written by hand, cut anywhere."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.codecs.sse import SseEvent, SseReader

pytestmark = pytest.mark.unit

STREAM = (
    "\ufeff"
    'data: {"text":"十二点"}\r\n\r\n'
    ": keep-alive\n\n"
    "event: ping\ndata:\n\n"
    "data:no space\rdata:  two\r\r"
    "id: 7\nretry: 100\nunknown: x\nnonsense\ndata: last\n\n"
    "event: without data\n\n"
    "data: [DONE]\n\n"
).encode()
EVENTS = [
    (b'{"text":"\xe5\x8d\x81\xe4\xba\x8c\xe7\x82\xb9"}', ""),
    (b"", "ping"),
    (b"no space\n two", ""),
    (b"last", ""),
    (b"[DONE]", ""),
]


def read(pieces: list[bytes], limit: int = 10_000) -> tuple[list[SseEvent], SseReader]:
    """Piece number i is read at instant i + 1."""
    reader = SseReader(limit)
    return [event for t_ns, piece in enumerate(pieces, 1) for event in reader.feed(piece, t_ns)], reader


def named(events: list[SseEvent]) -> list[tuple[bytes, str]]:
    return [(event.data, event.name) for event in events]


def test_a_stream_becomes_its_events() -> None:
    events, _ = read([STREAM])
    assert named(events) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_any_split_gives_the_same_events(cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), len(STREAM)]
    events, _ = read([STREAM[a:b] for a, b in itertools.pairwise(bounds)])
    whole, _ = read([STREAM])
    assert named(events) == EVENTS
    assert [event.wire_bytes for event in events] == [event.wire_bytes for event in whole]
    for event in events:
        assert 1 <= event.first_byte_ns <= event.t_ns <= len(bounds)


def test_byte_by_byte_the_stamps_are_those_of_the_first_and_the_completing_byte() -> None:
    stream = b": hello\n\ndata: a\n\ndata: b\r\n\r\n"
    events, _ = read([stream[i : i + 1] for i in range(len(stream))])
    begins = [stream.index(b"data: a"), stream.index(b"data: b")]
    ends = [stream.index(b"a\n\n") + 2, stream.index(b"b\r\n\r\n") + 3]
    assert [(event.first_byte_ns, event.t_ns) for event in events] == [
        (begin + 1, end + 1) for begin, end in zip(begins, ends, strict=True)
    ]


def test_two_events_of_one_read_share_its_instant() -> None:
    events, _ = read([b"data: a\n", b"\ndata: b\n\n"])
    assert [(event.first_byte_ns, event.t_ns) for event in events] == [(1, 2), (2, 2)]


def test_an_event_without_its_blank_line_counts_only_at_a_proper_end() -> None:
    events, reader = read([b"data: [DO", b"NE]"])
    assert events == []
    assert named(reader.finish(9)) == [(b"[DONE]", "")]
    assert reader.finish(10) == []


@pytest.mark.parametrize("piece", [b"x" * 3_000, b"data: x\n" * 300], ids=["one line", "one event"])
def test_what_never_ends_is_not_kept(piece: bytes) -> None:
    events, reader = read([piece] * 10, limit=10_000)
    assert events == []
    assert reader.overflow
    assert reader.feed(b"\n\ndata: more\n\n", 99) == []


def test_a_large_event_within_the_limit_is_taken() -> None:
    (event,), reader = read([b"data: " + b"x" * 9_000, b"\n\n"])
    assert len(event.data) == 9_000
    assert not reader.overflow
