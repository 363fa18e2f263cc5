"""RTVI against messages written by hand (protocol sheet, section 11.1): a whole turn, an interruption, nonsense."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.codecs.rtvi import RtviClient
from harness.core.commands import AddHistory, AnyCommand, AppendAudio, Cancel, Commit, CreateResponse
from harness.core.errors import ConfigError
from harness.core.events import AnyEvent, Event, PeerError, RawReceived
from tests.connectors.codecs.golden_frames import mutated, rows, timeless

pytestmark = pytest.mark.unit
SERVER = rows("rtvi_server")
IDS = [row["kind"] for row in SERVER]
SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
JSON = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
)


def golden(row: dict[str, Any]) -> list[Event]:
    return [msgspec.convert({"t_ns": 0, **event}, AnyEvent) for event in row["events"]]


def decode_at(index: int, frame: Any) -> list[Event]:
    """The events of `frame` where row `index` stands in the conversation."""
    codec = RtviClient()
    for row in SERVER[:index]:
        codec.decode(json.dumps(row["frame"]).encode(), 1, 1)
    return [timeless(event) for event in codec.decode(json.dumps(frame).encode(), 20, 10)]


@pytest.mark.parametrize("index", range(len(SERVER)), ids=IDS)
def test_a_whole_conversation(index: int) -> None:
    assert decode_at(index, SERVER[index]["frame"]) == golden(SERVER[index])


@pytest.mark.parametrize("index", range(len(SERVER)), ids=IDS)
def test_a_mutation_is_noticed(index: int) -> None:
    assert decode_at(index, mutated(SERVER[index])) != golden(SERVER[index])


@pytest.mark.parametrize("index", range(len(SERVER)), ids=IDS)
def test_unknown_fields_change_nothing(index: int) -> None:
    frame = {"new_in_3": {"deep": [1]}} | SERVER[index]["frame"] | {"another": None}
    assert decode_at(index, frame) == golden(SERVER[index])


@pytest.mark.parametrize("index", range(len(SERVER)), ids=IDS)
def test_a_truncated_message_is_unreadable(index: int) -> None:
    whole = json.dumps(SERVER[index]["frame"]).encode()
    for cut in (0, 1, len(whole) // 2, len(whole) - 1):
        (event,) = RtviClient().decode(whole[:cut], 2, 1)
        assert isinstance(event, PeerError)
        assert event.code == "unreadable"
        assert not event.fatal
        assert "\n" not in event.message


@pytest.mark.parametrize("row", rows("rtvi_client"), ids=lambda row: row["kind"])
def test_command_becomes_the_golden_message(row: dict[str, Any]) -> None:
    (message,) = RtviClient().encode(msgspec.convert(row["command"], AnyCommand))
    assert json.loads(message) == row["frame"]
    assert json.loads(message) != mutated(row)


def test_audio_goes_to_the_track() -> None:
    assert RtviClient().encode(AppendAudio(pcm=b"\1\2")) == [b"\1\2"]


@pytest.mark.parametrize("command", [Commit(), CreateResponse(), Cancel(), AddHistory(role="user", text="x")])
def test_what_rtvi_has_not_is_said(command: Any) -> None:
    with pytest.raises(ConfigError, match="RTVI has no message for"):
        RtviClient().encode(command)


def test_pongs_that_are_no_json() -> None:
    (event,) = RtviClient().decode(b"pong", 2, 1)
    assert isinstance(event, RawReceived)
    assert event.name == "pong"


def test_arrival_is_copied_into_every_event() -> None:
    data = json.dumps({"label": "rtvi-ai", "type": "bot-started-speaking"}).encode()
    events = RtviClient().decode(data, 2_000, 1_000)
    assert len(events) == 2
    for event in events:
        assert (event.t_ns, event.first_byte_ns, event.wire_bytes) == (2_000, 1_000, len(data))  # type: ignore[attr-defined]


def test_a_pause_of_the_voice_does_not_end_an_answer_that_is_still_being_written() -> None:
    codec = RtviClient()
    kinds = ["bot-llm-started", "bot-started-speaking", "bot-stopped-speaking", "bot-started-speaking"]
    kinds += ["bot-llm-stopped", "bot-stopped-speaking"]
    events = [
        event for kind in kinds for event in codec.decode(json.dumps({"label": "rtvi-ai", "type": kind}).encode(), 1, 1)
    ]
    names = [event.__struct_config__.tag for event in events]
    assert names.count("response_started") == names.count("response_done") == 1
    assert names[-1] == "response_done"


def test_a_model_that_runs_twice_for_one_answer_begins_one_response() -> None:
    codec = RtviClient()
    data = json.dumps({"label": "rtvi-ai", "type": "bot-llm-started"}).encode()
    names = [event.__struct_config__.tag for _ in range(2) for event in codec.decode(data, 2, 1)]
    assert names == ["response_started", "raw_received"]


@given(st.lists(st.sampled_from(IDS), max_size=12), JSON, JSON)
def test_nothing_raises(kinds: list[str], data: Any, label: Any) -> None:
    codec = RtviClient()
    for kind in kinds:
        name = SERVER[IDS.index(kind)]["frame"]["type"]
        for frame in (
            {"label": "rtvi-ai", "type": name, "data": data},
            {"label": label, "type": name, "message": data},
            data,
        ):
            events = codec.decode(json.dumps(frame).encode(), 2, 1)
            assert events
            for event in events:
                msgspec.json.encode(event)
                msgspec.msgpack.encode(event)


def test_a_model_that_stops_after_its_last_words_were_said_has_answered() -> None:
    names = ["bot-llm-started", "bot-started-speaking", "bot-stopped-speaking", "bot-llm-stopped"]
    codec = RtviClient()
    events = [codec.decode(json.dumps({"label": "rtvi-ai", "type": kind}).encode(), 20, 10) for kind in names]
    assert [type(event).__name__ for event in events[2]] == ["PlaybackState"]
    assert [type(event).__name__ for event in events[3]] == ["RawReceived", "ResponseDone"]
