"""Every dialect of OpenAI Realtime: a whole turn each, written by hand from the protocol sheet, and one mutation."""

from __future__ import annotations

import base64
import itertools
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.codecs.ogg_opus import OggOpusEncoder
from connectors.codecs.openai_dialects import DIALECTS, dialect_of
from connectors.codecs.openai_names import NAMES
from connectors.codecs.openai_realtime import OpenAIRealtimeClient
from harness.core.commands import AnyCommand, AppendAudio, Cancel, Command, Commit, Configure
from harness.core.errors import ConfigError
from harness.core.events import (
    AnyEvent,
    AudioReceived,
    Event,
    GoAway,
    Note,
    PeerError,
    RawReceived,
    ResponseDone,
    ResponseStarted,
    SessionReady,
)
from tests.connectors.codecs.golden_frames import mutated, rows, timeless

pytestmark = pytest.mark.unit
TURNS = {name: rows(f"dialect_{name}") for name in DIALECTS}
MUTANTS = [
    pytest.param(name, at, id=f"{name}: {row['server']['type']}")
    for name, turn in TURNS.items()
    for at, row in enumerate(turn)
    if "mutant" in row
]
WAV_16K = base64.b64decode("UklGRigAAABXQVZFZm10IBAAAAABAAEAgD4AAAB9AAACABAAZGF0YQQAAAABAP//")


def heard(codec: OpenAIRealtimeClient, frame: Any) -> list[Event]:
    return [timeless(event) for event in codec.decode(json.dumps(frame), 20, 10)]


def golden(row: dict[str, Any]) -> list[Event]:
    return [msgspec.convert({"t_ns": 0, **event}, AnyEvent) for event in row["events"]]


def said(codec: OpenAIRealtimeClient, command: Command) -> list[Any]:
    frames = [json.loads(message) for message in codec.encode(command)]
    assert all(frame.pop("event_id").startswith("fp_") for frame in frames)
    return frames


def silenced(events: list[Event]) -> list[Event]:
    """Opus that was written by hand is silence; its samples stand in no golden frame."""
    for event in events:
        assert not isinstance(event, AudioReceived) or not any(event.pcm)
    return [msgspec.structs.replace(e, pcm=b"") if isinstance(e, AudioReceived) else e for e in events]


def replayed(name: str, mutant: int | None = None) -> list[list[Event]]:
    """The events of each server frame of the turn, with one of them mutated."""
    codec = OpenAIRealtimeClient(name)
    found = []
    for at, row in enumerate(TURNS[name]):
        if "client" in row:
            said(codec, msgspec.convert(row["command"], AnyCommand))
        elif "server" in row:
            frame = mutated({**row, "frame": row["server"]}) if at == mutant else row["server"]
            found.append(heard(codec, frame))
    return found


@pytest.mark.parametrize("name", DIALECTS)
def test_a_whole_turn(name: str) -> None:
    head, *turn = TURNS[name]
    assert head["dialect"] == name
    assert head["section"].startswith(DIALECTS[name].section) or name == "vllm-omni-turns"
    codec = OpenAIRealtimeClient(name)
    for row in turn:
        if "client" in row:
            assert said(codec, msgspec.convert(row["command"], AnyCommand)) == row["client"]
            continue
        events = heard(codec, row["server"])
        assert (silenced(events) if name == "unmute" else events) == golden(row), row["server"]["type"]


@pytest.mark.parametrize("name", DIALECTS)
def test_the_turn_holds_what_a_turn_needs(name: str) -> None:
    kinds = {type(event) for events in replayed(name) for event in events}
    assert {SessionReady, AudioReceived, ResponseDone, RawReceived} <= kinds


@pytest.mark.parametrize(("name", "at"), MUTANTS)
def test_a_mutated_frame_is_noticed(name: str, at: int) -> None:
    assert replayed(name, at) != replayed(name)


@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_has_a_mutant(name: str) -> None:
    assert any("mutant" in row for row in TURNS[name])


@pytest.mark.parametrize("name", DIALECTS)
def test_a_cut_frame_is_unreadable_and_harms_nothing(name: str) -> None:
    codec = OpenAIRealtimeClient(name)
    for row in TURNS[name]:
        if "server" not in row:
            continue
        whole = json.dumps(row["server"]).encode()
        for cut in (1, len(whole) // 2, len(whole) - 1):
            (event,) = codec.decode(whole[:cut], 2, 1)
            assert isinstance(event, PeerError)
            assert event.code == "unreadable"
        events = heard(codec, row["server"])
        assert (silenced(events) if name == "unmute" else events) == golden(row)


@pytest.mark.parametrize("name", DIALECTS)
def test_unknown_fields_change_nothing(name: str) -> None:
    codec = OpenAIRealtimeClient(name)
    for row in TURNS[name]:
        if "server" in row:
            events = heard(codec, {"new_in_2028": {"deep": [1]}} | row["server"] | {"another": None})
            assert (silenced(events) if name == "unmute" else events) == golden(row)


@pytest.mark.parametrize("name", DIALECTS)
def test_the_row_is_whole(name: str) -> None:
    row = DIALECTS[name]
    assert row.name == name
    assert row.evidence in ("golden only", "interop-tested") or row.evidence.startswith("live-checked 20")
    assert row.title
    assert "\n" not in row.note
    assert row.names in NAMES
    assert row.profile.turns
    assert (row.key_env is None) == (not row.hosts)  # a key without a home could go anywhere
    assert all(host.strip(".") in row.url or len(row.hosts) > 1 for host in row.hosts)


@pytest.mark.parametrize("name", DIALECTS)
def test_what_a_dialect_lacks_is_said(name: str) -> None:
    row, codec = DIALECTS[name], OpenAIRealtimeClient(name)
    for command in (Cancel(), Commit()):
        tag = str(command.__struct_config__.tag)
        if tag in row.lacks:
            with pytest.raises(ConfigError, match=f"{name}: the peer has no {tag}"):
                codec.encode(command)
        else:
            assert codec.encode(command)
    assert row.profile.cancel == ("cancel" not in row.lacks)


def test_names_and_aliases() -> None:
    assert dialect_of("ga") is DIALECTS["openai"]
    assert dialect_of("beta") is DIALECTS["openai-beta"]
    with pytest.raises(ConfigError, match="did you mean stepfun"):
        dialect_of("stepfunn")


def test_opus_goes_up_in_pages() -> None:
    codec = OpenAIRealtimeClient("unmute")
    (first,) = said(codec, AppendAudio(pcm=bytes(2 * 480)))
    pages = base64.b64decode(first["audio"])
    assert pages[:4] == b"OggS"
    assert pages[5] & 2  # the server waits for the first page of a stream
    assert b"OpusHead" in pages
    assert b"OpusTags" in pages
    with pytest.raises(ConfigError, match="packets of 20 ms"):
        codec.encode(AppendAudio(pcm=bytes(10)))
    assert OggOpusEncoder(24_000).lookahead_samples == DIALECTS["unmute"].encoder_lookahead_samples


def test_binary_audio_both_ways() -> None:
    codec = OpenAIRealtimeClient("xai", input_rate_hz=16_000, output_rate_hz=48_000, binary=True)
    (update,) = said(codec, Configure(transcribe=False))
    assert update["session"]["audio"] == {
        "input": {"format": {"type": "audio/pcm", "rate": 16_000}, "transport": "binary", "transcription": None},
        "output": {"format": {"type": "audio/pcm", "rate": 48_000}, "transport": "binary"},
    }
    assert codec.encode(AppendAudio(pcm=b"\1\0")) == [b"\1\0"]
    (started,) = codec.decode('{"type":"response.created","response":{"id":"r"}}', 1, 1)
    assert isinstance(started, ResponseStarted)
    got = [event for part in (b"{\0\2", b"\0\3", b"\0") for event in codec.decode(part, 2, 2, is_text=False)]
    assert [event.samples for event in got if isinstance(event, AudioReceived)] == [1, 1, 1]
    assert all(
        isinstance(e, AudioReceived) and (e.response, e.rate_hz, e.wire_bytes > 0) == ("r", 48_000, True) for e in got
    )


@pytest.mark.parametrize(
    ("name", "wave"), [("vllm-omni", WAV_16K), ("glm", WAV_16K), ("qwen-omni", WAV_16K), ("xai", WAV_16K)]
)
@given(cuts=st.lists(st.integers(12, 48), max_size=6))
def test_any_cut_of_a_wav_answer_gives_the_same_samples(name: str, wave: bytes, cuts: list[int]) -> None:
    codec = OpenAIRealtimeClient(name)
    bounds = [0, *sorted(cuts), len(wave)]
    kind = NAMES[DIALECTS[name].names].audio_delta
    pcm = b""
    for begin, end in itertools.pairwise(bounds):
        delta = base64.b64encode(wave[begin:end]).decode()
        (event,) = codec.decode(json.dumps({"type": kind, "response_id": "r", "delta": delta}), 1, 1)
        assert isinstance(event, AudioReceived)
        pcm += event.pcm
    assert (pcm, event.rate_hz) == (b"\1\0\xff\xff", 16_000)


@given(cuts=st.lists(st.integers(0, 400), max_size=8))
def test_any_cut_of_an_opus_answer_gives_the_same_samples(cuts: list[int]) -> None:
    stream = b"".join(
        base64.b64decode(row["server"]["delta"])
        for row in TURNS["unmute"]
        if row.get("server", {}).get("type") == "response.audio.delta"
    )
    codec = OpenAIRealtimeClient("unmute")
    bounds = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    got = []
    for begin, end in itertools.pairwise(bounds):
        delta = base64.b64encode(stream[begin:end]).decode()
        got += codec.decode(json.dumps({"type": "response.audio.delta", "delta": delta}), 1, 1)
    audio = [event for event in got if isinstance(event, AudioReceived)]
    assert len(audio) == len(got)
    assert (sum(e.samples for e in audio), sum(e.skipped for e in audio)) == (788 + 480, 172)


def test_the_newer_handshake_is_named() -> None:
    codec = OpenAIRealtimeClient("vllm-omni-turns")
    frame = {"type": "session.created", "session": {"id": "s"}}
    ready, note = codec.decode(json.dumps(frame), 1, 1)
    assert isinstance(ready, SessionReady)
    assert isinstance(note, Note)
    assert "dialect=vllm-omni" in note.message


def test_conversation_after_session_is_no_second_session() -> None:
    codec = OpenAIRealtimeClient("xai")
    heard(codec, {"type": "session.created", "session": {"id": "s"}})
    (event,) = heard(codec, {"type": "conversation.created"})
    assert isinstance(event, RawReceived)


@pytest.mark.parametrize("rate", [0, -1, 2**40, "24000", None, True, [24000]])
def test_an_odd_rate_beside_the_audio_does_not_count(rate: Any) -> None:
    frame = {"type": "response.output_audio.delta", "delta": "AQA=", "sample_rate_hz": rate}
    (event,) = heard(OpenAIRealtimeClient("vllm-omni"), frame)
    assert isinstance(event, AudioReceived)
    assert event.rate_hz == 24_000


def test_the_british_and_the_american_cancel() -> None:
    codec = OpenAIRealtimeClient("glm")
    for kind in ("response.cancelled", "response.canceled"):
        (event,) = heard(codec, {"type": kind, "response_id": "r"})
        assert event == ResponseDone(t_ns=0, response="r", status="cancelled", reason="client_cancelled")
    (done,) = heard(codec, {"type": "response.done", "response": {"id": "q", "status": "canceled"}})
    assert getattr(done, "status", "") == "cancelled"


@pytest.mark.parametrize("kind", ["session.finished", "session.closed", "session.expired"])
def test_a_session_that_the_peer_ends(kind: str) -> None:
    assert heard(OpenAIRealtimeClient("qwen-omni"), {"type": kind}) == [GoAway(t_ns=0, time_left_ms=0)]
