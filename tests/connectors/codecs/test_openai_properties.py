"""What must hold for any input: cuts change nothing, nonsense raises nothing."""

from __future__ import annotations

import base64
import itertools
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.codecs.openai_realtime import OpenAIRealtimeClient
from connectors.codecs.openai_realtime_server import OpenAIRealtimeServer
from connectors.codecs.openai_requests import SessionUpdate
from connectors.codecs.pcm_stream import PcmStream
from harness.core.events import AnyEvent, AudioReceived, Event, ResponseDone, UserSpeechStarted
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


NUMBER = st.integers() | st.integers(-(10**40), 10**40) | st.floats() | st.sampled_from([2**63, -(2**63) - 1, 1e300])
NUMBERS = st.recursive(
    NUMBER | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


def with_numbers(value: Any, draw: Any) -> Any:
    """The frame with some of its leaves, and any of its `usage` objects, replaced by numbers."""
    if isinstance(value, dict):
        out = {key: inner if key == "type" else with_numbers(inner, draw) for key, inner in value.items()}
        return out | {"usage": draw(st.dictionaries(st.text(max_size=5), NUMBERS, max_size=4))}
    if isinstance(value, list):
        return [with_numbers(inner, draw) for inner in value]
    return draw(NUMBER | st.just(value))


@given(frame=st.sampled_from(SERVER_FRAMES), data=st.data())
def test_any_number_of_a_peer_can_be_passed_on(frame: dict[str, Any], data: Any) -> None:
    said = with_numbers(frame, data.draw)
    for event in OpenAIRealtimeClient().decode(json.dumps(said), 1, 1):
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(event), type=AnyEvent) == event
        for number in numbers_in(msgspec.to_builtins(event)):
            assert -(2**63) <= number < 2**63


def numbers_in(value: Any) -> list[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for inner in value for number in numbers_in(inner)]
    return [value] if isinstance(value, int | float) else []


@pytest.mark.parametrize("number", ["1e300", "-1e300", "9223372036854775808", "9" * 300, "1" + "0" * 30])
def test_numbers_out_of_range_are_dropped_or_become_text(number: str) -> None:
    codec = OpenAIRealtimeClient()
    (started,) = codec.decode(f'{{"type":"input_audio_buffer.speech_started","audio_start_ms":{number}}}', 1, 1)
    assert isinstance(started, UserSpeechStarted)
    assert started.audio_ms is None
    usage = f'{{"total_tokens":{number},"inner":[{{"n":{number}}}],"fine":7}}'
    (done,) = codec.decode(f'{{"type":"response.done","response":{{"usage":{usage}}}}}', 1, 1)
    assert isinstance(done, ResponseDone)
    said = str(json.loads(number))
    assert done.usage == {"total_tokens": said, "inner": [{"n": said}], "fine": 7}


def test_a_number_at_the_edge_is_kept() -> None:
    data = f'{{"type":"input_audio_buffer.speech_stopped","audio_end_ms":{2**53}}}'
    (event,) = OpenAIRealtimeClient().decode(data, 1, 1)
    assert getattr(event, "audio_ms", None) == 2**53


def test_deep_usage_can_be_passed_on() -> None:
    usage = '{"a":' * 300 + "1" + "}" * 300
    (event,) = OpenAIRealtimeClient().decode(f'{{"type":"response.done","response":{{"usage":{usage}}}}}', 1, 1)
    assert isinstance(event, ResponseDone)
    assert len(json.dumps(event.usage)) < 400


@pytest.mark.parametrize("rate_hz", [0, 1, 3_999, 384_001, 2**32 - 1])
def test_a_header_with_no_sample_rate_does_not_count(rate_hz: int) -> None:
    header = WAV[:24] + rate_hz.to_bytes(4, "little") + WAV[28:44]
    (event,) = deltas([header + b"\1\2"])
    assert isinstance(event, AudioReceived)
    assert (event.rate_hz, event.pcm) == (24_000, b"\1\2")


def test_ids_have_a_sensible_length() -> None:
    codec, long = OpenAIRealtimeClient(), "x" * 100_000
    item = {"call_id": long, "name": long}
    for frame in (
        {"type": "response.output_audio.delta", "response_id": long, "item_id": long, "delta": ""},
        {"type": "response.created", "response": {"id": long}},
        {"type": "response.output_item.added", "item": item},
        {"type": "response.function_call_arguments.done", "call_id": long, "arguments": "{}"},
        {"type": "response.done", "response": {"id": long, "status": long, "status_details": {"reason": long}}},
        {"type": "session.updated", "session": {"id": long, "model": long, "output_audio_format": long}},
        {"type": "error", "error": {"code": long}},
        {"type": long},
    ):
        for event in codec.decode(json.dumps(frame), 1, 1):
            assert len(msgspec.json.encode(event)) < 1_500


def test_unfinished_answers_are_forgotten_in_the_end() -> None:
    codec = OpenAIRealtimeClient()
    for number in range(5_000):
        frame = {"type": "response.output_audio.delta", "response_id": f"r{number}", "delta": "AQ=="}
        codec.decode(json.dumps(frame), 1, 1)
        item = {"call_id": f"c{number}", "name": "f"}
        codec.decode(json.dumps({"type": "response.output_item.added", "item": item}), 1, 1)
    assert len(codec._answers.streams) == len(codec._tools) == 1_000
    (last,) = codec.decode('{"type":"response.output_audio.delta","response_id":"r4999","delta":"Ag=="}', 1, 1)
    assert getattr(last, "pcm", b"") == b"\1\2"
    codec.decode('{"type":"response.done","response":{"id":"r4999"}}', 1, 1)
    assert len(codec._answers.streams) == 999


def test_deeply_nested_json_is_unreadable() -> None:
    for data in ("[" * 100_000, '{"type":"x","a":' + "[" * 100_000):
        (event,) = OpenAIRealtimeClient().decode(data, 1, 1)
        assert getattr(event, "code", "") == "unreadable"
