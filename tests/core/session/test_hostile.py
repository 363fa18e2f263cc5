"""Session directories that no writer made: refused in one line, never a crash, never a look outside."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import SessionFormatError
from harness.core.session.audio_file import read_audio
from harness.core.session.reader import load_session
from tests.scoring.timing.recordings import vad_turn

pytestmark = pytest.mark.unit


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return vad_turn().write(tmp_path / "sessions").path


def load_whole(path: Path) -> None:
    session = load_session(path)
    _ = session.user, session.agent


def refused(path: Path) -> str:
    """The one line in which loading all of the session is refused."""
    with pytest.raises(SessionFormatError) as caught:
        load_whole(path)
    said = str(caught.value)
    assert "\n" not in said
    assert path.name in said
    return said


def set_header(path: Path, **changes: Any) -> None:
    """changes: dotted names with `__` for the dot."""
    file = path / "session.json"
    raw = json.loads(file.read_bytes())
    for name, value in changes.items():
        *parents, last = name.split("__")
        place = raw
        for parent in parents:
            place = place[parent]
        place[last] = value
    file.write_text(json.dumps(raw))


def set_events(path: Path, data: bytes) -> None:
    """Put other events there, with a header that vouches for them."""
    (path / "events.jsonl").write_bytes(data)
    set_header(path, events=len(data.splitlines()), events_sha256=hashlib.sha256(data).hexdigest())


def test_changed_events_are_refused(path: Path):
    file = path / "events.jsonl"
    file.write_bytes(file.read_bytes().replace(b"hello", b"jello"))
    assert "events.jsonl: sha256 differs" in refused(path)


def test_a_session_of_before_the_sum_still_loads(path: Path):
    set_header(path, events_sha256="")
    assert load_session(path).events


@pytest.mark.parametrize(
    "name",
    [
        *("../agent.wav", "/etc/passwd", "..", "sub/agent.wav", "a\\b.wav", "", ".wav", "session.json", "a\0.wav"),
        *("c:x.wav", "agent.raw", "a\n.wav", "agent.wav\n", "x" * 300 + ".wav", 7, None),
    ],
)
def test_names_that_lead_elsewhere(path: Path, name: object):
    set_header(path, agent__file=name)
    assert "agent" in refused(path)


@pytest.mark.parametrize("session", ["..", ".", "", "a/b", "a\\b", "a\0", "x" * 300, 1])
def test_names_that_no_session_has(path: Path, session: object):
    set_header(path, session=session)
    refused(path)


@pytest.mark.parametrize("samples", [-1, 2**31, 10**30, 1.5, "9", None, 0, 1, 2**31 - 1])
def test_counts_that_do_not_fit(path: Path, samples: object):
    set_header(path, agent__samples=samples)
    refused(path)


@pytest.mark.parametrize("rate", [0, -1, 768_001, 10**30, 16_000, "24000", None])
def test_rates_that_do_not_fit(path: Path, rate: object):
    set_header(path, agent__rate_hz=rate)
    refused(path)


@pytest.mark.parametrize("where", ["inside", "outside", "nowhere", "loop", "device"])
@pytest.mark.parametrize("name", ["agent.wav", "user.wav", "events.jsonl", "session.json"])
def test_links_out_of_the_directory(path: Path, tmp_path: Path, name: str, where: str):
    outside = tmp_path / name
    moved = path / f"real.{name}" if where == "inside" else outside
    (path / name).rename(moved)
    targets = {"nowhere": tmp_path / "none", "loop": path / name, "device": Path("/dev/zero")}
    (path / name).symlink_to(targets.get(where, moved))
    if where == "inside":
        assert len(load_session(path).agent)
    else:
        assert name in refused(path)


@pytest.mark.parametrize("name", ["agent.wav", "events.jsonl", "session.json"])
def test_what_is_no_regular_file(path: Path, name: str):
    (path / name).unlink()
    os.mkfifo(path / name)
    assert "regular" in refused(path)
    (path / name).unlink()
    (path / name).mkdir()
    assert "regular" in refused(path)


def test_a_sound_file_that_claims_more_than_it_has(path: Path):
    file = path / "agent.wav"
    set_header(path, agent__samples=2**31 - 1)
    file.write_bytes(file.read_bytes()[:40] + (2**32 - 2).to_bytes(4, "little") + file.read_bytes()[44:])
    refused(path)


@pytest.mark.parametrize("data", [b"", b"RIFF", b"\0" * 100, b"fLaC" + b"\xff" * 50])
def test_a_sound_file_that_is_none(path: Path, data: bytes):
    (path / "agent.wav").write_bytes(data)
    refused(path)


@pytest.mark.parametrize(
    "data",
    [b"[" * 100_000, b'{"a":' * 100_000, b"NaN", b'{"schema": NaN}', b"\xff\xfe", b'{"schema": 1, "a": "\xff"}'],
)
def test_a_header_that_is_no_json(path: Path, data: bytes):
    (path / "session.json").write_bytes(data)
    refused(path)


def test_depth_that_decodes_and_would_end_whoever_walks_it(path: Path):
    deep: Any = 1
    for _ in range(200):
        deep = {"a": deep}
    set_header(path, config=deep)
    assert "inside each other" in refused(path)


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"note","seq":0,"t_ns":NaN,"code":"","message":""}',
        b'{"type":"note","seq":0,"t_ns":1,"code":"\xff","message":""}',
        b'{"type":"note","seq":0,"t_ns":1,"code":5,"message":""}',
        b'{"type":"note","seq":0,"t_ns":99999999999999999999,"code":"","message":""}',
        b'{"type":"note","seq":3,"t_ns":1,"code":"","message":""}',
        b'{"type":"note","t_ns":1,"code":"","message":""}',
        b'{"type":["x"],"seq":0,"t_ns":1}',
        b'{"type":"odd","seq":0,"t_ns":1e999}',
        b'{"type":"odd","seq":[],"t_ns":1}',
        b'{"type":"odd","seq":0,"t_ns":1,"a":' + b"[" * 100_000,
        b'{"type":"odd","seq":0,"t_ns":1,"a":' + b"[" * 200 + b"]" * 200 + b"}",
        b'{"type":"response_done","seq":0,"t_ns":1,"usage":' + b'{"a":' * 200 + b"1" + b"}" * 201,
        b'{"type":"audio_received","seq":0,"t_ns":1,"samples":-1,"rate_hz":24000}',
        b'{"type":"audio_received","seq":0,"t_ns":1,"samples":1,"rate_hz":0}',
        b'{"type":"audio_received","seq":0,"t_ns":1,"samples":1,"rate_hz":768001}',
        b'{"type":"audio_received","seq":0,"t_ns":1,"samples":1,"rate_hz":24000,"sample":-5}',
        b'{"type":"audio_received","seq":0,"t_ns":1,"samples":99999999999999,"rate_hz":24000}',
        b'{"type":"stream_started","seq":0,"t_ns":1,"sample":0,"rate_hz":0}',
        b"[]",
        b"",
        b"\0",
    ],
)
def test_events_that_cannot_be(path: Path, line: bytes):
    set_events(path, line + b"\n")
    assert "events.jsonl, line 1" in refused(path)


def test_a_silent_side_without_a_file_is_empty(path: Path):
    set_header(path, agent__samples=0, agent__file="other.wav")
    session = load_session(path)
    assert len(read_audio(path, session.header.agent)) == 0
