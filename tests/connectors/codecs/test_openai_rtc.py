"""OpenAI's events on a data channel against frames written by hand (protocol sheet, section 3)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from connectors.codecs.openai_rtc import OpenAIRtcClient
from harness.core.commands import AnyCommand, AppendAudio, Configure
from harness.core.events import AnyEvent, Event, PeerError, RawReceived
from tests.connectors.codecs.golden_frames import mutated, rows, timeless

pytestmark = pytest.mark.unit
SERVER = rows("openai_rtc_server")
CLIENT = rows("openai_rtc_client")


def decode(frame: Any) -> list[Event]:
    return [timeless(event) for event in OpenAIRtcClient().decode(json.dumps(frame).encode(), 20, 10)]


def golden(row: dict[str, Any]) -> list[Event]:
    return [msgspec.convert({"t_ns": 0, **event}, AnyEvent) for event in row["events"]]


@pytest.mark.parametrize("row", SERVER, ids=lambda row: row["kind"])
def test_server_frame_becomes_the_golden_events(row: dict[str, Any]) -> None:
    assert decode(row["frame"]) == golden(row)
    assert decode(mutated(row)) != golden(row)
    assert decode({"new": 1} | row["frame"]) == golden(row)


@pytest.mark.parametrize("row", SERVER, ids=lambda row: row["kind"])
def test_a_truncated_frame_is_unreadable(row: dict[str, Any]) -> None:
    whole = json.dumps(row["frame"]).encode()
    for cut in (0, len(whole) // 2, len(whole) - 1):
        (event,) = OpenAIRtcClient().decode(whole[:cut], 2, 1)
        assert isinstance(event, PeerError)
        assert event.code == "unreadable"


def test_an_unknown_event() -> None:
    (event,) = OpenAIRtcClient().decode(b'{"type":"output_audio_buffer.paused"}', 2, 1)
    assert isinstance(event, RawReceived)
    assert event.name == "output_audio_buffer.paused"


@pytest.mark.parametrize("row", CLIENT, ids=lambda row: row["kind"])
def test_command_becomes_the_golden_frames(row: dict[str, Any]) -> None:
    messages = OpenAIRtcClient().encode(msgspec.convert(row["command"], AnyCommand))
    assert [None if message == b"" else json.loads(message) for message in messages] == row["frames"]


def test_audio_is_binary_and_nothing_else_is() -> None:
    assert OpenAIRtcClient().encode(AppendAudio(pcm=b"\1\2")) == [b"\1\2"]


def test_the_session_for_the_offer_is_the_one_of_the_update() -> None:
    configure = Configure(turn="vad", silence_ms=300, voice="marin", extra={"audio": {"output": {"speed": 1.2}}})
    (message,) = OpenAIRtcClient().encode(configure)
    session = OpenAIRtcClient().session(configure)
    assert session == json.loads(message)["session"]
    assert session["audio"]["output"] == {"voice": "marin", "speed": 1.2}
