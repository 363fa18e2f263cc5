"""OpenAI Live and Qwen-Audio-Live: both codecs against messages written by hand."""

from __future__ import annotations

import itertools
import json
from base64 import b64encode
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.codecs import openai_requests as requests
from connectors.codecs.openai_live import LiveName, OpenAILiveClient
from connectors.codecs.openai_live_server import LiveServerSession
from connectors.codecs.openai_requests import AppendInput, Invalid, Request, SessionUpdate
from harness.core.commands import (
    AddHistory,
    AnyCommand,
    Cancel,
    ClearInput,
    Command,
    Commit,
    Configure,
    CreateResponse,
    Truncate,
)
from harness.core.errors import ConfigError
from harness.core.events import AnyEvent, AudioReceived, Event, PeerError
from tests.connectors.codecs.golden_frames import mutated, rows

pytestmark = pytest.mark.unit
FILES: dict[LiveName, str] = {"openai": "openai_live_server", "qwen": "openai_live_qwen_server"}
SERVER = [pytest.param(d, row, id=f"{d}: {row['kind']}") for d, name in FILES.items() for row in rows(name)]
CLIENT = [pytest.param(row, id=row["kind"]) for row in rows("openai_live_client")]
GOLDEN = {row["kind"]: row["frame"] for row in rows("openai_live_server")}


def decode(frame: Any, dialect: LiveName = "openai") -> list[Event]:
    return [
        msgspec.structs.replace(event, t_ns=0, first_byte_ns=0, wire_bytes=0)
        for event in OpenAILiveClient(dialect).decode(json.dumps(frame, ensure_ascii=False), 20, 10)
    ]


def golden(row: dict[str, Any]) -> list[Event]:
    return [msgspec.convert({"t_ns": 0, **event}, AnyEvent) for event in row["events"]]


# --- the client -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dialect", "row"), SERVER)
def test_message_becomes_the_golden_events(dialect: LiveName, row: dict[str, Any]) -> None:
    assert decode(row["frame"], dialect) == golden(row)


@pytest.mark.parametrize(("dialect", "row"), SERVER)
def test_mutated_message_is_noticed(dialect: LiveName, row: dict[str, Any]) -> None:
    assert decode(mutated(row), dialect) != golden(row)


@pytest.mark.parametrize(("dialect", "row"), SERVER)
def test_unknown_fields_change_nothing(dialect: LiveName, row: dict[str, Any]) -> None:
    assert decode({"new_in_2027": {"deep": [1]}} | row["frame"] | {"another": None}, dialect) == golden(row)


@pytest.mark.parametrize(("dialect", "row"), SERVER)
def test_truncated_message_is_unreadable(dialect: LiveName, row: dict[str, Any]) -> None:
    whole = json.dumps(row["frame"]).encode()
    for cut in (0, 1, len(whole) // 2, len(whole) - 1):
        (event,) = OpenAILiveClient(dialect).decode(whole[:cut], 2, 1)
        assert isinstance(event, PeerError)
        assert event.code == "unreadable"


@pytest.mark.parametrize("row", CLIENT)
def test_command_becomes_the_golden_message(row: dict[str, Any]) -> None:
    command: Command = msgspec.convert(row["command"], AnyCommand)
    (message,) = OpenAILiveClient(row["dialect"]).encode(command)
    assert json.loads(message) == row["frame"]
    assert json.loads(message) != mutated(row)


@pytest.mark.parametrize(
    "command",
    [
        Configure(turn="manual"),
        Commit(),
        ClearInput(),
        CreateResponse(),
        Cancel(),
        Truncate(item="i", audio_end_ms=1),
        AddHistory(role="user", text="x"),
    ],
    ids=lambda command: type(command).__name__,
)
def test_what_the_protocol_has_not_is_said(command: Command) -> None:
    with pytest.raises(ConfigError, match="OpenAI Live"):
        OpenAILiveClient().encode(command)


def test_unknown_command_is_a_programming_error() -> None:
    class Sing(Command, frozen=True, kw_only=True, tag="sing"):
        pass

    with pytest.raises(TypeError, match="has no Sing"):
        OpenAILiveClient().encode(Sing())


def test_audio_takes_the_declared_rate() -> None:
    codec = OpenAILiveClient(input_rate_hz=16_000)
    audio = json.dumps({"type": "session.output_audio.delta", "delta": "AAA="})
    (asked,) = codec.decode(audio, 1, 1)
    started = {"type": "session.started", "session": {"audio": {"format": {"type": "audio/pcm", "rate": 24_000}}}}
    codec.decode(json.dumps(started), 1, 1)
    (said,) = codec.decode(audio, 1, 1)
    assert (getattr(asked, "rate_hz", 0), getattr(said, "rate_hz", 0)) == (16_000, 24_000)


def test_the_peers_last_word_is_known() -> None:
    codec = OpenAILiveClient()
    (goodbye,) = codec.farewell()
    assert json.loads(goodbye) == {"type": "session.close", "event_id": "fp_1"}
    assert codec.ended is False
    codec.decode(json.dumps(GOLDEN["session.closed on request"]), 1, 1)
    assert codec.ended


@given(pcm=st.binary(max_size=300), cuts=st.lists(st.integers(0, 1000), max_size=10))
def test_any_cut_gives_the_same_samples(pcm: bytes, cuts: list[int]) -> None:
    bounds = [0, *sorted(cut % (len(pcm) + 1) for cut in cuts), len(pcm)]
    codec = OpenAILiveClient()
    events = []
    for a, b in itertools.pairwise(bounds):
        frame = {"type": "session.output_audio.delta", "delta": b64encode(pcm[a:b]).decode()}
        events += [event for event in codec.decode(json.dumps(frame), 1, 1) if isinstance(event, AudioReceived)]
    assert b"".join(event.pcm for event in events) == pcm[: len(pcm) & ~1]
    assert len(events) == len(bounds) - 1


SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
JSON = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
)


@given(data=st.binary(max_size=60) | st.text(max_size=60) | JSON.map(json.dumps))
def test_anything_gives_events_and_never_raises(data: bytes | str) -> None:
    assert OpenAILiveClient().decode(data, 1, 1)
    assert LiveServerSession().decode(data)


@given(row=st.sampled_from(SERVER), key=st.integers(0, 9), value=JSON)
def test_any_field_may_hold_nonsense(row: Any, key: int, value: Any) -> None:
    dialect, golden_row = row.values
    frame = golden_row["frame"]
    broken = frame | {list(frame)[key % len(frame)]: value}
    for event in OpenAILiveClient(dialect).decode(json.dumps(broken), 1, 1):
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(event), type=AnyEvent) == event


# --- the server -------------------------------------------------------------------------------------------------


def read(server: LiveServerSession, kind: str, **body: Any) -> Request | Invalid | None:
    found = server.decode(json.dumps({"type": kind, **body}))
    return found[0] if found else None


def started(**session: Any) -> LiveServerSession:
    server = LiveServerSession(session_id="live_1")
    request = read(server, "session.start", event_id="fp_1", session={"model": "gpt-live-1"} | session)
    assert isinstance(request, SessionUpdate)
    assert server.update(request) is None
    return server


def payload(made: list[bytes]) -> Any:
    (only,) = made
    return json.loads(only)


def test_clients_messages_are_understood() -> None:
    frames = {row["kind"]: row["frame"] for row in rows("openai_live_client")}
    server = LiveServerSession()
    (request,) = server.decode(json.dumps(frames["session.start"]))
    assert isinstance(request, SessionUpdate)
    assert server.update(request) is None
    assert server.decode(json.dumps(frames["session.input_audio.append"])) == [AppendInput(audio=b"\1\0\xff\xff")]
    assert isinstance(read(server, "session.close"), requests.SessionClose)
    assert server.detector is not None


def test_the_server_is_silent_until_the_session_starts() -> None:
    server = LiveServerSession(session_id="live_1")
    assert not server.started
    assert server.events.session("created", server.session) == []
    assert isinstance(read(server, "session.input_audio.append", audio="AAA="), Invalid)
    server = started()
    assert server.started
    told = payload(server.events.session("updated", server.session))
    assert told["type"] == "session.started"
    assert told["client_event_id"] == "fp_1"
    assert told["session"]["id"] == "live_1"
    assert told["session"]["audio"]["format"] == {"type": "audio/pcm", "rate": 24_000}
    assert isinstance(read(server, "session.start", session={}), Invalid)


def test_one_rate_serves_both_directions() -> None:
    rates: list[int] = []
    server = LiveServerSession()
    server.on_start = rates.append
    form = {"type": "audio/pcm", "rate": 16_000}
    request = read(server, "session.start", session={"model": "m", "audio": {"format": form}})
    assert isinstance(request, SessionUpdate)
    assert server.update(request) is None
    assert (server.input_rate_hz, server.events.mouth_rate_hz, rates) == (16_000, 16_000, [16_000])
    assert server.events.name != LiveServerSession().events.name


@pytest.mark.parametrize(
    "session",
    [
        {"turn_detection": None},
        {"audio": {"format": {"type": "audio/pcmu"}}},
        {"audio": {"format": {"type": "audio/pcm", "rate": 44_100}}},
    ],
)
def test_settings_that_cannot_be_are_refused(session: dict[str, Any]) -> None:
    server = LiveServerSession()
    request = read(server, "session.start", session=session)
    assert isinstance(request, SessionUpdate)
    assert isinstance(server.update(request), Invalid)
    assert not server.started


def test_instructions_are_immutable() -> None:
    server = started(instructions="Be brief.")
    request = read(server, "session.update", session={"instructions": "Be long."})
    assert isinstance(request, SessionUpdate)
    assert isinstance(server.update(request), Invalid)


def test_a_muted_microphone_is_not_heard() -> None:
    server = started()
    assert isinstance(read(server, "session.input_audio.mute"), requests.ClearInputBuffer)
    assert payload(server.events.cleared()) == GOLDEN["session.input_audio.muted"]
    assert read(server, "session.input_audio.append", audio="AAA=") is None
    read(server, "session.input_audio.unmute")
    assert payload(server.events.cleared()) == {"type": "session.input_audio.unmuted"}
    assert isinstance(read(server, "session.input_audio.append", audio="AAA="), AppendInput)


@pytest.mark.parametrize("kind", ["instructions", "thinking", "commentary"])
def test_asides_are_confirmed(kind: str) -> None:
    server = started()
    request = read(server, f"session.{kind}.append", content="The user is in a hurry.", delegation_id=None)
    assert isinstance(request, requests.ItemCreate)
    told = payload(server.events.item(request.item | {"id": "item_c1"}, None))
    assert told["type"] == f"session.{kind}.appended"
    assert server.events.item({"type": "message", "id": "item_u1"}, None) == []


def test_audio_leaves_in_packets_of_the_stream() -> None:
    frame = started().events.audio_packet(b"\1\0\xff\xff")
    assert json.loads(frame[2:]) == GOLDEN["session.output_audio.delta"]


def test_transcripts_are_fragments() -> None:
    events = started().events
    told = payload(events.transcript_delta("r", "i", "It is"))
    assert told == {key: GOLDEN["session.output_transcript.delta"][key] for key in ("type", "delta")}
    told = payload(events.user_transcript("u", "What is"))
    assert told == {key: GOLDEN["session.input_transcript.delta"][key] for key in ("type", "delta")}


def test_no_turn_is_told() -> None:
    events = started().events
    assert events.response_opened("r", "i", None) == events.response_done("r", "cancelled") == []
    assert events.speech_started("u", 1) == events.speech_stopped("u", 1) == events.committed("u", None) == []
    failure = {"type": "tokens", "code": "rate_limit_exceeded", "message": "slow down"}
    assert payload(events.response_done("r", "failed", error=failure))["error"]["code"] == "rate_limit_exceeded"


def test_the_last_word_has_its_reason_and_the_seconds_used() -> None:
    server = started()
    read(server, "session.input_audio.append", audio=b64encode(bytes(48_000)).decode())
    assert payload(server.events.session_closed()) == {
        "type": "session.closed",
        "reason": "close_requested",
        "usage": {"seconds": 1.0},
    }
    assert payload(server.events.go_away(0))["reason"] == "expired"
