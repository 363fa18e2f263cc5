"""Gemini Live's client codec against a session written by hand: each message follows those above it."""

from __future__ import annotations

import itertools
import json
from base64 import b64encode
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.codecs.gemini_live import GeminiLiveClient
from harness.core.commands import (
    AddHistory,
    AnyCommand,
    AppendAudio,
    Cancel,
    ClearInput,
    Command,
    Commit,
    Configure,
    CreateResponse,
    Truncate,
)
from harness.core.errors import ConfigError
from harness.core.events import (
    AnyEvent,
    AudioReceived,
    Event,
    GoAway,
    PeerError,
    ResponseDone,
    ResponseStarted,
    SessionReady,
    UserTranscript,
)
from tests.connectors.codecs.golden_frames import mutated, rows

pytestmark = pytest.mark.unit
SERVER = rows("gemini_server")
PLACES = [pytest.param(place, id=row["kind"]) for place, row in enumerate(SERVER)]
NAMED_BY_KEYS = {
    place
    for place, row in enumerate(SERVER)
    if row["kind"] in ("toolCallCancellation", "a field without a meaning here", "an unknown message")
}
CLIENT = [pytest.param(row, id=row["kind"]) for row in rows("gemini_client")]


def decode(codec: GeminiLiveClient, frame: Any, *, as_bytes: bool = True) -> list[Event]:
    data = json.dumps(frame, ensure_ascii=False)
    return [
        msgspec.structs.replace(event, t_ns=0, first_byte_ns=0, wire_bytes=0)
        for event in codec.decode(data.encode() if as_bytes else data, 20, 10, not as_bytes)
    ]


def codec_before(place: int) -> GeminiLiveClient:
    """A session that has seen everything above row `place`."""
    codec = GeminiLiveClient()
    for row in SERVER[:place]:
        decode(codec, row["frame"])
    return codec


def golden(row: dict[str, Any]) -> list[Event]:
    return [msgspec.convert({"t_ns": 0, **event}, AnyEvent) for event in row["events"]]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("as_bytes", [True, False], ids=["binary", "text"])
def test_message_becomes_the_golden_events(place: int, as_bytes: bool) -> None:
    assert decode(codec_before(place), SERVER[place]["frame"], as_bytes=as_bytes) == golden(SERVER[place])


@pytest.mark.parametrize("place", PLACES)
def test_mutated_message_is_noticed(place: int) -> None:
    assert decode(codec_before(place), mutated(SERVER[place])) != golden(SERVER[place])


@pytest.mark.parametrize("place", [place for place in PLACES if place.values[0] not in NAMED_BY_KEYS])
def test_unknown_fields_change_nothing(place: int) -> None:
    row = SERVER[place]
    frame = {"newIn2027": {"deep": [1]}} | row["frame"]
    if "serverContent" in frame:
        frame["serverContent"] = {"newToo": None} | frame["serverContent"]
    assert decode(codec_before(place), frame) == golden(row)


@pytest.mark.parametrize("place", PLACES)
def test_truncated_message_is_unreadable(place: int) -> None:
    whole = json.dumps(SERVER[place]["frame"]).encode()
    for cut in (0, 1, len(whole) // 2, len(whole) - 1):
        (event,) = codec_before(place).decode(whole[:cut], 2, 1)
        assert isinstance(event, PeerError)
        assert event.code == "unreadable"
        assert "\n" not in event.message


@pytest.mark.parametrize("row", CLIENT)
def test_command_becomes_the_golden_message(row: dict[str, Any]) -> None:
    codec = GeminiLiveClient()
    codec.turn = row.get("turn", "vad")
    command: Command = msgspec.convert(row["command"], AnyCommand)
    (message,) = codec.encode(command)
    assert json.loads(message) == row["frame"]
    assert json.loads(message) != mutated(row)


def manual() -> GeminiLiveClient:
    codec = GeminiLiveClient(model="m")
    codec.encode(Configure(turn="manual"))
    return codec


def kinds(codec: GeminiLiveClient, *commands: Command) -> list[str]:
    sent = [json.loads(message) for command in commands for message in codec.encode(command)]
    return [next(iter(message["realtimeInput"])) for message in sent]


AUDIO = AppendAudio(pcm=b"\1\0")
TURN = ["activityStart", "audio", "audio", "activityEnd"]


def test_a_manual_turn_begins_with_its_first_audio() -> None:
    codec = manual()
    for _ in range(2):
        assert kinds(codec, AUDIO, AUDIO, Commit(), CreateResponse()) == TURN


def test_a_commit_may_be_encoded_ahead_of_its_audio() -> None:
    codec = manual()
    for _ in range(2):
        commit = kinds(codec, Commit(), CreateResponse())
        assert kinds(codec, AUDIO, AUDIO) + commit == TURN


def test_a_cancel_has_begun_the_next_activity() -> None:
    codec = manual()
    kinds(codec, AUDIO, Commit())
    assert kinds(codec, Cancel()) == ["activityStart"]
    assert kinds(codec, Commit(), AUDIO, AUDIO) == ["activityEnd", "audio", "audio"]
    assert kinds(codec, Commit(), AUDIO) == ["activityEnd", "activityStart", "audio"]


def test_automatic_turns_have_no_activity_signals() -> None:
    codec = GeminiLiveClient(model="m")
    codec.encode(Configure(turn="vad"))
    assert kinds(codec, AUDIO, AUDIO, CreateResponse()) == ["audio", "audio"]


@pytest.mark.parametrize(
    "command",
    [ClearInput(), Truncate(item="i", audio_end_ms=1), Cancel(), AddHistory(role="system", text="x")],
    ids=lambda command: type(command).__name__,
)
def test_what_the_protocol_has_not_is_said(command: Command) -> None:
    with pytest.raises(ConfigError, match="Gemini Live"):
        GeminiLiveClient().encode(command)


def test_unknown_command_is_a_programming_error() -> None:
    class Sing(Command, frozen=True, kw_only=True, tag="sing"):
        pass

    with pytest.raises(TypeError, match="has no Sing"):
        GeminiLiveClient().encode(Sing())


def audio(*parts: bytes) -> dict[str, Any]:
    blobs = [{"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": b64encode(part).decode()}} for part in parts]
    return {"serverContent": {"modelTurn": {"parts": blobs}}}


DONE = {"serverContent": {"turnComplete": True}}


def test_late_content_of_a_manual_turn_begins_no_other() -> None:
    codec = manual()
    codec.encode(Commit())
    decode(codec, audio(b"\1\0"))
    decode(codec, DONE)
    (late,) = decode(codec, audio(b"\2\0"))
    assert isinstance(late, AudioReceived)
    assert late.response == "turn_1"
    codec.encode(Commit())
    started, _ = decode(codec, audio(b"\3\0"))
    assert started == ResponseStarted(t_ns=0, response="turn_2")


def test_an_interruption_after_the_turn_ends_no_turn_twice() -> None:
    codec = GeminiLiveClient()
    decode(codec, audio(b"\1\0"))
    decode(codec, DONE)
    decode(codec, {"serverContent": {"interrupted": True}})
    assert [type(event).__name__ for event in decode(codec, DONE)] == ["RawReceived"]
    started, _ = decode(codec, audio(b"\1\0"))
    assert started == ResponseStarted(t_ns=0, response="turn_2")
    (done,) = decode(codec, DONE)
    assert done == ResponseDone(t_ns=0, response="turn_2")


def test_usage_of_a_turn_does_not_leak_into_the_next() -> None:
    codec = GeminiLiveClient()
    decode(codec, audio(b"\1\0") | {"usageMetadata": {"totalTokenCount": 1}})
    decode(codec, {"usageMetadata": {"totalTokenCount": 2}})
    (done,) = decode(codec, DONE)
    assert isinstance(done, ResponseDone)
    assert done.usage == {"totalTokenCount": 2}
    decode(codec, {"usageMetadata": {"totalTokenCount": 3}})
    decode(codec, audio(b"\1\0"))
    (done,) = decode(codec, DONE)
    assert isinstance(done, ResponseDone)
    assert done.usage is None


def test_a_transcript_that_is_never_marked_finished_ends_with_the_turn() -> None:
    codec = GeminiLiveClient()
    for text in ("What ", "time?"):
        decode(codec, {"serverContent": {"inputTranscription": {"text": text}}})
    decode(codec, audio(b"\1\0"))
    whole, _ = decode(codec, DONE)
    assert whole == UserTranscript(t_ns=0, text="What time?", final=True)


def test_blank_transcript_begins_no_turn() -> None:
    codec = GeminiLiveClient()
    (event,) = decode(codec, {"serverContent": {"outputTranscription": {"text": " ", "finished": True}}})
    assert getattr(event, "response", None) == ""
    assert not isinstance(event, ResponseStarted)


def test_the_newest_handle_is_kept_and_stands_in_no_event() -> None:
    codec = GeminiLiveClient()
    for update in (
        {"newHandle": "secret-1", "resumable": True},
        {"newHandle": "", "resumable": False},
        {"new_handle": "secret-2", "resumable": True},
        {"newHandle": "not-now", "resumable": False},
    ):
        for event in decode(codec, {"sessionResumptionUpdate": update}):
            assert "secret" not in repr(event)
    assert codec.resumption_handle == "secret-2"


def test_several_keys_of_one_message_are_all_told() -> None:
    frame = audio(b"\1\0") | {"goAway": {"timeLeft": "60s"}, "setupComplete": {}}
    found = [type(event) for event in decode(GeminiLiveClient(), frame)]
    assert found == [SessionReady, ResponseStarted, AudioReceived, GoAway]


def test_base64_of_urls_is_read() -> None:
    frame = json.dumps(audio(b"\xfb\xff\xfe\xff")).replace("+//+/w==", "-__-_w==")
    assert "-__-_w==" in frame
    _, event = GeminiLiveClient().decode(frame, 1, 1)
    assert isinstance(event, AudioReceived)
    assert event.pcm == b"\xfb\xff\xfe\xff"


@pytest.mark.parametrize(("text", "ms"), [("0s", 0), ("9.5s", 9500), ("9", None), ("-1s", None), ("1e3s", None)])
def test_durations(text: str, ms: int | None) -> None:
    (event,) = decode(GeminiLiveClient(), {"goAway": {"timeLeft": text}})
    assert event == GoAway(t_ns=0, time_left_ms=ms)


# --- any input --------------------------------------------------------------------------------------------------

SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
JSON = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
)


@given(pcm=st.binary(max_size=300), cuts=st.lists(st.integers(0, 1000), max_size=10), together=st.booleans())
def test_any_cut_gives_the_same_samples(pcm: bytes, cuts: list[int], together: bool) -> None:
    bounds = [0, *sorted(cut % (len(pcm) + 1) for cut in cuts), len(pcm)]
    parts = [pcm[a:b] for a, b in itertools.pairwise(bounds)]
    frames = [audio(*parts)] if together else [audio(part) for part in parts]
    codec = GeminiLiveClient()
    events = [event for frame in frames for event in decode(codec, frame) if isinstance(event, AudioReceived)]
    assert b"".join(event.pcm for event in events) == pcm[: len(pcm) & ~1]
    assert len(events) == len(parts)
    assert {event.response for event in events} == {"turn_1"}


@given(place=st.integers(0, len(SERVER) - 1), data=st.data())
def test_any_field_may_hold_nonsense(place: int, data: Any) -> None:
    frame = json.loads(json.dumps(SERVER[place]["frame"]))
    holder = frame
    while True:
        key = data.draw(st.sampled_from(list(holder)))
        if not isinstance(holder[key], dict) or not holder[key] or data.draw(st.booleans()):
            holder[key] = data.draw(JSON)
            break
        holder = holder[key]
    codec = codec_before(place)
    for event in codec.decode(json.dumps(frame), 1, 1):
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(event), type=AnyEvent) == event


@given(data=st.binary(max_size=60) | st.text(max_size=60) | JSON.map(json.dumps))
def test_anything_gives_events_and_never_raises(data: bytes | str) -> None:
    assert GeminiLiveClient().decode(data, 1, 1)


@pytest.mark.parametrize("data", ["[" * 100_000, '{"server_content":' + "[" * 100_000, '{"serverContent":{"x":1e999}}'])
def test_hostile_json_never_raises(data: str) -> None:
    assert GeminiLiveClient().decode(data, 1, 1)


def test_huge_numbers_can_be_passed_on() -> None:
    codec = GeminiLiveClient()
    decode(codec, audio(b"\1\0"))
    done = '{"serverContent":{"turnComplete":true},"usageMetadata":{"totalTokenCount":' + "9" * 300 + "}}"
    (event,) = codec.decode(done, 1, 1)
    assert isinstance(event, ResponseDone)
    assert msgspec.msgpack.encode(event)
