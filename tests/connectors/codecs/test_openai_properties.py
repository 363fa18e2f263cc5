"""What must hold for any input: cuts change nothing, nonsense raises nothing."""

from __future__ import annotations

import base64
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.codecs.openai_realtime import OpenAIRealtimeClient
from connectors.codecs.openai_realtime_server import OpenAIRealtimeServer
from connectors.codecs.openai_requests import SessionUpdate
from connectors.codecs.pcm_stream import PcmStream
from harness.core.events import AudioReceived, Event
from tests.connectors.codecs.golden_frames import rows

pytestmark = pytest.mark.unit
SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
JSON = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
)
SERVER_FRAMES = [row["frame"] for name in ("server_ga", "server_beta") for row in rows(name)]
CLIENT_FRAMES = [row["frame"] for name in ("client_ga", "client_beta") for row in rows(name)]
WAV = base64.b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAgD4AAAB9AAACABAAZGF0YQIAAAAFAA==")


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    bounds = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(bounds)]


def deltas(parts: list[bytes], name: str = "response.output_audio.delta") -> list[Event]:
    codec = OpenAIRealtimeClient()
    frames = [{"type": name, "response_id": "r", "item_id": "i", "delta": base64.b64encode(p).decode()} for p in parts]
    return [event for frame in frames for event in codec.decode(json.dumps(frame), 1, 1)]


@given(pcm=st.binary(max_size=400), cuts=st.lists(st.integers(0, 1000), max_size=12))
def test_any_cut_gives_the_same_samples(pcm: bytes, cuts: list[int]) -> None:
    events = [event for event in deltas(pieces(pcm, cuts)) if isinstance(event, AudioReceived)]
    assert b"".join(event.pcm for event in events) == pcm[: len(pcm) & ~1]
    assert sum(event.samples for event in events) == len(pcm) // 2
    assert all(len(event.pcm) == 2 * event.samples for event in events)
    assert len(events) == len(pieces(pcm, cuts))


@given(cuts=st.lists(st.integers(12, 46), max_size=6), carried=st.binary(max_size=1))
def test_a_wav_header_may_be_cut_after_its_mark(cuts: list[int], carried: bytes) -> None:
    stream = PcmStream()
    got = stream.push(carried) + b"".join(stream.push(part) for part in pieces(WAV, cuts) if part)
    assert stream.rate_hz == 16_000
    assert got == (carried + WAV[44:])[: len(carried + WAV[44:]) & ~1]


@given(parts=st.lists(st.binary(max_size=9), max_size=6))
def test_a_header_before_each_packet_changes_no_sample(parts: list[bytes]) -> None:
    stream = PcmStream()
    whole = b"".join(parts)
    assert b"".join(stream.push(WAV[:44] + part) for part in parts) == whole[: len(whole) & ~1]


def test_a_header_alone_has_no_sample() -> None:
    (event,) = deltas([WAV[:44]])
    assert isinstance(event, AudioReceived)
    assert (event.samples, event.rate_hz, event.pcm) == (0, 16_000, b"")


def test_answers_do_not_share_their_odd_byte() -> None:
    codec = OpenAIRealtimeClient()
    for item, delta in (("a", "AQ=="), ("b", "AQID"), ("a", "Ag==")):
        frame = {"type": "response.audio.delta", "response_id": "r", "item_id": item, "delta": delta}
        (event,) = codec.decode(json.dumps(frame), 1, 1)
    assert isinstance(event, AudioReceived)
    assert event.pcm == b"\x01\x02"


@given(value=JSON)
def test_arbitrary_json_never_raises(value: Any) -> None:
    for data in (json.dumps(value), json.dumps({"type": value})):
        assert OpenAIRealtimeClient().decode(data, 1, 1)
        OpenAIRealtimeServer().decode(data)


@given(data=st.binary(max_size=60) | st.text(max_size=60))
def test_arbitrary_bytes_never_raise(data: bytes | str) -> None:
    assert OpenAIRealtimeClient().decode(data, 1, 1)
    OpenAIRealtimeServer().decode(data)


@given(frame=st.sampled_from(SERVER_FRAMES), key=st.integers(0, 9), value=JSON)
def test_any_field_may_hold_nonsense(frame: dict[str, Any], key: int, value: Any) -> None:
    broken = frame | {list(frame)[key % len(frame)]: value}
    assert OpenAIRealtimeClient().decode(json.dumps(broken), 1, 1)


@given(frame=st.sampled_from(CLIENT_FRAMES), key=st.integers(0, 9), value=JSON)
def test_any_request_field_may_hold_nonsense(frame: dict[str, Any], key: int, value: Any) -> None:
    server = OpenAIRealtimeServer()
    request = server.decode(json.dumps(frame | {list(frame)[key % len(frame)]: value}))
    if isinstance(request, SessionUpdate):
        server.update(request)
        assert server.detector is None or isinstance(server.detector, dict)


def test_deeply_nested_json_is_unreadable() -> None:
    for data in ("[" * 100_000, '{"type":"x","a":' + "[" * 100_000):
        (event,) = OpenAIRealtimeClient().decode(data, 1, 1)
        assert getattr(event, "code", "") == "unreadable"
