"""Moshi's codec against messages written by hand; the Opus pages in them are of Kyutai's own writer (sphn 0.2.1)."""

from __future__ import annotations

import io
import itertools
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.codecs.moshi import MoshiClient
from connectors.codecs.moshi_server import MoshiEvents, MoshiServerSession
from connectors.codecs.ogg_opus import OggOpusDecoder, OggOpusEncoder
from connectors.codecs.openai_requests import AppendInput, Invalid
from harness.core import commands
from harness.core.commands import AppendAudio, Command
from harness.core.errors import ConfigError
from harness.core.events import AnyEvent, AudioReceived, Event, PeerError, SessionReady, TextReceived

pytestmark = pytest.mark.unit
GOLDEN = Path(__file__).parent / "golden" / "moshi_server.jsonl"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in GOLDEN.read_text("utf-8").splitlines()]
NAMES = [row["kind"] for row in ROWS]
PAGES = b"".join(bytes.fromhex(row["hex"])[1:] for row in ROWS if row["hex"].startswith("01"))
TONE = np.rint(8_000 * np.sin(2 * np.pi * 440 * np.arange(9_600) / 24_000)).astype("<i2").tobytes()


def decode(codec: MoshiClient, data: bytes) -> list[Event]:
    """The events without instants and sound."""
    found = codec.decode(data, 20, 10, False)
    for event in found:
        if isinstance(event, AudioReceived):
            assert len(event.pcm) == 2 * event.samples
    bare = {"t_ns": 0, "first_byte_ns": 0, "wire_bytes": 0}
    return [
        msgspec.structs.replace(event, **bare, **({"pcm": b""} if isinstance(event, AudioReceived) else {}))
        for event in found
    ]


def after(number: int) -> MoshiClient:
    """A codec that has read every message before `number`."""
    codec = MoshiClient()
    for row in ROWS[:number]:
        codec.decode(bytes.fromhex(row["hex"]), 1, 1, False)
    return codec


def golden(row: dict[str, Any]) -> list[Event]:
    return [msgspec.convert({"t_ns": 0, **event}, AnyEvent) for event in row["events"]]


# --- server to client -------------------------------------------------------------------------------------------


def test_a_whole_turn_becomes_the_golden_events() -> None:
    codec = MoshiClient()
    for row in ROWS:
        assert decode(codec, bytes.fromhex(row["hex"])) == golden(row), row["kind"]


@pytest.mark.parametrize("number", range(len(ROWS)), ids=NAMES)
def test_a_mutated_message_is_noticed(number: int) -> None:
    row = ROWS[number]
    at, byte = row["mutant"]["at"], bytes.fromhex(row["mutant"]["hex"])
    data = bytes.fromhex(row["hex"])
    mutated = data[:at] + byte + data[at + 1 :]
    assert mutated != data
    assert decode(after(number), mutated) != golden(row)


@pytest.mark.parametrize("number", [n for n in range(len(ROWS)) if len(ROWS[n]["hex"]) > 10], ids=str)
def test_a_truncated_message_is_not_the_whole(number: int) -> None:
    whole = bytes.fromhex(ROWS[number]["hex"])
    for cut in range(1, len(whole)):
        events = decode(after(number), whole[:cut])
        assert events
        if not isinstance(events[0], SessionReady) and ROWS[number]["kind"] != "metadata":
            assert events != golden(ROWS[number]), cut


def test_arrival_is_copied_into_every_event() -> None:
    for row in ROWS:
        data = bytes.fromhex(row["hex"])
        for event in MoshiClient().decode(data, 2_000, 1_000, False):
            assert (event.t_ns, event.first_byte_ns, event.wire_bytes) == (2_000, 1_000, len(data))


def test_text_frames_of_the_websocket_mean_nothing() -> None:
    (event,) = MoshiClient().decode(b"\x02hello", 1, 1, True)
    assert not isinstance(event, TextReceived)


@settings(deadline=None, max_examples=50)
@given(cuts=st.lists(st.integers(0, 9_999), max_size=12))
def test_pages_may_be_split_and_joined_over_messages(cuts: list[int]) -> None:
    bounds = [0, *sorted(cut % len(PAGES) for cut in cuts), len(PAGES)]
    codec, parts = MoshiClient(), [PAGES[a:b] for a, b in itertools.pairwise(bounds)]
    events = [event for part in parts for event in codec.decode(b"\x01" + part, 1, 1, False)]
    assert all(isinstance(event, AudioReceived) for event in events)
    assert sum(getattr(event, "skipped", 0) for event in events) == 1936
    assert b"".join(getattr(event, "pcm", b"") for event in events) == OggOpusDecoder(24_000).push(PAGES)


@settings(deadline=None, max_examples=200)
@given(messages=st.lists(st.binary(max_size=80) | st.sampled_from([bytes.fromhex(r["hex"]) for r in ROWS]), max_size=8))
def test_nothing_that_comes_raises(messages: list[bytes]) -> None:
    codec, session = MoshiClient(), MoshiServerSession()
    for data in messages:
        for event in codec.decode(data, 1, 1, False):
            assert msgspec.msgpack.decode(msgspec.msgpack.encode(event), type=AnyEvent) == event
        session.decode(data, False)


def test_a_stream_that_is_given_up_is_told_once() -> None:
    codec = MoshiClient()
    bad = b"\x01" + (b"OggS" + bytes(23)) * 150
    found = [event for _ in range(3) for event in codec.decode(bad, 1, 1, False) if isinstance(event, PeerError)]
    assert [(event.code, event.fatal) for event in found] == [("unreadable", True)]


# --- client to server -------------------------------------------------------------------------------------------


def test_what_is_sent_begins_with_tag_page_and_opus_head() -> None:
    """Bytes by hand: RFC 3533, section 6; RFC 7845, section 5.1; protocol sheet, section 7.1."""
    (message,) = MoshiClient().encode(AppendAudio(pcm=TONE))
    assert isinstance(message, bytes)
    assert message[:1] == bytes.fromhex("01")
    assert message[1:15] == b"OggS" + bytes.fromhex("00 02 0000000000000000")
    assert message[19:23] == bytes(4)
    assert message[27:29] == bytes.fromhex("01 13")
    assert message[29:48] == b"OpusHead" + bytes.fromhex("01 01 7800 c05d0000 0000 00")
    assert message[48:52] == b"OggS"
    assert message.count(b"OggS") == 2 + 20


def test_another_library_hears_what_is_sent() -> None:
    codec = MoshiClient()
    messages = [m for at in range(0, len(TONE), 960) for m in codec.encode(AppendAudio(pcm=TONE[at : at + 960]))]
    assert {m[0] for m in messages if isinstance(m, bytes)} == {1}
    stream = b"".join(m[1:] for m in messages if isinstance(m, bytes))
    samples, rate_hz = soundfile.read(io.BytesIO(stream), dtype="int16")
    assert (len(samples), rate_hz) == (9_600 - 60, 24_000)
    assert codec.lookahead_samples == 60


def test_a_chunk_that_leaves_samples_waiting_is_refused() -> None:
    """They would leave with the next chunk, later than the record of theirs says."""
    codec = MoshiClient()
    codec.encode(AppendAudio(pcm=bytes(2 * 480)))
    with pytest.raises(ConfigError, match="packets of 20 ms"):
        codec.encode(AppendAudio(pcm=bytes(2 * 240)))


def test_there_is_nothing_to_say_but_audio() -> None:
    codec = MoshiClient()
    quiet: list[Command] = [commands.Configure(), commands.Commit(), commands.CreateResponse()]
    assert [codec.encode(command) for command in quiet] == [[], [], []]
    assert codec.replies() == []
    impossible: list[Command] = [
        commands.Cancel(),
        commands.ClearInput(),
        commands.Truncate(item="i", audio_end_ms=1),
        commands.AddHistory(role="user", text="x"),
    ]
    for command in impossible:
        with pytest.raises(ConfigError, match=f"Moshi has no {type(command).__name__}"):
            codec.encode(command)


# --- the agent's side -------------------------------------------------------------------------------------------


def test_the_server_counts_packets_as_kyutais_does() -> None:
    """Four packets of 20 ms are a frame of 80 ms: the pre-skip is left in."""
    session, client = MoshiServerSession(), MoshiClient()
    heard = []
    for at in range(0, len(TONE), 3_840):
        (message,) = client.encode(AppendAudio(pcm=TONE[at : at + 3_840]))
        assert isinstance(message, bytes)
        (request,) = session.decode(message, False)
        assert isinstance(request, AppendInput)
        heard.append(len(request.audio))
    assert heard == [3_840] * 5


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x02text", b"\x03\x01", b"\x2a", b"\x01"])
def test_other_messages_ask_for_nothing(data: bytes) -> None:
    assert MoshiServerSession().decode(data, False) == []


def test_a_broken_stream_is_refused_once() -> None:
    session = MoshiServerSession()
    bad = b"\x01" + (b"OggS" + bytes(23)) * 150
    refused = [request for _ in range(3) for request in session.decode(bad, False)]
    assert [type(request) for request in refused] == [Invalid]


def test_what_the_server_says_is_what_the_client_reads() -> None:
    events, client = MoshiEvents(), MoshiClient()
    events.response_opened("r", "i", None)
    assert [payload for word in ("one", " two") for payload in events.transcript_delta("r", "i", word)] == []
    said = [*events.session("created", {}), events.sound(bytes(3_840))]
    assert events.next_text() is None  # nothing of the answer sounds yet
    events.playback("started", "r")
    said += [events.sound(TONE[:3_840]), events.next_text() or b"", *events.error("k", "busy", "wait")]
    found = [event for payload in said for event in decode(client, payload)]
    assert [type(event).__name__ for event in found] == [
        *("SessionReady", "AudioReceived", "AudioReceived", "TextReceived", "PeerError")
    ]
    assert [event.skipped + event.samples for event in found if isinstance(event, AudioReceived)] == [1_920] * 2
    assert events.next_text() == b"\x02 two"
    assert events.next_text() is None
    assert events.frame(b"\x00") == bytes.fromhex("82 01 00")


def test_frames_of_the_server_are_whole_units() -> None:
    encoder = OggOpusEncoder(24_000)
    assert [MoshiEvents().sound(bytes(3_840)).count(b"OggS") for _ in range(2)] == [6, 6]
    assert encoder.push(bytes(3_840)).count(b"OggS") == 6
