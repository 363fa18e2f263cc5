"""The client's codec against frames written by hand, both directions, both dialects."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from connectors.codecs.openai_names import Dialect
from connectors.codecs.openai_realtime import OpenAIRealtimeClient
from harness.core.commands import AnyCommand, AppendAudio, Command, Commit
from harness.core.events import AnyEvent, AudioReceived, Event, PeerError, ToolCall
from tests.connectors.codecs.golden_frames import mutated, rows, timeless

pytestmark = pytest.mark.unit
DIALECTS: tuple[Dialect, ...] = ("ga", "beta")
SERVER = [pytest.param(d, row, id=f"{d}: {row['kind']}") for d in DIALECTS for row in rows(f"server_{d}")]
CLIENT = [pytest.param(d, row, id=f"{d}: {row['kind']}") for d in DIALECTS for row in rows(f"client_{d}")]


def decode(frame: Any, dialect: Dialect) -> list[Event]:
    return [timeless(e) for e in OpenAIRealtimeClient(dialect).decode(json.dumps(frame, ensure_ascii=False), 20, 10)]


def golden(row: dict[str, Any]) -> list[Event]:
    return [msgspec.convert({"t_ns": 0, **event}, AnyEvent) for event in row["events"]]


@pytest.mark.parametrize(("dialect", "row"), SERVER)
def test_server_frame_becomes_the_golden_events(dialect: Dialect, row: dict[str, Any]) -> None:
    assert decode(row["frame"], dialect) == golden(row)


@pytest.mark.parametrize(("dialect", "row"), SERVER)
def test_mutated_server_frame_is_noticed(dialect: Dialect, row: dict[str, Any]) -> None:
    assert decode(mutated(row), dialect) != golden(row)


@pytest.mark.parametrize(("dialect", "row"), SERVER)
def test_unknown_fields_change_nothing(dialect: Dialect, row: dict[str, Any]) -> None:
    frame = {"new_in_2027": {"deep": [1]}} | row["frame"] | {"another": None}
    assert decode(frame, dialect) == golden(row)


@pytest.mark.parametrize(("dialect", "row"), SERVER)
def test_truncated_frame_is_unreadable(dialect: Dialect, row: dict[str, Any]) -> None:
    whole = json.dumps(row["frame"]).encode()
    for cut in (0, 1, len(whole) // 2, len(whole) - 1):
        (event,) = OpenAIRealtimeClient(dialect).decode(whole[:cut], 2, 1)
        assert isinstance(event, PeerError)
        assert event.code == "unreadable"
        assert "\n" not in event.message


@pytest.mark.parametrize(("dialect", "row"), CLIENT)
def test_command_becomes_the_golden_frame(dialect: Dialect, row: dict[str, Any]) -> None:
    command: Command = msgspec.convert(row["command"], AnyCommand)
    (frame,) = OpenAIRealtimeClient(dialect).encode(command)
    assert json.loads(frame) == row["frame"]
    assert json.loads(frame) != mutated(row)


def test_arrival_is_copied_into_every_event() -> None:
    frame = next(row["frame"] for row in rows("server_ga") if row["kind"] == "response.done interrupted")
    data = json.dumps(frame)
    for event in OpenAIRealtimeClient().decode(data, 2_000, 1_000):
        assert (event.t_ns, event.first_byte_ns, event.wire_bytes) == (2_000, 1_000, len(data))


def test_wire_bytes_counts_bytes_not_characters() -> None:
    data = '{"type":"response.output_text.delta","delta":"十二点"}'
    (from_text,) = OpenAIRealtimeClient().decode(data, 2, 1)
    (from_bytes,) = OpenAIRealtimeClient().decode(data.encode(), 2, 1)
    assert from_text == from_bytes
    assert from_text.wire_bytes == len(data.encode())


def test_event_ids_never_repeat() -> None:
    codec = OpenAIRealtimeClient()
    commands: list[Command] = [AppendAudio(pcm=b"\0\0"), Commit(), AppendAudio(pcm=b"")]
    ids = [json.loads(frame)["event_id"] for command in commands for frame in codec.encode(command)]
    assert len(set(ids)) == 3


def test_audio_takes_the_declared_rate() -> None:
    codec = OpenAIRealtimeClient()
    declared = {"type": "session.updated", "session": {"audio": {"output": {"format": {"rate": 16_000}}}}}
    codec.decode(json.dumps(declared), 1, 1)
    (audio,) = codec.decode('{"type":"response.output_audio.delta","delta":"AAAAAA=="}', 2, 2)
    assert isinstance(audio, AudioReceived)
    assert (audio.rate_hz, audio.samples) == (16_000, 2)
    assert codec.output_rate_hz == 16_000


def test_tool_name_may_come_with_the_item_only() -> None:
    codec = OpenAIRealtimeClient("beta")
    item = {"type": "function_call", "call_id": "call_1", "name": "clock"}
    codec.decode(json.dumps({"type": "response.output_item.added", "item": item}), 1, 1)
    done = {"type": "response.function_call_arguments.done", "call_id": "call_1", "arguments": "{}"}
    (call,) = codec.decode(json.dumps(done), 2, 2)
    assert isinstance(call, ToolCall)
    assert (call.call, call.name, call.arguments) == ("call_1", "clock", "{}")


def test_unknown_command_is_a_programming_error() -> None:
    class Sing(Command, frozen=True, kw_only=True, tag="sing"):
        pass

    with pytest.raises(TypeError, match="has no Sing"):
        OpenAIRealtimeClient().encode(Sing())
