"""Frames: golden bytes, any split gives the same messages, stamps of the first and the last read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.local.framing import LIMIT, Framer, FramingError, Message, frame

pytestmark = pytest.mark.unit


def test_golden_bytes():
    assert frame(b"abc") == b"\x03\x00\x00\x00abc"
    assert frame(b"") == b"\x00\x00\x00\x00"


@given(st.lists(st.binary(max_size=40), max_size=8), st.data())
def test_any_split_gives_the_same_payloads(payloads, data):
    stream = b"".join(frame(payload) for payload in payloads)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    framer, got = Framer(), []
    for t_ns, (start, end) in enumerate(zip([0, *cuts], [*cuts, len(stream)], strict=True)):
        got += framer.feed(stream[start:end], t_ns)
    assert [message.payload for message in got] == payloads


def test_stamps_are_those_of_the_first_and_the_completing_read():
    framer = Framer()
    stream = frame(b"aaaa") + frame(b"bb") + frame(b"c")
    assert list(framer.feed(stream[:3], 10)) == []
    assert list(framer.feed(stream[3:7], 20)) == []
    assert list(framer.feed(stream[7:10], 30)) == [Message(b"aaaa", 30, 10)]
    assert list(framer.feed(stream[10:], 40)) == [Message(b"bb", 40, 30), Message(b"c", 40, 40)]
    assert Message(b"bb", 0, 0).wire_bytes == 6


def test_a_silly_length_is_refused():
    with pytest.raises(FramingError):
        list(Framer().feed((LIMIT + 1).to_bytes(4, "little"), 0))
