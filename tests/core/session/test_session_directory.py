"""Writing and reading a session directory, whole, partial and damaged."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

from harness.core.audio import audio_sha256, int16_to_pcm16
from harness.core.errors import SessionFormatError
from harness.core.events import (
    AudioReceived,
    AudioSent,
    MediaAnchor,
    Note,
    PeerError,
    RtpReceived,
    TextReceived,
    Unknown,
    decode_event,
    encode_event,
)
from harness.core.session.header import AudioInfo
from harness.core.session.reader import load_session, session_paths
from harness.core.session.writer import SessionWriter
from tests.scoring.timing.recordings import header, silence, tone, vad_turn

pytestmark = pytest.mark.unit


def test_what_was_written_comes_back(tmp_path: Path):
    session = vad_turn().write(tmp_path)
    assert [event.seq for event in session.events] == list(range(len(session.events)))
    assert session.header.complete
    assert session.header.events == len(session.events)
    np.testing.assert_array_equal(session.agent, np.concatenate((silence(100), tone(200), tone(100))))
    assert session.header.agent.sha256 == audio_sha256(session.agent)
    assert [(e.sample, e.samples) for e in session.of(AudioReceived)] == [(0, 2400), (2400, 4800), (7200, 2400)]
    assert len(session.user) == 48_000


def test_audio_never_stands_in_the_lines(tmp_path: Path):
    session = vad_turn().write(tmp_path)
    assert b"pcm" not in (session.path / "events.jsonl").read_bytes()


@pytest.mark.parametrize("name", ["wav", "flac"])
def test_both_formats_hold_the_same_samples(tmp_path: Path, name: str):
    made = header(agent=AudioInfo(file=f"agent.{name}", rate_hz=24_000))
    session = vad_turn().write(tmp_path, made)
    assert (session.path / f"agent.{name}").is_file()
    np.testing.assert_array_equal(session.agent[2400:7200], tone(200))


def test_the_rate_of_the_first_packet_is_the_files(tmp_path: Path):
    writer = SessionWriter(tmp_path, header())
    pcm = int16_to_pcm16(tone(100, rate_hz=44_100))
    writer.append(AudioReceived(t_ns=1, samples=4410, rate_hz=44_100, pcm=pcm))
    assert writer.close().agent.rate_hz == 44_100


def test_a_session_without_audio_is_empty(tmp_path: Path):
    SessionWriter(tmp_path, header()).close()
    session = load_session(tmp_path / "s0")
    assert len(session.user) == len(session.agent) == 0


def test_continuous_rtp_and_live_events_fit_version_1(tmp_path: Path):
    writer = SessionWriter(tmp_path, header(mode="none"))
    events = [
        RtpReceived(t_ns=1, ssrc=2**32 - 1, sequence=65_535, timestamp=2**32 - 1, payload_type=111, marker=True),
        MediaAnchor(t_ns=2, side="user", sample=24_000, source="coreaudio"),
        MediaAnchor(t_ns=3, side="agent", sample=48_000),
        TextReceived(t_ns=4, text="tok", kind="token", produced_ns=3),
    ]
    for event in events:
        writer.append(event)
    writer.close()
    loaded = load_session(tmp_path / "s0").events
    assert loaded == tuple(msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(events))


def test_a_killed_run_leaves_a_partial_that_is_no_session(tmp_path: Path):
    writer = SessionWriter(tmp_path, header())
    writer.append(Note(t_ns=1, code="x", message="y"))
    writer.flush()
    writer._events.close()  # as the killed process would
    assert session_paths(tmp_path) == []
    with pytest.raises(SessionFormatError, match="never finished"):
        load_session(writer.partial)
    SessionWriter(tmp_path, header()).close()
    assert [path.name for path in session_paths(tmp_path)] == ["s0"]


def damaged(tmp_path: Path) -> Path:
    return vad_turn().write(tmp_path).path


def test_no_session_directory(tmp_path: Path):
    with pytest.raises(SessionFormatError, match=r"no session\.json"):
        load_session(tmp_path)


def test_a_newer_version_asks_for_an_upgrade(tmp_path: Path):
    path = damaged(tmp_path)
    raw = json.loads((path / "session.json").read_text())
    (path / "session.json").write_text(json.dumps({**raw, "schema": 2}))
    with pytest.raises(SessionFormatError, match=r"schema version 2.*upgrade"):
        load_session(path)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema": 0}', '{"schema": "1"}', '{"schema": 1}', "{}"])
def test_a_damaged_header_is_said(tmp_path: Path, text: str):
    path = damaged(tmp_path)
    (path / "session.json").write_text(text)
    with pytest.raises(SessionFormatError):
        load_session(path)


def test_a_broken_line_is_named(tmp_path: Path):
    path = damaged(tmp_path)
    lines = (path / "events.jsonl").read_bytes().splitlines(keepends=True)
    (path / "events.jsonl").write_bytes(b"".join([*lines[:3], b'{"type":"no\n', *lines[4:]]))
    with pytest.raises(SessionFormatError, match="line 4"):
        load_session(path)


def test_a_cut_events_file_is_said(tmp_path: Path):
    path = damaged(tmp_path)
    lines = (path / "events.jsonl").read_bytes().splitlines(keepends=True)
    (path / "events.jsonl").write_bytes(b"".join(lines[:-2]))
    with pytest.raises(SessionFormatError, match=r"session\.json counts"):
        load_session(path)


def test_changed_audio_is_said(tmp_path: Path):
    path = damaged(tmp_path)
    data = bytearray((path / "agent.wav").read_bytes())
    data[-2] ^= 1
    (path / "agent.wav").write_bytes(bytes(data))
    with pytest.raises(SessionFormatError, match="sha256"):
        _ = load_session(path).agent


def test_missing_audio_is_said(tmp_path: Path):
    path = damaged(tmp_path)
    (path / "agent.wav").unlink()
    with pytest.raises(SessionFormatError, match=r"agent\.wav"):
        _ = load_session(path).agent


def test_an_unknown_event_is_kept_whole():
    line = b'{"type":"from_the_future","seq":7,"t_ns":5,"depth":{"a":[1,2]}}'
    event = decode_event(line)
    assert event == Unknown(seq=7, t_ns=5, name="from_the_future", data={"depth": {"a": [1, 2]}})
    assert encode_event(event) == line


def test_an_unknown_field_is_ignored():
    assert decode_event(b'{"type":"note","t_ns":5,"code":"a","message":"b","new":1}') == Note(
        t_ns=5, code="a", message="b"
    )


@pytest.mark.parametrize(
    "line", [b'{"type":"note","t_ns":5}', b'{"t_ns":"x","type":"odd"}', b"[1]", b'{"type":"note","t_ns":1.5}']
)
def test_a_wrong_event_is_an_error(line: bytes):
    with pytest.raises(msgspec.DecodeError):
        decode_event(line)


def test_defaults_are_left_out_of_the_lines():
    assert (
        encode_event(PeerError(seq=1, t_ns=2, message="m")) == b'{"type":"peer_error","seq":1,"t_ns":2,"message":"m"}'
    )
    sent = AudioSent(t_ns=3, planned_ns=1, started_ns=2, sample=0, samples=480)
    assert decode_event(encode_event(sent)) == sent
